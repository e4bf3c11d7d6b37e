"""The lab `table`."""
