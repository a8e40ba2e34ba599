"""YAML files whose errors are one sentence with file, line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from medtasks.core.errors import MedtasksError, reading
from medtasks.core.files import read_regular
from medtasks.core.schema import shown
from medtasks.core.text import shortened


class MarkedLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's loader (libyaml, six times as fast as its own code), whose errors all have a
    line.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The object; raises `yaml.MarkedYAMLError` at a value that cannot be constructed."""
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # of int(), float() and PyYAML's own indexing
            problem = f"{shown(node.value)} cannot be read ({error})"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


_MERGE = "tag:yaml.org,2002:merge"


class StrictLoader(MarkedLoader):
    """A YAML loader that refuses a mapping with repeated keys, of which PyYAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; raises `yaml.MarkedYAMLError` at the second of two equal keys."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            line = key.start_mark.line + 1
            if key.value in lines:
                problem = (
                    f"the key {shown(key.value)} is repeated, first in line {lines[key.value]}"
                )
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            lines[key.value] = line
        content: dict[Any, Any] = super().construct_mapping(node, deep)
        return content


def read_yaml(path: Path, kind: type[MedtasksError], loader: type[Any] = StrictLoader) -> Any:
    """The content of a YAML file.

    Raises:
        kind: the file cannot be read or is not valid; names file and line, and says how to fix it.
    """
    with reading(path, "restore it", kind):
        data = read_regular(path)
    try:
        return yaml.load(data.decode("utf-8"), loader)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x}"
        raise kind(f"{path}, line {line}: {byte} is not UTF-8; save the file as UTF-8.") from error
    except yaml.reader.ReaderError as error:
        line = data.decode("utf-8").count("\n", 0, error.position) + 1
        raise kind(
            f"{path}, line {line}: not valid YAML ({error.reason}); remove the character."
        ) from error
    except yaml.MarkedYAMLError as error:
        raise kind(f"{path}{_place(error)}: not valid YAML ({_problem(error)}); fix it.") from error
    except yaml.YAMLError as error:
        raise kind(f"{path}: not valid YAML ({shortened(str(error), 200)}); fix it.") from error
    except RecursionError as error:
        raise kind(f"{path}: nested too deeply; write it flat.") from error


def _place(error: yaml.MarkedYAMLError) -> str:
    """Line and column of an error, after a comma; empty if they are unknown."""
    mark = error.problem_mark or error.context_mark
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _problem(error: yaml.MarkedYAMLError) -> str:
    """What is wrong and, if that begins in an earlier line, within what."""
    problem = shortened(str(error.problem or error.context), 200)
    begin, end = error.context_mark, error.problem_mark
    if error.context and begin and end and begin.line < end.line:
        problem += f", {error.context} that begins in line {begin.line + 1}"
    return problem
