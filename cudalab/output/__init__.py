"""Printing and drawing, of whatever it is handed: terminal, pictures, pages."""
