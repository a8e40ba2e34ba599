"""Metrics: sufficient statistics per sample or item, then scores of their sums."""
