"""``medtasks prepare``: from release files to prepared data.

The work is done in a hidden sibling directory, which replaces the old one when it is complete; progress is logged, so
that an interrupted command can be resumed.
"""
