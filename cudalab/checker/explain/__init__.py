"""Why an answer is wrong, in words for its author."""
