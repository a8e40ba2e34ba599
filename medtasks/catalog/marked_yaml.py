"""YAML text with the line of every key and item, for messages about task files."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from medtasks.catalog.key_types import FunctionName
from medtasks.core.findings import Finding, Place, finding
from medtasks.core.schema import Keys, field_name, shown
from medtasks.core.text import shortened
from medtasks.core.yaml_files import MarkedLoader

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True)
class MarkedYaml:
    """The content of a YAML text.

    Attributes:
        content: its values; None if it cannot be read.
        lines: the line of every key and list item, by the path of keys that leads to it.
        defects: what is wrong with it.
    """

    content: Any
    lines: dict[Keys, int]
    defects: list[Finding]


@lru_cache(maxsize=256)  # many tasks include the same file
def parse_yaml(text: str, path: Path) -> MarkedYaml:
    """The values and lines of ``text``, the content of the file ``path``."""
    reader = _MarkedReader(path)
    content = reader.read(text)
    return MarkedYaml(content, reader.lines, reader.defects)


@dataclass
class _MarkedReader:
    """Reads one text, and collects lines and defects on the way."""

    path: Path
    lines: dict[Keys, int] = field(default_factory=dict)
    defects: list[Finding] = field(default_factory=list)
    visited: set[int] = field(default_factory=set)
    """The ids of visited nodes: an alias is the node that it stands for."""

    def read(self, text: str) -> Any:
        """The value of ``text``; None if it is empty, or not valid, which is then a defect."""
        try:
            loader = _Loader(text)
            node = loader.get_single_node()
            if node is None:
                return None
            self._visit(node, ())
            return loader.construct_document(node)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            self._refuse("MT101", f"not valid YAML: {shortened(str(error.problem), 200)}", line)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            fix = "remove the character"
            self._refuse("MT101", f"not valid YAML: {error.reason}", line, fix=fix)
        except RecursionError:
            self._refuse("MT101", "not a task file: nested too deeply", 1, fix="write it flat")
        return None

    def _visit(self, node: yaml.Node, keys: Keys) -> None:
        """Record the lines of a value and of everything in it, aliases excepted."""
        self.lines.setdefault(keys, node.start_mark.line + 1)
        if id(node) in self.visited:
            return
        self.visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._visit(item, (*keys, number))
        elif isinstance(node, yaml.MappingNode):
            self._visit_mapping(node, keys)

    def _visit_mapping(self, node: yaml.MappingNode, keys: Keys) -> None:
        """Record the lines of a mapping, whose keys that are not strings are removed."""
        own: set[Keys] = set()
        for pair in list(node.value):
            key, value = pair
            if key.tag == _MERGE:
                continue
            line = key.start_mark.line + 1
            if key.tag != _TEXT:
                message = f"the key {shown(str(key.value))} is not a string"
                self._refuse("MT109", message, line, fix="quote it")
                node.value.remove(pair)
                continue
            path: Keys = (*keys, str(key.value))
            if path in own:
                lines = f"lines {self.lines[path]} and {line}"
                self._refuse("MT103", f"the key {key.value!r} is duplicated ({lines})", line, path)
            own.add(path)
            self.lines[path] = line
            self._visit(value, path)

    def _refuse(
        self, code: str, message: str, line: int, keys: Keys = (), fix: str | None = None
    ) -> None:
        place = Place(self.path, line)
        defect = finding(code, self.path.stem, message, place, field_name(keys), fix=fix)
        self.defects.append(defect)


class _Loader(MarkedLoader):
    """With ``!function``."""


def _function_name(loader: MarkedLoader, node: yaml.Node) -> FunctionName:
    return FunctionName(loader.construct_scalar(node))


_Loader.add_constructor("!function", _function_name)
