"""Scripts that measure, and that write what was measured into the documents.

Run each as a module from the repository's root: `python -m tools.generate`.
"""
