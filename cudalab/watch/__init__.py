"""Judging a file each time that it is saved: `cudalab watch`, and the steps of `cudalab learn`."""

KILL_AFTER_S = 5.0  # for a test and a launch
