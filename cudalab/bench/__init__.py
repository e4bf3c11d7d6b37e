"""Measuring: what runs, how it is timed, the results and their tables."""
