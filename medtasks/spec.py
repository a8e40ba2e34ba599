"""What a task file says: the typed view of our YAML files, read without importing the functions they name."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medtasks.errors import MedtasksError, UsageError
from medtasks.packages import OURS
from medtasks.prompts import HASH_LENGTH, template_hash
from medtasks.task_files import owner_of, task_files

__all__ = ["TaskSpec", "leaf_tasks", "load_spec", "load_specs"]


class Metadata(BaseModel):
    """The ``metadata`` block of a task or group file; ``pooled`` are a group's metrics beside those of its tasks,
    ``learned`` a task's metrics that a model computes over all of its samples at once; ``rubrics`` are those under
    which a judge may score the task's responses, the one that is always shown first;
    ``compare_with`` is the task or group that asks the same questions in the plain way."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: float
    benchmark: str
    title: str
    breakdowns: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    rubrics: tuple[str, ...] = ()
    compare_with: str | None = None


class TaskSpec(BaseModel):
    """One task or group as its YAML file (with its includes) states it."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Literal["task", "group"]
    path: Path
    metadata: Metadata
    members: tuple[str, ...] = Field((), description="names of a group's tasks and groups")
    template: str | None = None
    stage1_template: str | None = None
    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    generation: dict[str, Any] = {}
    cluster_key: str | None = None
    resolved: dict[str, Any] = Field({}, repr=False, description="the YAML with its includes merged")

    @property
    def prompt_hash(self) -> str | None:
        """Hash of the template, with that of the first stage, and all they include; None for a group."""
        if self.template is None:
            return None
        return template_hash(*filter(None, (self.stage1_template, self.template)))

    @property
    def yaml_hash(self) -> str:
        """First 16 hex digits of the SHA-256 over the merged YAML (layout and comments do not count)."""
        text = json.dumps(self.resolved, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


class _Loader(yaml.SafeLoader):
    """Safe YAML in which ``!function a.b`` stays the text ``a.b``."""


_Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))  # type: ignore[arg-type]


def _merged(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    if path in above:
        raise MedtasksError(f"{path}: field `include`: the file includes itself; mend it.")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise MedtasksError(f"{path}: not a readable YAML file ({error}); mend or restore it.") from error
    if not isinstance(content, dict):
        raise MedtasksError(f"{path}: holds {type(content).__name__}, expected a mapping of task keys.")
    include = content.pop("include", None)
    if include is not None and not isinstance(include, str):
        raise MedtasksError(f"{path}: field `include` is {include!r}, expected the name of a file; mend it.")
    base = _merged(path.parent / include, (*above, path)) if include else {}
    return {**base, **content}


@functools.cache
def _load(path: Path, kind: Literal["task", "group"]) -> TaskSpec:
    content = _merged(path)
    name = content.get(kind)
    if name != path.stem:
        raise MedtasksError(f"{path}: `{kind}` is {name!r}, expected {path.stem!r}, the name of the file.")
    try:
        return TaskSpec(
            name=name,
            kind=kind,
            path=path,
            metadata=Metadata.model_validate(content.get("metadata")),
            members=tuple(content["task"]) if kind == "group" else (),
            template=(content.get("lmms_eval_specific_kwargs") or {}).get("template"),
            stage1_template=(content.get("lmms_eval_specific_kwargs") or {}).get("stage1_template"),
            metrics=tuple(entry["metric"] for entry in content.get("metric_list", ())),
            filters=tuple(
                step["function"].rpartition(".")[2]
                for pipeline in content.get("filter_list", ())
                for step in pipeline["filter"]
            ),
            generation=content.get("generation_kwargs") or {},
            cluster_key=content.get("cluster_key"),
            resolved={key: value for key, value in content.items() if key != "dataset_kwargs"},
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise MedtasksError(f"{path}: field `{field}`: {first['msg']}.") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise MedtasksError(
            f"{path}: breaks the schema of task files ({type(error).__name__}: {error}); `medtasks validate {path}` "
            "says where."
        ) from error


def load_specs() -> dict[str, TaskSpec]:
    """All tasks and groups by name; another package's file that breaks the schema is left out with a warning.

    Raises:
        MedtasksError: one of our files breaks the schema; names file and field.
    """
    specs = {}
    for name, kind, path in task_files():
        try:
            specs[name] = _load(path, kind)
        except MedtasksError as error:
            if owner_of(path).distribution == OURS:
                raise
            _warn_once(str(error))
    return specs


@functools.cache
def _warn_once(text: str) -> None:
    print(f"medtasks: left out: {text}", file=sys.stderr, flush=True)


def load_spec(name: str) -> TaskSpec:
    """The task or group called ``name``.

    Raises:
        UsageError: there is none of that name.
    """
    for found, kind, path in task_files():
        if found == name:
            return _load(path, kind)
    raise UsageError(f"task {name!r} is unknown; `medtasks list` shows what there is.")


def leaf_tasks(name: str) -> tuple[str, ...]:
    """Names of the tasks that ``name`` stands for: itself, or a group's, in order, each once."""
    spec = load_spec(name)
    if spec.kind == "task":
        return (name,)
    return tuple(dict.fromkeys(leaf for member in spec.members for leaf in leaf_tasks(member)))
