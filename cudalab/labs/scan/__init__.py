"""The lab `scan`."""
