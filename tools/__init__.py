"""Scripts that measure the product and write the documents' tables.

Run each as a module from the repository's root: `python -m tools.generate`.
"""
