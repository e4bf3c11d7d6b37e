"""The lab `segscan`."""
