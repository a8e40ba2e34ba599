"""Several processes of one command: what they pass to each other, and that they run the same
one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings
from medtasks.runs.unfinished import continue_run, run_of


def gathered(own: Any, *, everywhere: bool = False) -> list[Any]:
    """What every process passes, by rank, on the first process or ``everywhere``; else an empty
    list.
    """
    import torch

    if current_settings().processes < 2 or not torch.distributed.is_initialized():
        return [own]
    here = everywhere or torch.distributed.get_rank() == 0
    everyone: list[Any] = [None] * torch.distributed.get_world_size() if here else []
    if everywhere:
        torch.distributed.all_gather_object(everyone, own)
    else:
        torch.distributed.gather_object(own, everyone if here else None, dst=0)
    return everyone


def agree_with_first(folder: Path) -> None:
    """Have all processes answer the same command, and continue the run that the first one
    continues. Nodes may not share a file system: then each has its own replies, and only the first
    one deletes them in the end.
    """
    everyone = gathered((folder.name, run_of(folder) or uuid4().hex), everywhere=True)
    if len(everyone) == 1:
        return
    others = [number for number, (name, _) in enumerate(everyone) if name != everyone[0][0]]
    if others:
        raise UsageError(
            f"process {others[0]} of {len(everyone)} runs another command than the first one: its options, prepared "
            "data, task files or MEDTASKS_… variables differ; make them the same on all nodes."
        )
    continue_run(folder, current_settings().rank, everyone[0][1])
    gathered(None, everywhere=True)  # before a process reads what another one deletes


def leave_process_group() -> None:
    """The harness never leaves the process group, whose thread aborts the process if it outlives
    the interpreter: a finished run would exit with a failure code.
    """
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
