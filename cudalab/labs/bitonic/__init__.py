"""The lab `bitonic`."""
