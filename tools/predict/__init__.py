"""Predicted times beside measured ones: fits the model's constants, and scores it."""
