# lab: reduce
# summary: Fills the memory with many processes that are small each
import os
import time

for _ in range(40):
    if os.fork() == 0:
        held = bytearray(b"x") * (100 << 20)
        time.sleep(60)
time.sleep(60)
