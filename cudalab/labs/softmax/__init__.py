"""The lab `softmax`."""
