# lab: reduce
# summary: Never ends, and uses no processor time either
import time

while True:
    time.sleep(1000)
