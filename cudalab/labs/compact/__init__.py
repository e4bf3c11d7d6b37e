"""The lab `compact`."""
