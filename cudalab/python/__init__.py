"""The interface for Python and notebooks: a few functions, and IPython's magics."""
