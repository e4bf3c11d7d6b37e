"""Devices that run kernels: `cuda` (PyCUDA) and `cpu` (the same .cu on the host)."""
