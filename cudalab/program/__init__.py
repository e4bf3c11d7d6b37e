"""Whole CUDA programs: their files, the rewriting for a host's compiler, building and running."""
