# lab: reduce
# summary: Fills the memory of the machine
held = []
while True:
    held.append(bytearray(b"x") * (16 << 20))
