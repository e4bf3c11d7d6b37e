"""A submission: what it is made of, and running it."""
