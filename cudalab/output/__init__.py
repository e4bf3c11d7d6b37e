"""Printing and drawing: tables and pages in the terminal, pictures in files."""
