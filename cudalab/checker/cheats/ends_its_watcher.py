# lab: reduce
# summary: Kills whoever started it
import os
import signal

for pid in {os.getppid(), 1}:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
