"""Our tasks in lmms-eval's task index."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from medtasks.catalog.contents import kind_of, task_files
from medtasks.core.errors import first_line
from medtasks.harness.evaluator import wrap_evaluator


def task_index() -> dict[str, dict[str, Any]]:
    """Our entries of the harness's task index, from the directory layout without parsing YAML."""
    index: dict[str, dict[str, Any]] = {}
    for name, path in task_files().items():
        index[name] = {"type": kind_of(path), "yaml_path": str(path)}
        if kind_of(path) == "group":
            index[name]["task"] = -1  # tells the harness to read the members from the file
    return index


def step_aside(error: BaseException) -> None:
    """Report an error of ours, after which lmms-eval continues alone."""
    print(
        f"medtasks: {first_line(error)} (lmms-eval continues without medtasks)",
        file=sys.stderr,
        flush=True,
    )


@functools.cache
def watch_task_manager() -> None:
    """Have lmms-eval's task manager add our tasks to every index that it makes."""
    from lmms_eval.tasks import TaskManager

    original = TaskManager.initialize_tasks

    @functools.wraps(original)
    def initialize_tasks(self: Any, include_path: Any = None, include_defaults: bool = True) -> Any:
        with _parsed_by_libyaml():
            index = original(self, include_path=include_path, include_defaults=include_defaults)
        try:
            # without either, the index would be empty
            if include_defaults or include_path is None:
                _add_our_tasks(index)
            wrap_evaluator()
        except Exception as error:
            step_aside(error)
        return index

    TaskManager.initialize_tasks = initialize_tasks


def _add_our_tasks(index: dict[str, dict[str, Any]]) -> None:
    """Add our tasks to the harness's index, except those whose names are taken."""
    for name, entry in task_index().items():
        taken = str(index.setdefault(name, entry)["yaml_path"])
        ours = str(entry["yaml_path"])
        if Path(taken).resolve() != Path(ours).resolve():
            print(
                f"medtasks: task {name} is already defined by {taken}; that one is used, "
                f"not {ours}; rename one of them.",
                file=sys.stderr,
                flush=True,
            )


@contextmanager
def _parsed_by_libyaml() -> Iterator[None]:
    """Have the harness's index parse its 3,200 task files in C.

    Parsing them takes half of the time in which lmms-eval starts.
    """
    yaml: Any = import_module("yaml")
    original = yaml.full_load
    loader = _loader_in_c(yaml)

    def full_load(file: Any) -> Any:
        try:
            return yaml.load(file, loader)
        except yaml.YAMLError:  # the parsers differ in details
            file.seek(0)
            return original(file)

    yaml.full_load = full_load
    try:
        yield
    finally:
        yaml.full_load = original


def _loader_in_c(yaml: Any) -> Any:
    """A loader like the harness's, which ignores ``!function``, in C where libyaml is installed."""
    from lmms_eval.utils import ignore_constructor

    base = getattr(yaml, "CFullLoader", yaml.FullLoader)
    loader: Any = type("Loader", (base,), {})
    loader.add_constructor("!function", ignore_constructor)
    return loader
