"""Judging a file each time that it is saved: `cudalab watch`, and the steps of `cudalab learn`."""
