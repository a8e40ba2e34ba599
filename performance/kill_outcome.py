"""What becomes of a command that is killed and started again, and how its results are compared with
those of a run that was not killed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(kw_only=True)
class Outcome:
    """What became of a command that was killed and started again: kills by their kind, finished
    runs, and requests.

    ``in_flight`` were asked for again since their answer was not on disk, ``again`` although it
    was; the answers of ``lost`` were on disk, or never arrived. ``differing`` are files that are
    not those of a run that was not killed.
    """

    kills: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    in_flight: int = 0
    again: int = 0
    lost: int = 0
    differing: list[str] = field(default_factory=list)

    @property
    def flawless(self) -> bool:
        """Whether nothing was lost, asked for again, or different."""
        return not (self.lost or self.again or self.differing)


def contents(output: Path) -> dict[str, Any]:
    """Content of the newest result directory, without the times of requests; of the manifest, what
    does not depend on time and work.
    """
    from medtasks.runs.find import run_folders

    folder = max(run_folders(output))
    files: dict[str, Any] = {}
    for path in folder.rglob("*"):
        is_time = path.parent.name == "times" or path.name == "latency.json"
        if path.is_file() and not is_time:
            files[str(path.relative_to(folder))] = path.read_bytes()
    manifest = json.loads(files.pop("manifest.json"))
    files["tasks of the manifest"] = manifest["tasks"]
    files["finish"] = manifest["model"].get("finish")
    return files


def differing(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[str]:
    """The files of which only one of two result directories has this content."""
    return [name for name in {*expected, *actual} if expected.get(name) != actual.get(name)]
