"""The lab `solve`."""
