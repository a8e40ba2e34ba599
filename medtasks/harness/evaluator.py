"""lmms-eval's evaluator, wrapped: checks before a run, our scores, one sentence after an error."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from medtasks.catalog.contents import task_files
from medtasks.core.cache import can_be_written, writable_cache
from medtasks.core.errors import (
    MedtasksError,
    exit_with_sentence,
    first_line,
    interrupts_arrive,
)
from medtasks.core.settings import current_settings, stopped
from medtasks.runs.our_back_ends import BACK_ENDS, require_packages_of

_WRAPPED = "__medtasks__"
"""Attribute of the evaluator's module once its functions are wrapped."""
_DATASETS = "LMMS_EVAL_DATASETS_CACHE"
_ARGUMENTS: ContextVar[Mapping[str, Any]] = ContextVar("arguments", default=MappingProxyType({}))
"""The arguments of ``simple_evaluate``, because ``evaluate`` does not receive all of them."""


def wrap_evaluator() -> None:
    """Wrap the evaluator's functions once it is completely imported."""
    evaluator: Any = sys.modules.get("lmms_eval.evaluator")
    imported = hasattr(evaluator, "request_caching_arg_to_dict")  # its last definition
    if imported and not hasattr(evaluator, _WRAPPED):
        evaluator.evaluate = wrapped(evaluator.evaluate, with_our_scores)
        evaluator.simple_evaluate = wrapped(evaluator.simple_evaluate, with_checks)
        setattr(evaluator, _WRAPPED, True)


def wrapped(
    original: Callable[..., Any], ours: Callable[[Callable[..., Any], inspect.BoundArguments], Any]
) -> Callable[..., Any]:
    """A function called as ``original``, which passes ``original`` and the call to ``ours``."""

    @exit_with_sentence
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        return ours(original, call)

    return function


def with_checks(original: Callable[..., Any], call: inspect.BoundArguments) -> Any:
    """``simple_evaluate`` after our checks; its arguments are kept for :func:`with_our_scores`."""
    asked = call.arguments
    if not any(isinstance(task, str) for task in asked["tasks"]):
        asked["tasks"] = _tasks_named_like_folders() or asked["tasks"]
    ours = _our_names(asked["tasks"])
    token = _ARGUMENTS.set(asked)
    try:
        with interrupts_arrive():
            require_packages_of(asked["model"])
            if ours:
                _check(asked, ours)
            return original(*call.args, **call.kwargs)
    except Exception as error:
        if isinstance(error, MedtasksError) or current_settings().debug:
            raise
        cause = _our_error_behind(error)
        if cause is None and not ours:
            raise
        raise MedtasksError(_sentence_about(error, cause)) from error
    # before or after the evaluation, for example while the model is loaded
    except KeyboardInterrupt as error:
        if not ours or asked["cli_args"] is None:
            raise
        raise stopped("run the same command again") from error
    finally:
        _ARGUMENTS.reset(token)


def _sentence_about(error: Exception, cause: MedtasksError | None) -> str:
    """One sentence about an error of the harness: that of its ``cause`` if that is ours."""
    if cause is not None:
        return str(cause)
    return (
        f"the harness ended the run: {first_line(error).rstrip('.')} "
        "(--verbosity DEBUG shows where)."
    )


def _tasks_named_like_folders() -> list[str]:
    """The first of our tasks on the command line with the name of a directory, as a list.

    The harness takes such a name for the directory in the working directory, and runs nothing, or
    takes the ``benchmark.yaml`` there for a task.
    """
    values: list[str] = []
    for word, following in zip(sys.argv, [*sys.argv[1:], None], strict=True):
        if word.startswith("--tasks="):
            values.append(word.removeprefix("--tasks="))
        elif word == "--tasks" and following is not None:
            values.append(following)
    names = [name for name in values if Path(name).is_dir() and name in task_files()]
    return names[:1]


def _our_names(tasks: Iterable[Any]) -> list[str]:
    """The names of the tasks and groups among ``tasks`` that are ours."""
    from medtasks.catalog.spec import load_spec

    names: list[str] = []
    for task in tasks:
        if isinstance(task, str) and task in task_files():
            names.append(load_spec(task).name)
    return names


def _check(asked: Mapping[str, Any], ours: list[str]) -> None:
    """Check a run of our tasks, and prepare the harness for it."""
    from datasets.config import HF_DATASETS_CACHE

    from medtasks.harness.options import name_those_without_effect, refuse
    from medtasks.harness.run_data import provide_run_data

    refuse(asked, ours)
    provide_run_data(asked, ours)
    name_those_without_effect(asked, our_back_end=asked["model"] in BACK_ENDS)
    # the harness loads the one-row dataset of our task files through a cache
    if not os.environ.get(_DATASETS) and not can_be_written(Path(HF_DATASETS_CACHE)):
        os.environ[_DATASETS] = str(writable_cache() / "datasets")
    if isinstance(asked["model"], str):
        from medtasks.harness.model_fixes import load_what_generates

        load_what_generates(asked["model"], force_simple=bool(asked["force_simple"]))


def _our_error_behind(error: BaseException) -> MedtasksError | None:
    """The error of ours that caused ``error``, as when a package cannot be imported."""
    cause = error.__cause__ or error.__context__
    while cause is not None and not isinstance(cause, MedtasksError):
        cause = cause.__cause__ or cause.__context__
    return cause


def with_our_scores(original: Callable[..., Any], call: inspect.BoundArguments) -> Any:
    """``evaluate``, where medtasks handles our tasks' requests, scores and result directory."""
    tasks: dict[str, tuple[Any, Any]] = {}
    groups: dict[str, None] = {}  # an ordered set
    for entry in _our_entries(call.arguments["task_dict"]):
        if entry.task is None:
            groups[entry.name] = None
        else:
            tasks[entry.name] = (entry.spec, entry.task)
    if not tasks:
        return original(*call.args, **call.kwargs)
    from medtasks.harness.evaluation import Evaluation

    return Evaluation(call, tasks, list(groups), _ARGUMENTS.get()).run(original)


class _Entry(NamedTuple):
    """A task or group of ours; ``task`` is the harness's object, None for a group."""

    name: str
    spec: Any
    task: Any


def _our_entries(task_dict: Mapping[Any, Any]) -> Iterator[_Entry]:
    """Yield our tasks and groups in a (nested) task dictionary."""
    from medtasks.catalog.spec import load_specs

    specs = load_specs()
    for key, value in task_dict.items():
        name = getattr(key, "group_name", key)
        if isinstance(value, Mapping):
            if name in specs:
                yield _Entry(name, specs[name], None)
            yield from _our_entries(value)
        elif name in specs:
            config = getattr(value, "config", None)
            metadata = getattr(config, "metadata", None)
            # without it, this is the harness's own task of that name
            if isinstance(metadata, dict) and "benchmark" in metadata:
                yield _Entry(name, specs[name], value)
