"""Predicts how long a kernel takes on a GPU that is not there; docs/predict.md has the model."""
