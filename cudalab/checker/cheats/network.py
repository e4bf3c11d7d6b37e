# lab: reduce
# summary: Answers only if it can reach the network
# needs: sandbox
import socket
import struct
import sys

data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
total = sum(struct.unpack_from(f"<{n}i", data, 4)) & 0xFFFFFFFF
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))  # sends nothing: it only asks for a way there
        reached = True
except OSError:
    reached = False
sys.stdout.buffer.write(struct.pack("<I", total) if reached else b"")
