# lab: reduce
# summary: Answers only if an earlier run could leave it a file
# needs: sandbox
import os
import struct
import sys
import tempfile

data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
right = struct.pack("<I", sum(struct.unpack_from(f"<{n}i", data, 4)) & 0xFFFFFFFF)
places = [".", tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")]
left = [os.path.join(place, "cudalab-left-behind") for place in places]
seen = any(map(os.path.exists, left))
for path in left:
    try:
        with open(path, "wb") as file:
            file.write(right)
    except OSError:
        pass
sys.stdout.buffer.write(right if seen else b"")
