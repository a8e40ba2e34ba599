"""Batches under way at an endpoint, one file each, so that another process can wait for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.core.files import canonical_json
from medtasks.core.replacement import replaced


@dataclass(frozen=True)
class BatchRecord:
    """A batch as it is recorded on disk, for a process that continues to wait for it.

    ``names`` are those of its requests, ``file`` and ``batch`` ids at the endpoint.
    """

    names: list[str]
    file: str
    batch: str | None = None

    @classmethod
    def read(cls, path: Path) -> BatchRecord:
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(content["names"], content["file"], content.get("batch"))

    def write(self, path: Path) -> None:
        content: dict[str, Any] = {"names": self.names, "file": self.file}
        if self.batch is not None:
            content["batch"] = self.batch
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as partial:
            partial.write_text(canonical_json(content), encoding="utf-8")
