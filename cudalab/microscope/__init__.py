"""Profiles and findings of instrumented runs, and the pages made from them."""

KILL_AFTER_S = 120.0  # for looking at a variant
