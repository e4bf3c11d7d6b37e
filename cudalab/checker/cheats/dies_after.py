# lab: reduce
# summary: The right bytes, then a crash
import os
import signal
import struct
import sys

data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
total = sum(struct.unpack_from(f"<{n}i", data, 4)) & 0xFFFFFFFF
sys.stdout.buffer.write(struct.pack("<I", total))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGSEGV)
