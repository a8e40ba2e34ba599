"""The outcome of an export that writes several files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WrittenFiles:
    """The ``files`` of an export, and ``notes`` for the user on what is not in them."""

    files: list[Path]
    notes: list[str]
