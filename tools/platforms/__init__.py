"""What the code of platforms makes of the results that cudalab writes for them."""
