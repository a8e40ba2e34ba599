"""Prompt templates (Jinja), one folder per benchmark; rendered by
:mod:`medtasks.catalog.prompts`.
"""
