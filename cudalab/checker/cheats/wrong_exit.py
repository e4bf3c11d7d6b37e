# lab: reduce
# summary: The right bytes, and exit status 1
import struct
import sys

data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
total = sum(struct.unpack_from(f"<{n}i", data, 4)) & 0xFFFFFFFF
sys.stdout.buffer.write(struct.pack("<I", total))
sys.stdout.flush()
sys.exit(1)
