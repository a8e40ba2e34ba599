"""The immediate end of a process, for the places where Python has no other."""

from __future__ import annotations

import os
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """End the process with this exit code: exit functions are not called, output is not flushed,
    and threads are not waited for.

    An exit function can set the exit code in no other way, and a thread can end the process in no
    other way. And after a normal end of the main thread, Python stops a daemon thread wherever it
    is; within a C++ library, that aborts the process.
    """
    os._exit(code)
