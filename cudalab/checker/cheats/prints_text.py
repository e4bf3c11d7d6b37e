# lab: reduce
# summary: The right sum as digits
import struct
import sys

data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
print(sum(struct.unpack_from(f"<{n}i", data, 4)))
