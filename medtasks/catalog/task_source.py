"""Task and group files: their values with includes merged, the line of each value, and the check
against the schema of :mod:`medtasks.catalog.task_model`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from medtasks.catalog.contents import kind_of
from medtasks.catalog.harness_keys import Generation
from medtasks.catalog.marked_yaml import MarkedYaml, parse_yaml
from medtasks.catalog.task_model import GroupFile, TaskFile
from medtasks.core.findings import RULES, Finding, Place, Severity, finding
from medtasks.core.schema import Keys, field_name, own_problems, problems, shown, suggestion
from medtasks.core.text import first_names

_CODES = {"extra_forbidden": "MT107", "missing": "MT110"}
"""The rule for each of pydantic's types of error; all others are MT109."""
_UNREADABLE = {"MT101", "MT102", "MT104", "MT105"}


@dataclass
class TaskSource:
    """One task or group file.

    Attributes:
        path: the file.
        content: its values with includes merged; empty if it cannot be read.
        places: the place of every key and list item.
        defects: what is wrong with it.
        file: the content as `TaskFile` or `GroupFile`; None if it does not match that schema.
    """

    path: Path
    content: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, Place] = field(default_factory=dict)
    defects: list[Finding] = field(default_factory=list)
    file: Any = None

    @property
    def name(self) -> str:
        """The task's name in the harness, which is the file's stem."""
        return self.path.stem

    @property
    def kind(self) -> Literal["task", "group"]:
        """Whether it is a task or a group."""
        return kind_of(self.path)

    def place(self, *keys: str | int) -> Place:
        """Where the value at ``keys`` is, or where it would be added."""
        for length in range(len(keys), 0, -1):
            place = self.places.get(keys[:length])
            if place is not None:
                return place
        return Place(self.path, 1)

    def finding(
        self,
        code: str,
        message: str,
        *keys: str | int,
        fix: str | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """The finding of rule ``code`` about the value at ``keys``."""
        place = self.place(*keys)
        field = field_name(keys)
        return finding(code, self.name, message, place, field, fix=fix, severity=severity)


def read_task(path: Path) -> TaskSource:
    """Read and check a task or group file. Never raises.

    If a part of the file cannot be read, its keys are not checked.
    """
    source = TaskSource(path)
    source.content = _read_into(source, path, above=())
    unreadable = [
        defect
        for defect in source.defects
        if defect.code in _UNREADABLE or defect.field == "include"
    ]
    if unreadable:
        return source
    is_group = "group" in source.content
    if is_group != (source.kind == "group"):
        source.defects.append(_wrong_directory(source))
        return source
    name = source.content.get(source.kind)
    if isinstance(name, str) and name != source.name:
        message = (
            f"field `{source.kind}` is {shown(name)}, expected {source.name!r}, "
            "the name of the file"
        )
        source.defects.append(source.finding("MT106", message, source.kind))
    _check_schema(source)
    return source


def _read_into(source: TaskSource, path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """The content of ``path``, merged over that of the file that it includes.

    ``above`` are the files that include ``path``. Places and defects are added to ``source``.
    """
    marked = _parsed_mapping(source, path)
    if marked is None:
        return {}
    content = marked.content
    base: dict[str, Any] = {}
    if content.get("include") is not None:
        base = _included(source, path, content["include"], marked.lines["include",], above)
    _replace_places(source, path, marked.lines)
    merged = {**base, **content}
    merged.pop("include", None)
    return merged


def _parsed_mapping(source: TaskSource, path: Path) -> MarkedYaml | None:
    """The file as YAML, which is a mapping; otherwise None, and ``source`` gets a defect."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:  # not UTF-8, or a null byte in the path: ValueErrors
        message = f"not a readable UTF-8 file ({error})"
        source.defects.append(_defect("MT101", message, path, fix="fix or restore it"))
        return None
    marked = parse_yaml(text, path)
    source.defects += marked.defects
    content = marked.content
    if isinstance(content, dict):
        return marked
    if not marked.defects:
        state = "is empty" if content is None else f"contains {shown(content)}"
        message = f"the file {state}, expected a mapping of task keys"
        source.defects.append(_defect("MT102", message, path))
    return None


def _replace_places(source: TaskSource, path: Path, lines: Mapping[Keys, int]) -> None:
    """Add the places of a file's values, which replace those of the same keys in its include."""
    own_keys = {keys[0] for keys in lines if keys}
    for keys in list(source.places):
        if keys[0] in own_keys:
            del source.places[keys]
    for keys, line in lines.items():
        if keys:
            source.places[keys] = Place(path, line)


def _included(
    source: TaskSource, path: Path, include: Any, line: int, above: tuple[Path, ...]
) -> dict[str, Any]:
    """The content of the file that ``path`` includes; empty if it cannot be included."""
    stated = f"field `include` is {shown(include)}"
    if not isinstance(include, str) or not include.strip():
        message = f"{stated}, expected the name of one file, relative to this one"
        source.defects.append(_defect("MT109", message, path, line, "include"))
        return {}
    target = path.parent / include
    open_files = (*above, path.resolve())
    # Path.is_file raises for a name that is too long or has a null byte
    if not os.path.isfile(target):  # noqa: PTH113
        message = f"{stated}, expected a file"
        source.defects.append(_defect("MT104", message, path, line, "include"))
        return {}
    if target.resolve() in open_files:
        message = f"{stated}, which includes this file"
        source.defects.append(_defect("MT105", message, path, line, "include"))
        return {}
    return _read_into(source, target, open_files)


def _defect(
    code: str, message: str, path: Path, line: int = 1, field: str = "", fix: str | None = None
) -> Finding:
    """The finding of rule ``code`` about a line of the task's file or of one that it includes."""
    return finding(code, path.stem, message, Place(path, line), field, fix=fix)


def _wrong_directory(source: TaskSource) -> Finding:
    """The finding about a task in ``groups/``, or a group outside of it."""
    content, folder = "a group", "groups/"
    if source.kind == "group":
        content, folder = "a task", "the benchmark's directory"
    message = f"this is {content}, expected a {source.kind} because of its directory"
    return source.finding("MT115", message, "group", fix=f"move the file to {folder}")


def _check_schema(source: TaskSource) -> None:
    """Set ``source.file``, or add a defect for every value that does not match the schema."""
    model: type[TaskFile | GroupFile] = GroupFile if source.kind == "group" else TaskFile
    try:
        source.file = model.model_validate(source.content)
    except ValidationError as error:
        for problem in own_problems(list(problems(error, model))):
            code = problem.kind if problem.kind in RULES else _CODES.get(problem.kind, "MT109")
            source.defects.append(source.finding(code, problem.message, *problem.keys))
        return
    if isinstance(source.file, TaskFile):
        source.defects += _unknown_settings(source, source.file.generation_kwargs)


def _unknown_settings(source: TaskSource, generation: Generation) -> Iterator[Finding]:
    """Warnings about generation settings that back-ends do not share."""
    shared = Generation.model_fields
    for key in generation.model_extra or ():
        message = (
            f"field `generation_kwargs.{key[:80]}` is not a setting that back-ends share"
            f"{suggestion(key, shared)}, expected one of {first_names(shared, 8)}"
        )
        yield source.finding("MT117", message, "generation_kwargs", key)
