"""Which layout a file of predictions has, going by its content."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from medtasks.data.archive import open_archive
from medtasks.errors import DataError, UsageError
from medtasks.files import check_regular, read_lines
from medtasks.results.foreign.layouts import Layout

__all__ = ["NAMES", "recognise", "task_in_name"]

NAMES: dict[Layout, str] = {
    "ms-swift": "ms-swift's JSONL",
    "jsonl": "JSONL with columns",
    "json": "a JSON array with columns",
    "csv": "CSV with columns",
    "lmms-eval": "a sample file of lmms-eval",
    "vlmevalkit": "a prediction file of VLMEvalKit",
    "inspect": "a log of Inspect",
}
_SAMPLES = re.compile(r"_samples_(?P<task>[A-Za-z0-9_]+)\.jsonl$")


def recognise(path: Path) -> Layout:
    """The layout of the file ``path``.

    Raises:
        UsageError: it is none of ours.
        DataError: the file cannot be read, or is empty.
    """
    try:
        check_regular(path)
        layout = _of_archive(path) if zipfile.is_zipfile(path) else _of_text(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    if layout is None:
        raise UsageError(f"{path}: has none of the layouts that can be told apart; name its layout with --from.")
    return layout


def task_in_name(path: Path) -> str | None:
    """The task that lmms-eval wrote into the name of a sample file.

    >>> task_in_name(Path("20260101_000000_samples_mi_cxr_icr.jsonl"))
    'mi_cxr_icr'
    """
    found = _SAMPLES.search(path.name)
    return found["task"] if found else None


def _of_archive(path: Path) -> Layout | None:
    with open_archive(path) as archive:
        names = set(archive.namelist())
    if "xl/workbook.xml" in names:
        return "vlmevalkit"
    return "inspect" if any(name.startswith(("samples/", "_journal/")) for name in names) else None


def _of_text(path: Path) -> Layout | None:
    first = next(_texts(path), None)
    if first is None:
        raise DataError(f"{path}: the file is empty; write or fetch it again.")
    if first.startswith("["):
        return "json"
    if first.startswith("{"):
        return _of_object(first, path)
    separator = "\t" if "\t" in first else ","
    names = {name.strip().strip('"') for name in first.split(separator)}
    if "prediction" in names and (separator == "\t" or "index" in names):
        return "vlmevalkit"
    return "csv" if separator == "," and len(names) > 1 else None


def _of_object(first: str, path: Path) -> Layout:
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):  # over several lines, or damaged: the layout's own reader says where
        return "jsonl" if path.suffix == ".jsonl" else "inspect"
    if {"eval", "samples"} <= row.keys():
        return "inspect"
    if "messages" in row:
        return "ms-swift"
    return "lmms-eval" if "filtered_resps" in row else "jsonl"


def _texts(path: Path) -> Iterator[str]:
    """Lines that are not blank; those of a JSON file in one line are long."""
    for line in read_lines(path):
        text = line.decode("utf-8-sig", errors="replace").strip()
        if text:
            yield text
