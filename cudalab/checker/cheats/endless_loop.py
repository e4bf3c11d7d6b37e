# lab: reduce
# summary: Never ends
while True:
    pass
