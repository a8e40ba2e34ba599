"""What a check has to say, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["Finding", "Place", "Severity"]

Severity = Literal["error", "warning", "note"]

_CODES = {
    "records": "MT401",
    "media": "MT402",
    "documents": "MT403",
    "published counts": "MT404",
    "excluded": "MT405",
    "temporal contract": "MT330",
}


class Place(NamedTuple):
    """A line of a file, counted from 1."""

    file: Path
    line: int


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing: which check found it, where, and what to do.

    ``where`` is the task, sample or folder that is concerned; ``code`` is stable (:mod:`medtasks.validation.codes`),
    and follows from ``check`` where it is not given; ``file`` and ``line`` (from 1) say where to fix it, ``field``
    which key or document field.
    """

    severity: Severity
    check: str
    where: str
    message: str
    code: str = ""
    file: str = ""
    line: int | None = None
    field: str = ""

    def __post_init__(self) -> None:
        if not self.code:
            object.__setattr__(self, "code", _CODES.get(self.check, ""))
