"""Several processes of one command: they exchange objects, and must run the same command."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings
from medtasks.runs.unfinished import continue_run, run_of


def gathered(own: Any, *, everywhere: bool = False) -> list[Any]:
    """The objects that all processes pass, by rank.

    Only the first process gets them, or every process with ``everywhere``; others get an empty
    list.
    """
    import torch

    if current_settings().processes < 2 or not torch.distributed.is_initialized():
        return [own]
    places: list[Any] = [None] * torch.distributed.get_world_size()
    if everywhere:
        torch.distributed.all_gather_object(places, own)
        return places
    if torch.distributed.get_rank() == 0:
        torch.distributed.gather_object(own, places, dst=0)
        return places
    torch.distributed.gather_object(own, None, dst=0)
    return []


def agree_with_first(folder: Path) -> None:
    """Have all processes continue the run that the first one continues.

    Nodes may not share a file system: then each has its own replies, and only the first one deletes
    them in the end.

    Raises:
        UsageError: a process answers another command.
    """
    processes = gathered((folder.name, run_of(folder) or uuid4().hex), everywhere=True)
    if len(processes) == 1:
        return
    first_name, first_run = processes[0]
    for number, (name, _) in enumerate(processes):
        if name != first_name:
            raise UsageError(
                f"process {number} of {len(processes)} runs another command than the first one: "
                "its options, prepared data, task files or MEDTASKS_… variables differ; make them "
                "the same on all nodes."
            )
    continue_run(folder, current_settings().rank, first_run)
    gathered(None, everywhere=True)  # before a process reads what another one deletes


def leave_process_group() -> None:
    """Leave torch's process group, which the harness never does.

    Its thread aborts the process if it outlives the interpreter: a finished run would exit with a
    failure code.
    """
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
