"""Options of the harness that cannot work with our tasks, refused before a model is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from medtasks.errors import MedtasksError, UsageError

_TWIN = "_1shot"
_NEEDS_DEVICE_MAP = frozenset({"llava_hf"})
"""Back-ends whose default is an empty ``device_map``, unless there are several processes."""


def tasks_of_ours(asked: Mapping[str, Any]) -> list[str]:
    """Our tasks and groups among those that ``simple_evaluate`` will run."""
    from medtasks.spec import load_specs

    specs = load_specs()
    return [name for name in asked.get("tasks") or () if isinstance(name, str) and name in specs]


def task_named_like_a_directory(asked: Mapping[str, Any]) -> str | None:
    """Our task given as ``--tasks`` if the working directory has a directory of that name, else None.

    The harness takes such a name for a directory with task files, finds none in it, and runs nothing.
    """
    from medtasks.spec import load_specs

    if asked.get("tasks"):
        return None
    given = [word.removeprefix("--tasks=") for word in sys.argv if word.startswith("--tasks=")]
    given += [name for option, name in pairwise(sys.argv) if option == "--tasks"]
    return next((name for name in given if Path(name).is_dir() and name in load_specs()), None)


def refuse(asked: Mapping[str, Any], ours: Sequence[str]) -> None:
    """Refuse options that our tasks do not support, and a back-end that lacks something.

    Raises:
        UsageError: ``--num_fewshot`` was given, an argument that the back-end needs was not, or it is unknown.
        MedtasksError: the back-end cannot be imported; the message tells what to install.
    """
    from .installed import lack_of

    if asked.get("num_fewshot"):
        raise UsageError(_instead_of_shots(asked["num_fewshot"], ours))
    model = asked.get("model")
    if isinstance(model, str):
        lack = lack_of(model, force_simple=bool(asked.get("force_simple")))
        if lack is not None:
            fix = f": {lack.fix}" if lack.fix else ""
            raise MedtasksError(f"back-end {model} cannot be used: {lack.found}{fix}")
        if model in _NEEDS_DEVICE_MAP and not _places_itself(asked.get("model_args")):
            raise UsageError(
                f"{model} needs device_map among its --model_args, for example device_map=auto: transformers refuses "
                "the empty one that it has by default."
            )


def _instead_of_shots(shots: Any, ours: Sequence[str]) -> str:
    """One sentence that names for each task the one to run instead."""
    from medtasks.spec import load_specs

    specs = load_specs()
    twins = {name: f"{name}{_TWIN}" for name in ours if f"{name}{_TWIN}" in specs}
    shown = [name for name in ours if name.endswith(_TWIN)]
    none = [name for name in ours if name not in twins and name not in shown]
    said = [f"run {', '.join(twins.values())} instead of {', '.join(twins)}"] if twins else []
    said += [f"{', '.join(shown)} shows one example without it"] if shown else []
    said += [f"there is no version of {', '.join(none)} with examples"] if none else []
    return f"--num_fewshot is {shots}, but examples are part of a task's prompt here: {'; '.join(said)}."


def _places_itself(model_args: Any) -> bool:
    return (
        int(os.environ.get("WORLD_SIZE", "1")) > 1
        or "device_map=" in str(model_args)
        or (isinstance(model_args, Mapping) and "device_map" in model_args)
    )
