"""The GPU through PyCUDA, and the compiler nvcc."""
