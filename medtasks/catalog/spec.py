"""Specifications of tasks and groups, read without importing the functions that they name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import LeftOut, kind_of, once, owner_of, resolve, task_files
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.registry import FilterInfo, code_left_out, filter_name, get_benchmark, get_filter
from medtasks.catalog.task_model import ORDER_METRICS, Metadata, prompt_metrics, read_task
from medtasks.catalog.task_source import FunctionName
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.files import short_hash
from medtasks.core.schema import suggestion


class TaskSpec(BaseModel, frozen=True):
    """One task or group; ``resolved`` is the whole content of its file with includes merged."""

    name: str
    kind: Literal["task", "group"]
    path: Path
    metadata: Metadata
    members: tuple[str, ...] = ()
    template: str | None = None
    stage1_template: str | None = None
    system_template: str | None = None
    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    generation: dict[str, Any] = {}
    resolved: dict[str, Any] = Field(default={}, repr=False)

    @property
    def benchmark(self) -> Benchmark:
        return get_benchmark(self.metadata.benchmark)

    @property
    def filter(self) -> FilterInfo:
        return get_filter(self.filters[-1])

    @property
    def repeats(self) -> int:
        """How often each question is asked."""
        return int(self.resolved.get("repeats") or 1)

    def function(self, key: str) -> Any:
        """The object that ``!function`` names at ``key`` of the task file; raises :class:`MedtasksError`."""
        name = self.resolved[key]
        try:
            return resolve(name)
        except LookupError as error:
            raise MedtasksError(f"{self.path}: field `{key}`: {name} cannot be imported ({error}).") from error

    @property
    def scores(self) -> tuple[str, ...]:
        """``metrics``, and those that only whole items of the task have."""
        order = ORDER_METRICS if self.metadata.options is not None else ()
        return (*self.metrics, *order, *prompt_metrics(len(self.metadata.prompts)))

    @property
    def templates(self) -> tuple[str, ...]:
        """Every template of the task, in the order of use."""
        named = (self.system_template, self.stage1_template, self.template, *self.metadata.prompts)
        return tuple(dict.fromkeys(filter(None, named)))

    @property
    def prompt_hash(self) -> str | None:
        """Hash of all ``templates`` and everything they include; None for a group."""
        return template_hash(*self.templates) if self.templates else None

    @property
    def yaml_hash(self) -> str:
        """First 16 hex digits of the SHA-256 over the merged YAML (layout and comments do not count).

        A function counts by its own name, not by the module that it is in. ``metadata.confidence`` and
        ``metadata.errors`` are left out: they add scores, whose signatures have them, and change no other.
        """
        added = ("confidence", "errors")
        metadata = {key: value for key, value in self.resolved.get("metadata", {}).items() if key not in added}
        hashed = {**self.resolved, "metadata": metadata} if metadata else self.resolved
        return short_hash(json.dumps(_own_names(hashed), sort_keys=True, ensure_ascii=False))


def _own_names(value: Any) -> Any:
    if isinstance(value, FunctionName):
        return value.rpartition(".")[2]
    if isinstance(value, dict):
        return {key: _own_names(item) for key, item in value.items()}
    return [_own_names(item) for item in value] if isinstance(value, list) else value


read_installed = once(read_task)
"""A task or group file, read once per catalog."""


@once
def load_specs() -> dict[str, TaskSpec]:
    """All tasks and groups by name; a faulty file of another package is left out with a warning."""
    specs = {}
    for name, path in task_files().items():
        package = owner_of(path)
        try:
            if code_left_out(package) is None:
                specs[name] = load_spec(name)
        except MedtasksError as error:
            if package.ours:
                raise
            LeftOut(package.owner, f"{kind_of(path)} {name}", str(error)).warn()
    return specs


@once
def load_spec(name: str) -> TaskSpec:
    """The task or group called ``name``; raises `UsageError` if there is none, `MedtasksError` if its file is faulty or
    the code of its package cannot be used."""
    path = task_files().get(name)
    if path is None:
        near = suggestion(name, task_files())
        raise UsageError(f"task {name!r} is unknown{near}; `medtasks list --all` shows all tasks.")
    if left_out := code_left_out(owner_of(path)):
        raise MedtasksError(f"task {name!r} cannot be used, because {left_out}")
    source = read_installed(path)
    errors = [one for one in source.defects if one.severity == "error"]
    if errors:
        first = errors[0]
        more = f" ({len(errors) - 1} more: medtasks validate {path})" if len(errors) > 1 else ""
        raise MedtasksError(f"{first.file}, line {first.line}: {first.message}{more}")
    content = source.content
    settings, pipelines = content.get("lmms_eval_specific_kwargs", {}), content.get("filter_list", ())
    return TaskSpec(
        name=name,
        kind=source.kind,
        path=path,
        metadata=source.file.metadata,
        members=tuple(content["task"] if source.kind == "group" else ()),
        template=settings.get("template"),
        stage1_template=settings.get("stage1_template"),
        system_template=settings.get("system_template"),
        metrics=tuple(entry["metric"] for entry in content.get("metric_list", ())),
        filters=tuple(filter_name(step["function"]) for pipeline in pipelines for step in pipeline["filter"]),
        generation=content.get("generation_kwargs", {}),
        resolved={key: value for key, value in content.items() if key != "dataset_kwargs"},
    )


@once
def leaf_tasks(name: str) -> tuple[str, ...]:
    """The names of the tasks in ``name``: itself, or those of a group, in order and without duplicates."""
    return tuple(dict.fromkeys(spec.name for spec in _everything_in(name, ()) if spec.kind == "task"))


@once
def inner_groups(name: str) -> tuple[str, ...]:
    """The groups in ``name``, itself first; none in a task."""
    return tuple(dict.fromkeys(spec.name for spec in _everything_in(name, ()) if spec.kind == "group"))


def _everything_in(name: str, above: tuple[str, ...]) -> Iterator[TaskSpec]:
    """``name`` and what it contains; raises :class:`UsageError` for an unknown member, or a group within itself."""
    spec = load_spec(name)
    yield spec
    for number, member in enumerate(spec.members):
        place = f"{spec.path}: field `task[{number}]` is {member!r}"
        if member not in task_files():
            near = suggestion(member, task_files())
            raise UsageError(f"{place}, expected a task or group{near}; correct it.")
        if member in (*above, name):
            raise UsageError(f"{place}, which contains this group, expected groups that end in tasks; remove it.")
        yield from _everything_in(member, (*above, name))
