"""Task and group files: their values with includes merged and the line of each, checked by the
schema of :mod:`medtasks.catalog.task_model`; and the specifications made of them, without importing
the functions that they name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import LeftOut, kind_of, once, owner_of, resolve, task_files
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.registry import (
    FilterInfo,
    code_left_out,
    filter_name,
    get_benchmark,
    get_filter,
)
from medtasks.catalog.task_model import (
    ORDER_METRICS,
    FunctionName,
    GroupFile,
    Metadata,
    TaskFile,
    prompt_metrics,
)
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.files import short_hash
from medtasks.core.findings import Finding, Place, Severity, finding
from medtasks.core.schema import Keys, field_name, problems, shown, suggestion
from medtasks.core.text import first_names, shortened
from medtasks.core.yaml_files import MarkedLoader

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"
_CODES = {"extra_forbidden": "MT107", "missing": "MT110"}
_UNREADABLE = {"MT101", "MT102", "MT104", "MT105"}


@dataclass
class TaskSource:
    """One task or group file: ``content`` is empty if it cannot be read, ``file`` is the content as
    `TaskFile` or `GroupFile`, None if it does not match that schema.
    """

    path: Path
    content: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, Place] = field(default_factory=dict)
    defects: list[Finding] = field(default_factory=list)
    file: Any = None

    @property
    def name(self) -> str:
        """Its name in the harness, which is the file's stem."""
        return self.path.stem

    @property
    def kind(self) -> Literal["task", "group"]:
        """Whether it is a task or a group."""
        return kind_of(self.path)

    def place(self, *keys: str | int) -> Place:
        """Where the value at ``keys`` is, or where it would be added."""
        known = (
            self.places[keys[:length]]
            for length in range(len(keys), 0, -1)
            if keys[:length] in self.places
        )
        return next(known, Place(self.path, 1))

    def finding(
        self,
        code: str,
        message: str,
        *keys: str | int,
        fix: str | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """The finding of rule ``code`` about the value at ``keys``."""
        return finding(
            code,
            self.name,
            message,
            self.place(*keys),
            field_name(keys),
            fix=fix,
            severity=severity,
        )


def _read_into(source: TaskSource, path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """The content of ``path``, which the files ``above`` include, over that of the file that it
    includes.
    """

    def refuse(
        code: str, message: str, line: int = 1, field: str = "", fix: str | None = None
    ) -> None:
        source.defects.append(finding(code, path.stem, message, Place(path, line), field, fix=fix))

    try:
        text = path.read_bytes().decode("utf-8")
    except (
        OSError,
        ValueError,
    ) as error:  # UnicodeDecodeError and embedded null bytes are ValueErrors
        refuse("MT101", f"not a readable UTF-8 file ({error})", fix="fix or restore it")
        return {}
    content, lines, defects = parse_yaml(text, path)
    source.defects += defects
    if not isinstance(content, dict):
        if not defects:
            found = "is empty" if content is None else f"contains {shown(content)}"
            refuse("MT102", f"the file {found}, expected a mapping of task keys")
        return {}
    base, include = {}, content.get("include")
    if include is not None:
        here, target = (*above, path.resolve()), path.parent / str(include)
        said, line = f"field `include` is {shown(include)}", lines["include",]
        if not isinstance(include, str) or not include.strip():
            refuse(
                "MT109",
                f"{said}, expected the name of one file, relative to this one",
                line,
                "include",
            )
        elif not os.path.isfile(target):  # noqa: PTH113  (False for a name that is too long or has a null byte)
            refuse("MT104", f"{said}, expected a file", line, "include")
        elif target.resolve() in here:
            refuse("MT105", f"{said}, which includes this file", line, "include")
        else:
            base = _read_into(source, target, here)
    own = {keys[0] for keys in lines if keys}
    source.places = {keys: place for keys, place in source.places.items() if keys[0] not in own}
    source.places.update({keys: Place(path, line) for keys, line in lines.items() if keys})
    return {key: value for key, value in {**base, **content}.items() if key != "include"}


@lru_cache(maxsize=256)  # many tasks include the same file
def parse_yaml(text: str, path: Path) -> tuple[Any, dict[Keys, int], list[Finding]]:
    """The values of ``text`` (None if unreadable), the lines of all keys and items, and the
    defects.
    """
    lines: dict[Keys, int] = {}
    defects: list[Finding] = []
    content = None

    def refuse(code: str, message: str, line: int, keys: Keys = (), fix: str | None = None) -> None:
        defects.append(
            finding(code, path.stem, message, Place(path, line), field_name(keys), fix=fix)
        )

    def visit(node: yaml.Node, keys: Keys) -> None:
        """Record the lines of a value and of everything in it but aliases, and remove keys that are
        not strings.
        """
        lines.setdefault(keys, node.start_mark.line + 1)
        if id(node) in visited or isinstance(node, yaml.ScalarNode):
            return
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                visit(item, (*keys, number))
            return
        own = set[Keys]()
        for pair in [pair for pair in node.value if pair[0].tag != _MERGE]:
            key, line = pair[0].value, pair[0].start_mark.line + 1
            here: Keys = (*keys, str(key))
            if pair[0].tag != _TEXT:
                refuse("MT109", f"the key {shown(str(key))} is not a string", line, fix="quote it")
                node.value.remove(pair)
                continue
            if here in own:
                refuse(
                    "MT103",
                    f"the key {key!r} is duplicated (lines {lines[here]} and {line})",
                    line,
                    here,
                )
            own.add(here)
            lines[here] = line
            visit(pair[1], here)

    visited = set[int]()
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            visit(node, ())
            content = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        refuse(
            "MT101",
            f"not valid YAML: {shortened(str(error.problem), 200)}",
            mark.line + 1 if mark else 1,
        )
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        refuse("MT101", f"not valid YAML: {error.reason}", line, fix="remove the character")
    except RecursionError:
        refuse("MT101", "not a task file: nested too deeply", 1, fix="write it flat")
    return content, lines, defects


class _Loader(MarkedLoader):
    """With ``!function``."""


_Loader.add_constructor(
    "!function", lambda loader, node: FunctionName(loader.construct_scalar(node))
)


def read_task(path: Path) -> TaskSource:
    """Read and check a task or group file. Never raises.

    Nothing is said about the keys of a file if a part of it cannot be read.
    """
    source = TaskSource(path)
    source.content, defects, kind = _read_into(source, path, ()), source.defects, source.kind
    if any(defect.code in _UNREADABLE or defect.field == "include" for defect in defects):
        return source
    if ("group" in source.content) != (kind == "group"):
        content, folder = (
            ("a task", "the benchmark's directory") if kind == "group" else ("a group", "groups/")
        )
        message = f"this is {content}, expected a {kind} because of its directory"
        defects.append(source.finding("MT115", message, "group", fix=f"move the file to {folder}"))
        return source
    name = source.content.get(kind)
    if isinstance(name, str) and name != source.name:
        message = f"field `{kind}` is {shown(name)}, expected {source.name!r}, the name of the file"
        defects.append(source.finding("MT106", message, kind))
    model: type[TaskFile | GroupFile] = GroupFile if kind == "group" else TaskFile
    try:
        source.file = model.model_validate(source.content)
    except ValidationError as error:
        found = list(problems(error, model))
        lists = {one.keys[:length] for one in found for length in range(len(one.keys))}
        unknown_keys = [one.keys for one in found if one.kind == "extra_forbidden"]
        for one in found:
            if one.kind == "too_short" and one.keys in lists:
                continue  # without the items that are wrong, which are reported
            if one.kind == "missing" and any(
                keys[:-1] == one.keys[:-1] and suggestion(keys[-1], [str(one.keys[-1])])
                for keys in unknown_keys
            ):
                continue  # misspelt: the unknown key is reported, with this one as its suggestion
            code = one.kind if one.kind.startswith("MT") else _CODES.get(one.kind, "MT109")
            defects.append(source.finding(code, one.message, *one.keys))
        return source
    generation: Any = getattr(source.file, "generation_kwargs", None)  # a group has none
    for key in generation.model_extra or () if generation is not None else ():
        known = type(generation).model_fields
        message = f"field `generation_kwargs.{key[:80]}` is not a setting that back-ends share"
        message += f"{suggestion(key, known)}, expected one of {first_names(known, 8)}"
        defects.append(source.finding("MT117", message, "generation_kwargs", key))
    return source


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
        """The object that ``!function`` names at ``key`` of the task file; raises
        :class:`MedtasksError`.
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
        """First 16 hex digits of the SHA-256 over the merged YAML (layout and comments do not
        count).

        A function counts by its own name, not by the module that it is in. ``metadata.confidence``
        and ``metadata.errors`` are left out: they add scores, whose signatures have them, and
        change no other.
        """
        added = ("confidence", "errors")
        metadata = {
            key: value
            for key, value in self.resolved.get("metadata", {}).items()
            if key not in added
        }
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
    """The task or group called ``name``; raises `UsageError` if there is none, `MedtasksError` if
    its file is faulty or the code of its package cannot be used.
    """
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
    settings, pipelines = (
        content.get("lmms_eval_specific_kwargs", {}),
        content.get("filter_list", ()),
    )
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
        filters=tuple(
            filter_name(step["function"]) for pipeline in pipelines for step in pipeline["filter"]
        ),
        generation=content.get("generation_kwargs", {}),
        resolved={key: value for key, value in content.items() if key != "dataset_kwargs"},
    )


@once
def leaf_tasks(name: str) -> tuple[str, ...]:
    """The names of the tasks in ``name``: itself, or those of a group, in order and without
    duplicates.
    """
    return tuple(
        dict.fromkeys(spec.name for spec in _everything_in(name, ()) if spec.kind == "task")
    )


@once
def inner_groups(name: str) -> tuple[str, ...]:
    """The groups in ``name``, itself first; none in a task."""
    return tuple(
        dict.fromkeys(spec.name for spec in _everything_in(name, ()) if spec.kind == "group")
    )


def _everything_in(name: str, above: tuple[str, ...]) -> Iterator[TaskSpec]:
    """``name`` and what it contains; raises :class:`UsageError` for an unknown member, or a group
    within itself.
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
