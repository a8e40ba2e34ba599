"""Several processes run one command: if one of them dies, the others stop at once and name it.

A launcher such as torchrun stops the others by SIGTERM, silently. Without one they would go on to the end of their
share, and then fail, or wait for hours, in a collective operation.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import sys
import threading
from collections.abc import Iterator

from medtasks.results.answers import AnswerStore

POLL = 1.0
"""Seconds between two looks at the other processes."""


@contextlib.contextmanager
def watched_peers(store: AnswerStore) -> Iterator[None]:
    """End this process with one sentence and exit code 1 if another process of the command ends within the block.

    Processes are seen by the locks of their stores. Those on nodes that do not share the directory, or its locks, are
    left to the launcher. Every process has to enter the block, and none may close its store before all have left it.
    """
    names = _names()
    seen = [rank for rank in range(len(names)) if rank != store.rank and store.is_used_by(rank)]
    if not seen:
        yield
        return
    leaving = threading.Event()

    def look() -> None:
        dead = [rank for rank in seen if store.is_used_by(rank) is False]
        if not dead or leaving.is_set():
            return
        store.withdraw()
        if store.rank == min({store.rank, *seen} - set(dead)):
            gone = " and ".join(names[rank] for rank in dead)
            print(
                f"medtasks: {gone} ended before the run was finished, so the run stops; the same command continues "
                f"from the replies so far ({store.folder}).",
                file=sys.stderr,
                flush=True,
            )
        os._exit(1)

    def watch() -> None:
        while not leaving.wait(POLL):
            look()

    def terminated(number: int, _: object) -> None:
        look()  # the launcher stops this process because another one died, or because it was stopped itself
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, terminated) if in_main else None
    threading.Thread(target=watch, name="medtasks-peers", daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        store.withdraw()  # the others are interrupted, too
        raise
    finally:
        leaving.set()
        if in_main:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _names() -> list[str]:
    """What to call each process of the command, by rank; empty if there is only one."""
    import torch

    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes < 2 or not torch.distributed.is_initialized():
        return []
    names: list[str] = [""] * processes
    rank = os.environ.get("RANK", "0")
    torch.distributed.all_gather_object(names, f"process {rank} (pid {os.getpid()} on {platform.node()})")
    return names
