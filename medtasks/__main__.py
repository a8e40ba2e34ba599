"""``python -m medtasks``."""

from medtasks.cli.app import main

main()
