"""The machine: cache, locks, child processes, hardware."""
