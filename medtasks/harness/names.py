"""Names of lmms-eval's own tasks, groups and tags, from its files: building its index takes half a minute."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_KEY = re.compile(
    r"""^["']?(task|group|tag)["']?[ \t]*:[ \t]*([^#\n]*)[^\n]*((?:\n[ \t]*-[ \t][^\n]*)*)""", re.MULTILINE
)


@functools.cache
def harness_names() -> frozenset[str]:
    """All names of the installed lmms-eval's own tasks, groups and tags; empty if it is not installed.

    A task file of that name in another package is never run: ``--tasks NAME`` takes the harness's.
    """
    spec = find_spec("lmms_eval")
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    files = (path for folder in folders for path in (Path(folder) / "tasks").rglob("*yaml"))  # shared parts have no dot
    texts = (path.read_text(encoding="utf-8-sig", errors="replace") for path in files)
    return frozenset(name for text in texts for name in _names_in(text))


def _names_in(text: str) -> Iterator[str]:
    for key, value, items in _KEY.findall(text):
        listed = value.strip().strip("[]").split(",") if value.strip() else []
        if not listed and key != "task":  # a list under `task` holds a group's members
            listed = [line.strip().lstrip("-") for line in items.splitlines()]
        yield from (name for one in listed if (name := one.strip().strip("\"'")))
