"""YAML as plain values, each with the line on which it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

__all__ = ["FunctionName", "Keys", "YamlDefect", "YamlText", "parse_yaml", "read_yaml"]

Keys = tuple[str | int, ...]
"""The way to a value: keys of mappings and positions in lists, from the top."""

MOST_VALUES = 100_000
"""Values that a file may hold, aliases written out: few bytes of nested aliases can stand for billions."""

_MERGE = "tag:yaml.org,2002:merge"
_PLAIN = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class FunctionName(str):
    """The dotted name after ``!function``."""

    __slots__ = ()


@dataclass(frozen=True)
class YamlDefect:
    """What is wrong with the text itself; ``code`` is that of the finding."""

    code: str
    line: int
    message: str


@dataclass
class YamlText:
    """The values of one file, the lines (from 1) of all keys and items, and what is wrong with the text.

    ``content`` is None where nothing can be read.
    """

    content: Any = None
    lines: dict[Keys, int] = field(default_factory=dict)
    defects: list[YamlDefect] = field(default_factory=list)


def read_yaml(path: Path) -> YamlText:
    """The values of the file ``path``; never raises: what is wrong stands in ``defects``."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:  # UnicodeDecodeError and embedded null bytes are ValueErrors
        return YamlText(defects=[YamlDefect("MT101", 1, f"not a readable UTF-8 file ({error}); fix or restore it.")])
    return parse_yaml(text)


def parse_yaml(text: str) -> YamlText:
    """The values of ``text``; never raises: what is wrong stands in ``defects``."""
    said = YamlText()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        said.content = None if node is None else _Reader(said).value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said.defects.append(YamlDefect("MT101", line, f"not YAML: {_one_line(error.problem)}; fix the line."))
        said.content = None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        said.defects.append(YamlDefect("MT101", line, f"not YAML: {_one_line(error.reason)}; remove the character."))
    except _UnreadableError as error:
        said.defects.append(error.defect)
        said.content = None
    except RecursionError:
        said.defects.append(YamlDefect("MT101", 1, "not a task file: nested too deeply; write it flat."))
        said.content = None
    return said


class _UnreadableError(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.defect = YamlDefect("MT101", line, message)


class _Reader:
    """Turns nodes into values and notes their lines."""

    def __init__(self, said: YamlText) -> None:
        self._said = said
        self._open: set[int] = set()
        self._count = 0
        self._scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, keys: Keys) -> Any:
        line = node.start_mark.line + 1
        self._said.lines.setdefault(keys, line)
        self._count += 1
        if self._count > MOST_VALUES:
            raise _UnreadableError(line, f"holds more than {MOST_VALUES:,} values; write fewer aliases.")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, line)
        if node.tag not in _PLAIN:
            raise _UnreadableError(line, f"the tag {node.tag!r} is not read here; leave it out.")
        if id(node) in self._open:
            raise _UnreadableError(line, "an alias stands within the value that it repeats; write the value out.")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*keys, number)) for number, item in enumerate(node.value)]
            assert isinstance(node, yaml.MappingNode)
            return self._mapping(node, keys)
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode, line: int) -> Any:
        if node.tag == "!function":
            return FunctionName(node.value)
        try:
            return self._scalars.construct_object(node, deep=True)
        except Exception as error:  # the library lets through whatever int(), float() and its own indexing raise
            problem = getattr(error, "problem", None) or error
            message = f"{node.value[:80]!r} cannot be read ({_one_line(problem)}); quote it."
            raise _UnreadableError(line, message) from error

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                merged = {**self._merged(value_node, keys), **merged}
                continue
            key = self._scalar(key_node, line) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                name = getattr(key_node, "value", "")
                message = f"the key {str(name)[:80]!r} is no text, expected a word; quote it."
                self._said.defects.append(YamlDefect("MT109", line, message))
                continue
            here: Keys = (*keys, key)
            if key in content:
                message = f"the key {key!r} stands here and on line {self._said.lines[here]}, and only one counts"
                self._said.defects.append(YamlDefect("MT103", line, f"{message}; remove one."))
            self._said.lines[here] = line
            content[key] = self.value(value_node, here)
        return {**merged, **content}

    def _merged(self, node: yaml.Node, keys: Keys) -> dict[str, Any]:
        value = self.value(node, keys)
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise _UnreadableError(node.start_mark.line + 1, "`<<` merges something that is no mapping; name mappings.")
        return {key: part[key] for part in reversed(parts) for key in part}


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:200]
