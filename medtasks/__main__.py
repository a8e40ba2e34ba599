"""``python -m medtasks``."""

from medtasks.cli.app import main

if __name__ == "__main__":
    main()
