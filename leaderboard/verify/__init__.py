"""Scored runs as boards show them, and submitted verdicts compared with those that are asked
again.
"""
