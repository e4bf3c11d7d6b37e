"""The machine below: cache, locks, child processes, hardware."""
