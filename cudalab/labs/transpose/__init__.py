"""The lab `transpose`."""
