"""The path through the course, step by step: `cudalab learn`."""
