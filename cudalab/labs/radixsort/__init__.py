"""The lab `radixsort`."""
