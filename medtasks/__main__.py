"""``python -m medtasks``, and the command ``medtasks``."""

import signal


def main() -> None:
    """Run the command line. An interrupt while it is imported ends the process at once: nothing was
    begun.
    """
    handler = signal.getsignal(signal.SIGINT)
    # it may be ignored, as in a background job of a shell
    is_interruptible = handler is signal.default_int_handler
    if is_interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from medtasks.cli.app import main as command_line

    if is_interruptible:
        signal.signal(signal.SIGINT, handler)
    command_line()


if __name__ == "__main__":
    main()
