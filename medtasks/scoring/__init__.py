"""Answered samples to the item table, scores and comparisons, by the data and rules of this machine."""
