"""Answered samples to the item table, scores and comparisons, by this machine's data and rules."""
