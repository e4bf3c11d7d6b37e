"""The lab `histogram`."""
