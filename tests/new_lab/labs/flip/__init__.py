"""The lab flip."""
