"""Judging open answers with a language model: rubrics, requests, verdicts, coverage and
agreement.
"""
