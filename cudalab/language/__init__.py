"""Reading CUDA source text: includes, tokens, structure, and nvcc's rules."""
