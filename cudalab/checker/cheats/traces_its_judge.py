# lab: reduce
# summary: Attaches to its judge, to change what it compares
# needs: sandbox
import ctypes
import os
import struct
import sys

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
libc = ctypes.CDLL(None)
data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
right = struct.pack("<I", sum(struct.unpack_from(f"<{n}i", data, 4)) & 0xFFFFFFFF)
stopped = False
pid = os.getppid()
while pid > 1:
    with open(f"/proc/{pid}/stat") as file:
        above = int(file.read().rpartition(")")[2].split()[1])
    if libc.ptrace(PTRACE_ATTACH, pid, None, None) == 0:
        stopped = True
        os.waitpid(pid, 0)
        libc.ptrace(PTRACE_DETACH, pid, None, None)
    pid = above
sys.stdout.buffer.write(right if stopped else b"")
