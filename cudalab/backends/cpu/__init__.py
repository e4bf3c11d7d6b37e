"""The CPU device: the same .cu compiled by the host's C++ compiler."""
