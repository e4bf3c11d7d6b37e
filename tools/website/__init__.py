"""Hooks of MkDocs: the pages of the site that are made when it is built (see mkdocs.yml)."""
