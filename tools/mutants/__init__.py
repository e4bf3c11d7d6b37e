"""Mutants of the shipped kernels: how many of them the checker's public tests reject."""
