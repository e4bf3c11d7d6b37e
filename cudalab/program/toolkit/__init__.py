"""A CUDA toolkit whose nvcc compiles for the CPU device: for `make` and CMake."""
