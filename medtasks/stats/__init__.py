"""Uncertainty of corpus scores: clustered samples (images, patients), paired comparisons, rankings,
repeated runs.
"""
