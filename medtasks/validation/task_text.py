"""A task file with its includes merged, and for every key the file and line where it really stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medtasks.validation.codes import found, shown
from medtasks.validation.findings import Finding, Place
from medtasks.validation.yaml_text import Keys, read_yaml

__all__ = ["Kind", "TaskText", "field_name", "kind_of", "read_task"]

Kind = Literal["task", "group"]


@dataclass(frozen=True)
class TaskText:
    """One task or group file as it stands; ``content`` is empty where nothing could be read.

    ``files`` are all files that it is made of, itself first.
    """

    path: Path
    kind: Kind
    content: dict[str, Any]
    places: dict[Keys, Place]
    defects: tuple[Finding, ...]
    files: tuple[Path, ...]

    @property
    def name(self) -> str:
        """The name under which the harness knows it: that of the file."""
        return self.path.stem

    @property
    def unreadable(self) -> bool:
        """Whether nothing of it could be read."""
        return not self.content and bool(self.defects)

    def place(self, *keys: str | int) -> Place:
        """Where the value at ``keys`` stands; where it is missing, the nearest that is there holds it."""
        for length in range(len(keys), 0, -1):
            if keys[:length] in self.places:
                return self.places[keys[:length]]
        return Place(self.path, 1)

    def block(self, key: str) -> dict[str, Any]:
        """The mapping under ``key``; empty where there is none."""
        value = self.content.get(key)
        return value if isinstance(value, dict) else {}

    def entries(self, key: str) -> Iterator[tuple[int, Any]]:
        """The items of the list under ``key``, numbered; none where it is no list."""
        value = self.content.get(key)
        yield from enumerate(value if isinstance(value, list) else [])

    def finding(self, code: str, message: str, *keys: str | int) -> Finding:
        """The finding ``code`` about the value at ``keys``."""
        return found(code, self.name, message, self.place(*keys), field_name(keys))


def field_name(keys: Keys) -> str:
    """``("metric_list", 0, "metric")`` as ``metric_list[0].metric``."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def kind_of(path: Path) -> Kind:
    """Whether a file is a group's, as the folder layout tells: groups lie in ``groups/``."""
    return "group" if path.parent.name == "groups" else "task"


def read_task(path: Path) -> TaskText:
    """The task or group file ``path``; never raises: what is wrong stands in ``defects``."""
    reading = _Reading(path.stem)
    content = reading.merged(path, ())
    return TaskText(path, kind_of(path), content, reading.places, tuple(reading.defects), tuple(reading.files))


class _Reading:
    def __init__(self, name: str) -> None:
        self._name = name
        self.places: dict[Keys, Place] = {}
        self.defects: list[Finding] = []
        self.files: list[Path] = []

    def merged(self, path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
        said = read_yaml(path)
        self.files.append(path)
        for defect in said.defects:
            self.defects.append(found(defect.code, self._name, defect.message, Place(path, defect.line)))
        if not isinstance(said.content, dict):
            if not said.defects:
                message = f"the file holds {shown(said.content)}, expected a mapping of task keys; write `key: value`."
                self.defects.append(found("MT102", self._name, message, Place(path, 1)))
            return {}
        content: dict[str, Any] = dict(said.content)
        include = content.pop("include", None)
        base: dict[str, Any] = {}
        if include is not None:
            base = self._included(path, include, Place(path, said.lines[("include",)]), (*above, path.resolve()))
        own = {keys[0] for keys in said.lines if keys}
        self.places = {keys: place for keys, place in self.places.items() if keys[0] not in own}
        self.places.update({keys: Place(path, line) for keys, line in said.lines.items() if keys})
        return {**base, **content}

    def _included(self, path: Path, include: Any, place: Place, above: tuple[Path, ...]) -> dict[str, Any]:
        if not isinstance(include, str) or not include.strip():
            message = f"`include` is {shown(include)}, expected the name of one file; name it relative to this one."
            self.defects.append(found("MT109", self._name, message, place, "include"))
            return {}
        target = path.parent / include
        try:
            resolved, there = target.resolve(), target.is_file()
        except (OSError, ValueError, RuntimeError):
            resolved, there = target, False
        if not there:
            message = f"`include` names {shown(include)}, which is not a file; correct the path, relative to this file."
            self.defects.append(found("MT104", self._name, message, place, "include"))
            return {}
        if resolved in above:
            message = f"`include` leads back to {shown(include)}, which includes this file; break the circle."
            self.defects.append(found("MT105", self._name, message, place, "include"))
            return {}
        return self.merged(target, above)
