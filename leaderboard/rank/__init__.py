"""Which runs are comparable, their ranks, and differences between them."""
