"""The files that pages offer for download: what each is, its format and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

_FORMATS = {
    ".bib": "BibTeX",
    ".csv": "CSV",
    ".json": "JSON",
    ".md": "Markdown",
    ".tex": "LaTeX",
    ".zip": "ZIP",
}
_UNITS = ((1_000_000, "MB"), (1_000, "kB"))


@dataclass(frozen=True)
class Download:
    """A file of the site that pages offer.

    ``benchmark`` is empty if the file is about all benchmarks. ``size`` counts bytes; it is None
    where files are made only when their links are opened.
    """

    path: str
    title: str
    benchmark: str = ""
    size: Callable[[], int] | None = None

    @property
    def format(self) -> str:
        """The name of the file's format, by the end of its name."""
        return _FORMATS[PurePosixPath(self.path).suffix]


@dataclass(frozen=True)
class DownloadGroup:
    """The formats of one content, under their common title."""

    title: str
    files: Sequence[Download]


def downloads_of(downloads: Iterable[Download], benchmark: str = "") -> list[DownloadGroup]:
    """The downloads of a benchmark, or by default those about all benchmarks.

    Consecutive downloads with the same title are a group.
    """
    own = (download for download in downloads if download.benchmark == benchmark)
    by_title = groupby(own, key=lambda download: download.title)
    return [DownloadGroup(title, [*files]) for title, files in by_title]


def size_text(size: int) -> str:
    """A number of bytes as text, with two or three digits.

    >>> size_text(1_234_567), size_text(34_000), size_text(87)
    ('1.2 MB', '34 kB', '87 bytes')
    """
    for factor, unit in _UNITS:
        if size >= factor:
            amount = size / factor
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:.0f} {unit}"
    return f"{size} bytes"
