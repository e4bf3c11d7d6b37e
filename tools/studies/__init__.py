"""What the documents claim, measured: a module for each question, with its commands.

tools/results.py has what they share: it chooses the command, reads and writes docs/results, and
makes tables.
"""
