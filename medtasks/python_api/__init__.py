"""Results in Python: runs as tables, and what the commands compute, as objects. `medtasks` has all
of its names.
"""
