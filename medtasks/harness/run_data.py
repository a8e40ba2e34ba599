"""The prepared data of a run, provided before the model is loaded."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.data.automatic import provide_data

from .command_line import read_commands


def provide_run_data(asked: Mapping[str, Any], ours: Sequence[str]) -> None:
    """Prepare the data that the tasks lack, if the user agrees to the download.

    In a command with several evaluations (``--config``), the first one prepares the data of all, so
    that the user is asked only once.

    Args:
        asked: the arguments of the harness's evaluation.
        ours: the names of its tasks that are medtasks' own.

    Raises:
        NotPreparedError: data are missing, and may not or cannot be downloaded.
    """
    tasks = [*ours]
    if asked.get("cli_args") is not None:
        for command in read_commands(sys.argv[1:]):
            tasks += command.ours
    benchmarks: dict[str, None] = {}  # an ordered set
    for name in tasks:
        for leaf in leaf_tasks(name):
            benchmarks[load_spec(leaf).metadata.benchmark] = None
    provide_data(list(benchmarks))
