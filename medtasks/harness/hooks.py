"""Wrappers of the harness's ``simple_evaluate`` and ``evaluate``: checks before, one sentence after an error.

This module is imported in every run of the harness, the evaluation itself only if our tasks are run.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medtasks.core.cache import can_be_written, writable_cache
from medtasks.core.errors import MedtasksError, UsageError, exit_with_sentence, first_line, interrupts_arrive
from medtasks.core.settings import current_settings, stopped

from .backends import load_what_generates
from .installed import lack_of

if TYPE_CHECKING:
    from medtasks.catalog.spec import TaskSpec

_DATASETS = "LMMS_EVAL_DATASETS_CACHE"
_ARGUMENTS: ContextVar[Mapping[str, Any]] = ContextVar("arguments", default=MappingProxyType({}))
"""The arguments of ``simple_evaluate``: ``evaluate`` does not receive those that select the model."""


def noting_arguments(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``simple_evaluate`` with our checks, and keep its arguments for :func:`with_our_scores`."""

    @exit_with_sentence
    @functools.wraps(original)
    def simple_evaluate(*args: Any, **kwargs: Any) -> Any:
        from medtasks.catalog.contents import task_files
        from medtasks.catalog.spec import load_spec

        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        asked = call.arguments
        if not asked["tasks"]:
            # The harness takes our task for a directory of that name below the working directory, and runs nothing.
            given = [word.removeprefix("--tasks=") for word in sys.argv if word.startswith("--tasks=")]
            given += [name for option, name in pairwise(sys.argv) if option == "--tasks"]
            asked["tasks"] = [name for name in given if Path(name).is_dir() and name in task_files()][:1]
        ours = [load_spec(name).name for name in asked["tasks"] if isinstance(name, str) and name in task_files()]
        noted = _ARGUMENTS.set(asked)
        try:
            with interrupts_arrive():
                if ours:
                    refuse(asked, ours)
                    from datasets.config import HF_DATASETS_CACHE

                    # the harness loads the one-row dataset of our task files through a cache
                    if not os.environ.get(_DATASETS) and not can_be_written(Path(HF_DATASETS_CACHE)):
                        os.environ[_DATASETS] = str(writable_cache() / "datasets")
                    if isinstance(asked["model"], str):
                        load_what_generates(asked["model"], force_simple=bool(asked["force_simple"]))
                return original(*call.args, **call.kwargs)
        except Exception as error:
            if isinstance(error, MedtasksError) or current_settings().debug:
                raise
            cause = error.__cause__ or error.__context__
            while cause is not None and not isinstance(cause, MedtasksError):  # of a package that cannot be imported
                cause = cause.__cause__ or cause.__context__
            if cause is None and not ours:
                raise
            ended = f"the harness ended the run: {first_line(error).rstrip('.')} (--verbosity DEBUG shows where)."
            raise MedtasksError(str(cause or ended)) from error
        except KeyboardInterrupt as error:  # before or after the evaluation, for example while the model is loaded
            if not ours or asked["cli_args"] is None:
                raise
            raise stopped("run the same command again") from error
        finally:
            _ARGUMENTS.reset(noted)

    return simple_evaluate


def with_our_scores(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``evaluate`` so that medtasks handles our tasks' requests, scores and result directory."""

    @exit_with_sentence
    @functools.wraps(original)
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        entries = list(_our_entries(call.arguments["task_dict"]))
        ours = {name: (spec, task) for name, spec, task in entries if task is not None}
        if not ours:
            return original(*args, **kwargs)
        from medtasks.harness.evaluation import Evaluation

        groups = dict.fromkeys(name for name, _, task in entries if task is None)
        return Evaluation(call, ours, list(groups), _ARGUMENTS.get()).run(original)

    return evaluate


def _our_entries(task_dict: Mapping[Any, Any]) -> Iterator[tuple[str, TaskSpec, Any]]:
    """Name, specification and harness object of our tasks in a (nested) task dictionary; groups have None as object."""
    from medtasks.catalog.spec import load_specs

    specs = load_specs()
    for key, value in task_dict.items():
        name = getattr(key, "group_name", key)
        if isinstance(value, Mapping):
            if name in specs:
                yield name, specs[name], None
            yield from _our_entries(value)
        elif name in specs:
            metadata = getattr(getattr(value, "config", None), "metadata", None)
            if isinstance(metadata, dict) and "benchmark" in metadata:  # else the harness's own task of that name
                yield name, specs[name], value


def refuse(asked: Mapping[str, Any], ours: Sequence[str]) -> None:
    """Reject options that our tasks do not support, missing data, and back-ends that cannot be used."""
    from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
    from medtasks.data.store import open_prepared

    if shots := asked.get("num_fewshot"):
        shown = [f"{name}_1shot" for name in ours if f"{name}_1shot" in load_specs()]
        advice = f"run {', '.join(shown)}" if shown else "leave the option out"
        raise UsageError(f"--num_fewshot is {shots}, but examples are part of a task's prompt here: {advice}.")
    if asked.get("use_cache"):
        raise UsageError(
            "--use_cache is not supported by tasks of medtasks, and resuming needs no cache: every reply is stored as "
            "it arrives, and the same command continues; leave the option out."
        )
    for benchmark in {load_spec(leaf).metadata.benchmark: None for name in ours for leaf in leaf_tasks(name)}:
        open_prepared(benchmark)
    model, simple = asked.get("model"), bool(asked.get("force_simple"))
    if not isinstance(model, str):
        return
    if model == "llava_hf" and simple:
        raise UsageError(
            "llava_hf cannot run our tasks with --force_simple, where it may answer a request with the response to "
            "another one; leave the option out."
        )
    if lack := lack_of(model, force_simple=simple):
        fix = f": {lack.fix}" if lack.fix else ""
        raise MedtasksError(f"back-end {model} cannot be used: {lack.found}{fix}")
    placed = current_settings().processes > 1 or "device_map" in str(asked.get("model_args"))
    if model == "llava_hf" and not placed:  # its default device_map is empty
        raise UsageError(
            f"{model} needs device_map in --model_args, for example device_map=auto: transformers refuses its "
            "empty default."
        )
