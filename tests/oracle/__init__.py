"""Random CUDA programs from the language's side, with a sequential host program as reference."""
