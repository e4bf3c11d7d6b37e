"""Profiles and findings of instrumented runs, and the pages made from them."""
