"""Whole CUDA programs: gathering, rewriting for a host's compiler, building and observing them."""
