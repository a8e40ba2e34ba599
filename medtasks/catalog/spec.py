"""The specifications of tasks and groups, made of their files without importing the functions that
they name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import kind_of, once, owner_of, resolve, task_files
from medtasks.catalog.key_types import FunctionName
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.registry import (
    FilterInfo,
    added_metrics,
    code_left_out,
    filter_name,
    get_benchmark,
    get_filter,
)
from medtasks.catalog.task_model import ORDER_METRICS, Metadata, prompt_metrics
from medtasks.catalog.task_package import LeftOut
from medtasks.catalog.task_source import TaskSource, read_task
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
        """The object that ``!function`` names at ``key`` of the task file.

        Raises:
            MedtasksError: it cannot be imported.
        """
        name = self.resolved[key]
        try:
            return resolve(name)
        except LookupError as error:
            raise MedtasksError(
                f"{self.path}: field `{key}`: {name} cannot be imported ({error})."
            ) from error

    @property
    def scores(self) -> tuple[str, ...]:
        """``metrics``, and those that only whole items of the task have."""
        order = ORDER_METRICS if self.metadata.options is not None else ()
        return (*self.metrics, *order, *prompt_metrics(len(self.metadata.prompts)))

    @property
    def learned(self) -> tuple[str, ...]:
        """The learned metrics: those that the file names, then those that packages add."""
        if self.kind == "group":
            return self.metadata.learned
        return tuple(dict.fromkeys((*self.metadata.learned, *added_metrics(self.name))))

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
        """First 16 hex digits of the SHA-256 over the merged YAML; layout and comments do not
        count.

        A function counts by its own name, not by the module that it is in. ``metadata.confidence``
        and ``metadata.errors`` are left out: they add scores, whose signatures have them, and
        change no other.
        """
        hashed = dict(self.resolved)
        metadata = dict(self.resolved.get("metadata", {}))
        if metadata:
            metadata.pop("confidence", None)
            metadata.pop("errors", None)
            hashed["metadata"] = metadata
        return short_hash(json.dumps(_own_names(hashed), sort_keys=True, ensure_ascii=False))


def _own_names(value: Any) -> Any:
    """``value`` with every function's dotted name replaced by its last part."""
    if isinstance(value, FunctionName):
        return value.rpartition(".")[2]
    if isinstance(value, dict):
        return {key: _own_names(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_own_names(item) for item in value]
    return value


read_installed = once(read_task)
"""A task or group file, read once per catalog."""


@once
def load_specs() -> dict[str, TaskSpec]:
    """All tasks and groups by name; a faulty file of another package is left out with a warning."""
    specs: dict[str, TaskSpec] = {}
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
    """The task or group called ``name``.

    Raises:
        UsageError: there is none.
        MedtasksError: its file is faulty, or the code of its package cannot be used.
    """
    path = task_files().get(name)
    if path is None:
        near = suggestion(name, task_files())
        raise UsageError(f"task {name!r} is unknown{near}; `medtasks list --all` shows all tasks.")
    left_out = code_left_out(owner_of(path))
    if left_out is not None:
        raise MedtasksError(f"task {name!r} cannot be used, because {left_out}")
    source = read_installed(path)
    _refuse_errors(source)
    return _spec_of(source)


def _spec_of(source: TaskSource) -> TaskSpec:
    """The specification in a file without errors."""
    content = source.content
    settings = content.get("lmms_eval_specific_kwargs", {})
    filters: list[str] = []
    for pipeline in content.get("filter_list", ()):
        filters.extend(filter_name(step["function"]) for step in pipeline["filter"])
    return TaskSpec(
        name=source.name,
        kind=source.kind,
        path=source.path,
        metadata=source.file.metadata,
        members=tuple(content["task"]) if source.kind == "group" else (),
        template=settings.get("template"),
        stage1_template=settings.get("stage1_template"),
        system_template=settings.get("system_template"),
        metrics=tuple(entry["metric"] for entry in content.get("metric_list", ())),
        filters=tuple(filters),
        generation=content.get("generation_kwargs", {}),
        resolved={key: value for key, value in content.items() if key != "dataset_kwargs"},
    )


def _refuse_errors(source: TaskSource) -> None:
    """Raise a `MedtasksError` with the first error of the file, if it has any."""
    errors = [defect for defect in source.defects if defect.severity == "error"]
    if not errors:
        return
    first = errors[0]
    more = f" ({len(errors) - 1} more: medtasks validate {source.path})" if errors[1:] else ""
    raise MedtasksError(f"{first.file}, line {first.line}: {first.message}{more}")


@once
def leaf_tasks(name: str) -> tuple[str, ...]:
    """The tasks in ``name``, in order and without duplicates: itself, or those of a group."""
    return _names_in(name, "task")


@once
def inner_groups(name: str) -> tuple[str, ...]:
    """The groups in ``name``, itself first; none in a task."""
    return _names_in(name, "group")


def _names_in(name: str, kind: str) -> tuple[str, ...]:
    """The names of the tasks, or of the groups, in ``name``, without duplicates."""
    names = [spec.name for spec in _everything_in(name, above=()) if spec.kind == kind]
    return tuple(dict.fromkeys(names))


def _everything_in(name: str, above: tuple[str, ...]) -> Iterator[TaskSpec]:
    """The task or group ``name`` and everything that it contains.

    Raises:
        UsageError: a member is unknown, or a group is within itself.
    """
    spec = load_spec(name)
    yield spec
    for number, member in enumerate(spec.members):
        place = f"{spec.path}: field `task[{number}]` is {member!r}"
        if member not in task_files():
            near = suggestion(member, task_files())
            raise UsageError(f"{place}, expected a task or group{near}; correct it.")
        if member in (*above, name):
            raise UsageError(
                f"{place}, which contains this group, expected groups that end in tasks; remove it."
            )
        yield from _everything_in(member, (*above, name))
