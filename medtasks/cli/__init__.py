"""The command line ``medtasks``; each command is a module, and imports what it needs when it runs."""
