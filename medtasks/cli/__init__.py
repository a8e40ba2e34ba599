"""The command line ``medtasks``; each command stands in a module of its own and imports what it needs when run."""
