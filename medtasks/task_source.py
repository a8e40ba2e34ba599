"""A task file as plain values with its includes merged, and for every value the file and line it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from medtasks.schema import Keys, shown

Kind = Literal["task", "group"]

MOST_VALUES = 100_000
"""Values that a file may hold, aliases expanded: a few bytes of nested aliases can stand for billions."""

_MERGE = "tag:yaml.org,2002:merge"
_PLAIN = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class Place(NamedTuple):
    """A line of a file, counted from 1."""

    file: Path
    line: int


class FunctionName(str):
    """The dotted name after ``!function``."""

    __slots__ = ()


@dataclass(frozen=True)
class Defect:
    """Something wrong with a task file by itself; ``code`` is that of the finding (:mod:`medtasks.validation`)."""

    code: str
    message: str
    place: Place
    keys: Keys = ()


@dataclass
class TaskSource:
    """One task or group file; ``content`` is empty if it cannot be read, ``files`` are itself and what it includes."""

    path: Path
    content: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, Place] = field(default_factory=dict)
    defects: list[Defect] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name under which the harness knows it: that of the file."""
        return self.path.stem

    @property
    def kind(self) -> Kind:
        """Whether it is a task or a group."""
        return kind_of(self.path)

    def place(self, *keys: str | int) -> Place:
        """Where the value at ``keys`` is, or where it would be added."""
        for length in range(len(keys), 0, -1):
            if keys[:length] in self.places:
                return self.places[keys[:length]]
        return Place(self.path, 1)

    def block(self, key: str) -> dict[str, Any]:
        """The mapping under ``key``; empty if there is none."""
        value = self.content.get(key)
        return value if isinstance(value, dict) else {}

    def entries(self, *keys: str) -> Iterator[tuple[int, Any]]:
        """The items of the list at ``keys``, numbered; none if there is no list."""
        value: Any = self.content
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        yield from enumerate(value if isinstance(value, list) else [])


def kind_of(path: Path) -> Kind:
    """Whether a file is a group's: groups are in ``groups/``."""
    return "group" if path.parent.name == "groups" else "task"


def read_task(path: Path) -> TaskSource:
    """The task or group file ``path``; never raises: what is wrong is in ``defects``."""
    source = TaskSource(path)
    source.content = _merged(source, path, ())
    return source


def _merged(source: TaskSource, path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    source.files.append(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:  # UnicodeDecodeError and embedded null bytes are ValueErrors
        source.defects.append(
            Defect("MT101", f"not a readable UTF-8 file ({error}); fix or restore it.", Place(path, 1))
        )
        return {}
    content, lines, defects = parse_yaml(text, path)
    source.defects += defects
    if not isinstance(content, dict):
        if not defects:
            message = f"the file holds {shown(content)}, expected a mapping of task keys; write `key: value`."
            source.defects.append(Defect("MT102", message, Place(path, 1)))
        return {}
    include = content.pop("include", None)
    base = _included(source, path, include, Place(path, lines["include",]), above) if include is not None else {}
    own = {keys[0] for keys in lines if keys}
    source.places = {keys: place for keys, place in source.places.items() if keys[0] not in own}
    source.places.update({keys: Place(path, line) for keys, line in lines.items() if keys})
    return {**base, **content}


def _included(source: TaskSource, path: Path, include: Any, place: Place, above: tuple[Path, ...]) -> dict[str, Any]:
    def refused(code: str, message: str) -> dict[str, Any]:
        source.defects.append(Defect(code, f"field `include` {message}", place, ("include",)))
        return {}

    if not isinstance(include, str) or not include.strip():
        return refused("MT109", f"is {shown(include)}, expected the name of one file; name it relative to this one.")
    target = path.parent / include
    try:
        resolved, there = target.resolve(), target.is_file()
    except (OSError, ValueError, RuntimeError):
        resolved, there = target, False
    if not there:
        return refused("MT104", f"is {shown(include)}, expected a file; correct the path, relative to this file.")
    if resolved in (*above, path.resolve()):
        return refused("MT105", f"is {shown(include)}, which includes this file; break the circle.")
    return _merged(source, target, (*above, path.resolve()))


def parse_yaml(text: str, path: Path) -> tuple[Any, dict[Keys, int], list[Defect]]:
    """The values of ``text``, the lines of all keys and items, and what is wrong; the values are None if unreadable."""
    reader = _Reader(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = None if node is None else reader.value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return reader.refused(
            mark.line + 1 if mark else 1, f"not valid YAML: {_one_line(error.problem)}; fix the line."
        )
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        return reader.refused(line, f"not valid YAML: {_one_line(error.reason)}; remove the character.")
    except _UnreadableError as error:
        return reader.refused(error.line, str(error))
    except RecursionError:
        return reader.refused(1, "not a task file: nested too deeply; write it flat.")
    return content, reader.lines, reader.defects


class _UnreadableError(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class _Reader:
    """Turns nodes into values and notes their lines."""

    def __init__(self, path: Path) -> None:
        self.lines: dict[Keys, int] = {}
        self.defects: list[Defect] = []
        self._path = path
        self._open: set[int] = set()
        self._count = 0
        self._scalars = yaml.SafeLoader("")

    def refused(self, line: int, message: str) -> tuple[None, dict[Keys, int], list[Defect]]:
        """The result for a text that cannot be read."""
        return None, self.lines, [*self.defects, Defect("MT101", message, Place(self._path, line))]

    def value(self, node: yaml.Node, keys: Keys) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(keys, line)
        self._count += 1
        if self._count > MOST_VALUES:
            raise _UnreadableError(line, f"holds more than {MOST_VALUES:,} values; write fewer aliases.")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, line)
        if node.tag not in _PLAIN:
            raise _UnreadableError(line, f"the tag {node.tag!r} is not supported; remove it.")
        if id(node) in self._open:
            raise _UnreadableError(line, "an alias is inside the value that it repeats; write the value out.")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*keys, number)) for number, item in enumerate(node.value)]
            return self._mapping(node, keys)
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        if node.tag == "!function":
            return FunctionName(node.value)
        try:
            return self._scalars.construct_object(node, deep=True)
        except Exception as error:  # PyYAML lets through whatever int(), float() and its own indexing raise
            problem = _one_line(getattr(error, "problem", None) or error)
            raise _UnreadableError(line, f"{node.value[:80]!r} cannot be read ({problem}); quote it.") from error

    def _mapping(self, node: yaml.Node, keys: Keys) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                merged = {**self._merge(value_node, keys), **merged}
                continue
            key = self._scalar(key_node, line) if isinstance(key_node, yaml.ScalarNode) else None
            here: Keys = (*keys, str(key))
            if not isinstance(key, str):
                message = f"the key {str(getattr(key_node, 'value', ''))[:80]!r} is not a text; quote it."
                self.defects.append(Defect("MT109", message, Place(self._path, line)))
                continue
            if key in content:
                message = f"the key {key!r} is duplicated (lines {self.lines[here]} and {line}); remove one."
                self.defects.append(Defect("MT103", message, Place(self._path, line), here))
            self.lines[here] = line
            content[key] = self.value(value_node, here)
        return {**merged, **content}

    def _merge(self, node: yaml.Node, keys: Keys) -> dict[str, Any]:
        value = self.value(node, keys)
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise _UnreadableError(node.start_mark.line + 1, "`<<` merges something that is not a mapping.")
        return {key: part[key] for part in reversed(parts) for key in part}


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:200]
