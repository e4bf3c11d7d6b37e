# lab: reduce
# summary: Answers only if it can read the user's files
# needs: sandbox
import os
import struct
import sys

data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
total = sum(struct.unpack_from(f"<{n}i", data, 4)) & 0xFFFFFFFF
reached = False
for path in ("/etc/passwd", "/etc/hostname", "/etc/shadow", "/home"):
    try:
        reached |= bool(os.listdir(path) if os.path.isdir(path) else open(path).read())
    except OSError:
        pass
sys.stdout.buffer.write(struct.pack("<I", total) if reached else b"")
