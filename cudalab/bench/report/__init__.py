"""The course's lab report, from the results of bench."""
