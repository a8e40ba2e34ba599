"""Predictions made with other tools: reading their files, and matching them with a task's
documents.
"""
