"""All that reads CUDA text: sources and their includes, tokens, structure, the compiler's rules."""
