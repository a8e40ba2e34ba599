"""What a task file says: the typed view of our YAML files, read without importing the functions they name."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medtasks.errors import MedtasksError, UsageError
from medtasks.packages import OURS, LeftOut, warn
from medtasks.prompts import HASH_LENGTH, template_hash
from medtasks.task_files import owner_of, task_files

__all__ = ["TaskSpec", "filter_name", "leaf_tasks", "load_spec", "load_specs"]


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
        raise MedtasksError(f"{path}: field `include`: the file includes itself; fix it.")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise MedtasksError(f"{path}: not a readable YAML file ({error}); fix or restore it.") from error
    if not isinstance(content, dict):
        raise MedtasksError(f"{path}: holds {type(content).__name__}, expected a mapping of task keys.")
    include = content.pop("include", None)
    if include is not None and not isinstance(include, str):
        raise MedtasksError(f"{path}: field `include` is {include!r}, expected the name of a file; fix it.")
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
                filter_name(step["function"])
                for pipeline in content.get("filter_list", ())
                for step in pipeline["filter"]
            ),
            generation=content.get("generation_kwargs") or {},
            cluster_key=content.get("cluster_key"),
            resolved={key: value for key, value in content.items() if key != "dataset_kwargs"},
        )
    except ValidationError as error:
        raise MedtasksError(f"{path}: {'; '.join(map(_told, error.errors()))}.") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise MedtasksError(
            f"{path}: breaks the schema of task files ({type(error).__name__}: {error}); `medtasks validate {path}` "
            "says where."
        ) from error


def _told(error: Any) -> str:
    """One thing that the schema refuses, with the key that may have been meant."""
    field = ".".join(str(part) for part in error["loc"])
    if error["type"] != "extra_forbidden":
        return f"field `{field}`: {error['msg']}"
    near = get_close_matches(field, Metadata.model_fields, n=1)
    return f"the key `{field}` is unknown{f' (did you mean `{near[0]}`?)' if near else ''}"


def filter_name(path: str) -> str:
    """What a filter is called in manifests and protocol hashes: ours by its class, another package's in full.

    >>> filter_name("medtasks.filters.OptionLetterFilter"), filter_name("acme.letters.LetterFilter")
    ('OptionLetterFilter', 'acme.letters.LetterFilter')
    """
    return path.rpartition(".")[2] if path.startswith(f"{OURS}.") else path


def load_specs() -> dict[str, TaskSpec]:
    """All tasks and groups by name.

    Of other packages those are left out whose file breaks the schema, with a warning, and those whose code cannot be
    used, of which :mod:`medtasks.plugin` warns.

    Raises:
        MedtasksError: one of our files breaks the schema; names file and field.
    """
    specs = {}
    for name, kind, path in task_files():
        ours = owner_of(path).distribution == OURS
        try:
            if ours or _without_code(path) is None:
                specs[name] = _load(path, kind)
        except MedtasksError as error:
            if ours:
                raise
            _warn_once(str(error))
    return specs


def _without_code(path: Path) -> LeftOut | None:
    """Why nothing of the package of a task file can be used; None where it can."""
    from medtasks.registry import code_left_out

    return code_left_out(owner_of(path))


@functools.cache
def _warn_once(text: str) -> None:
    warn(f"left out: {text}")


def load_spec(name: str) -> TaskSpec:
    """The task or group called ``name``.

    Raises:
        UsageError: there is none of that name.
        MedtasksError: its file breaks the schema, or the code of its package cannot be used.
    """
    for found, kind, path in task_files():
        if found == name:
            owner = owner_of(path)
            if owner.distribution != OURS and _without_code(path) is not None:
                raise MedtasksError(
                    f"task {name!r} cannot be used: `medtasks doctor` says why {owner.owner} is left out."
                )
            return _load(path, kind)
    raise UsageError(f"task {name!r} is unknown; `medtasks list` shows what there is.")


def leaf_tasks(name: str) -> tuple[str, ...]:
    """Names of the tasks that ``name`` stands for: itself, or a group's, in order, each once.

    Raises:
        UsageError: there is none of that name, or a group holds one that there is not, or itself.
    """
    return tuple(dict.fromkeys(_leaves(name, ())))


def _leaves(name: str, above: tuple[str, ...]) -> Iterator[str]:
    spec = load_spec(name)
    if spec.kind == "task":
        yield name
        return
    known = {found for found, _, _ in task_files()}
    for number, member in enumerate(spec.members):
        place = f"{spec.path}: field `task[{number}]`: {member!r}"
        if member not in known:
            near = get_close_matches(member, known, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise UsageError(f"{place} is no task or group{meant}; correct it.")
        if member in (*above, name):
            raise UsageError(f"{place} holds the group again, expected groups that end in tasks; remove it.")
        yield from _leaves(member, (*above, name))
