"""Task files, templates, rubrics and the parts of task packages: read, checked and resolved once
per process.
"""
