"""The host's C++ compiler: which one it is, with which flags, and how texts go through it."""
