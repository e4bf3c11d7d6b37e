"""Running what nobody trusts."""
