"""Explains to its author why an answer is wrong."""
