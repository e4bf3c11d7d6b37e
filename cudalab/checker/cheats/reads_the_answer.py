# lab: reduce
# summary: Looks for the expected answer in memory, files and environment instead of computing it
# needs: sandbox
import os
import struct
import sys


def memory_of(pid: int) -> bytes:
    """The bytes of another process, if it lets us."""
    content = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if " rw" in line and end - start < 1 << 26:
                try:
                    memory.seek(start)
                    content += memory.read(end - start)
                except (OSError, OverflowError):
                    pass
    return content


data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
right = struct.pack("<I", sum(struct.unpack_from(f"<{n}i", data, 4)) & 0xFFFFFFFF)
seen = b""
pid = os.getppid()
while pid > 1:  # all that lead to this one
    try:
        seen += memory_of(pid)
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    except OSError:
        break
# It answers only if it found the answer elsewhere, so that it fails if there is none.
sys.stdout.buffer.write(right if seen else b"")
