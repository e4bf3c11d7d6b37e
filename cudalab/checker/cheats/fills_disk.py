# lab: reduce
# summary: Writes files without an end
number = 0
while True:
    number += 1
    with open(f"file-{number}", "wb") as file:
        file.write(b"x" * (8 << 20))
