"""The names of tasks in YAML files of the harness, read without importing it."""

from __future__ import annotations

import functools
import re
from importlib.util import find_spec
from pathlib import Path

_KEY = re.compile(
    r"""^["']?(?P<key>task|group|tag)["']?[ \t]*:[ \t]*(?P<value>[^#\n]*)[^\n]*"""
    r"""(?P<items>(?:\n[ \t]*-[ \t][^\n]*)*)""",
    re.MULTILINE,
)


@functools.cache
def harness_names() -> frozenset[str]:
    """All names of the installed lmms-eval's own tasks, groups and tags.

    Empty if it is not installed. A task of that name in another package never runs: ``--tasks
    NAME`` selects the harness's.
    """
    spec = find_spec("lmms_eval")
    if spec is None:
        return frozenset()
    names: set[str] = set()
    for folder in spec.submodule_search_locations or []:
        names |= names_in_folder(Path(folder) / "tasks")
    return frozenset(names)


def names_in_folder(folder: Path) -> frozenset[str]:
    """The names of all tasks, groups and tags in the YAML files in and below ``folder``."""
    names: set[str] = set()
    for path in folder.rglob("*yaml"):  # shared parts have no dot
        names |= _names_in_text(path.read_text(encoding="utf-8-sig", errors="replace"))
    return frozenset(names)


def _names_in_text(text: str) -> set[str]:
    """The names under the keys ``task``, ``group`` and ``tag`` of a YAML text."""
    names: set[str] = set()
    for match in _KEY.finditer(text):
        value = match["value"].strip()
        entries: list[str] = []
        if value:
            entries = value.strip("[]").split(",")
        elif match["key"] != "task":  # a list under `task` contains a group's members
            entries = [line.strip().lstrip("-") for line in match["items"].splitlines()]
        names.update(entry.strip().strip("\"'") for entry in entries)
    names.discard("")
    return names
