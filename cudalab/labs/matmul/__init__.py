"""The lab `matmul`."""
