"""A task file as plain values with includes merged, and the file and line of every value."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml

from medtasks.catalog.contents import kind_of
from medtasks.core.findings import Finding, Place, Severity, finding
from medtasks.core.schema import Keys, field_name, shown
from medtasks.core.text import shortened

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"


class FunctionName(str):
    """The dotted name after ``!function``."""

    __slots__ = ()


@dataclass
class TaskSource:
    """One task or group file: ``content`` is empty if it cannot be read, ``files`` are itself and those it includes,
    and ``file`` is the content as `TaskFile` or `GroupFile`, None if it does not match that schema."""

    path: Path
    content: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, Place] = field(default_factory=dict)
    defects: list[Finding] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
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
        known = (self.places[keys[:length]] for length in range(len(keys), 0, -1) if keys[:length] in self.places)
        return next(known, Place(self.path, 1))

    def finding(
        self, code: str, message: str, *keys: str | int, fix: str | None = None, severity: Severity | None = None
    ) -> Finding:
        """The finding of rule ``code`` about the value at ``keys``."""
        return finding(code, self.name, message, self.place(*keys), field_name(keys), fix=fix, severity=severity)


def read_source(path: Path) -> TaskSource:
    """The file at ``path`` with all that it includes, not yet compared with the schema. Never raises."""
    source = TaskSource(path)
    source.content = _read_into(source, path, ())
    return source


def _read_into(source: TaskSource, path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """The content of ``path``, which the files ``above`` include, over that of the file that it includes."""

    def refuse(code: str, message: str, line: int = 1, field: str = "", fix: str | None = None) -> None:
        source.defects.append(finding(code, path.stem, message, Place(path, line), field, fix=fix))

    source.files.append(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:  # UnicodeDecodeError and embedded null bytes are ValueErrors
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
            refuse("MT109", f"{said}, expected the name of one file, relative to this one", line, "include")
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
    """The values of ``text`` (None if unreadable), the lines of all keys and items, and the defects."""
    lines: dict[Keys, int] = {}
    defects: list[Finding] = []
    content = None

    def refuse(code: str, message: str, line: int, keys: Keys = (), fix: str | None = None) -> None:
        defects.append(finding(code, path.stem, message, Place(path, line), field_name(keys), fix=fix))

    def visit(node: yaml.Node, keys: Keys) -> None:
        """Record the lines of a value and of everything in it but aliases, and remove keys that are not strings."""
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
                refuse("MT103", f"the key {key!r} is duplicated (lines {lines[here]} and {line})", line, here)
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
        refuse("MT101", f"not valid YAML: {shortened(str(error.problem), 200)}", mark.line + 1 if mark else 1)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        refuse("MT101", f"not valid YAML: {error.reason}", line, fix="remove the character")
    except RecursionError:
        refuse("MT101", "not a task file: nested too deeply", 1, fix="write it flat")
    return content, lines, defects


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's loader (libyaml, six times as fast as its own code) with ``!function``, whose errors all have a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # PyYAML does not catch what int(), float() and its own indexing raise
            problem = f"{shown(node.value)} cannot be read ({error})"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


_Loader.add_constructor("!function", lambda loader, node: FunctionName(loader.construct_scalar(node)))
