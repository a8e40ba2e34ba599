"""The ``medtasks`` command line. Each command is a module and imports what it needs when it
runs.
"""
