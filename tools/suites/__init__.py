"""Programs of others, wrong and right, under cudalab's own sanitizer."""
