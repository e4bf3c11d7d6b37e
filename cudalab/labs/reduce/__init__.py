"""The lab `reduce`."""
