"""cudalab runs the labs of a university CUDA course, on a GPU or without one."""

__version__ = "0.1.0"
