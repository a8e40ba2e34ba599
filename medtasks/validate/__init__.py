"""Checks of task files, templates, prepared data and scores: what a reviewer looks for before
trusting a score.
"""
