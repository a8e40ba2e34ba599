"""Files of document hashes: what an organiser keeps of a release, so that runs are compared with it without its data.

``medtasks leaderboard digest`` writes one, from prepared data or from a run that the organiser trusts
(`medtasks.leaderboard.trusted`). It holds twelve bytes a document.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from medtasks.errors import DataError, UsageError
from medtasks.files import canonical_json
from medtasks.schema import first_problem

from .documents import LENGTH

__all__ = ["Hashes", "read_document_files", "write_document_file"]

Hashes = Mapping[tuple[str, str], bytes]
"""Hashes by the fingerprint of the data and by task, as `medtasks.leaderboard.documents.TaskDocuments` holds them."""


class _File(BaseModel):
    """``documents`` maps fingerprint and task to the hashes in base64."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int
    documents: dict[str, dict[str, str]]


def write_document_file(path: Path, hashes: Hashes) -> None:
    """Write the hashes to the new file ``path``.

    Raises:
        UsageError: there is such a file; one that submissions are compared with is never overwritten.
        OSError: it cannot be written.
    """
    documents: dict[str, dict[str, str]] = {}
    for (fingerprint, task), found in sorted(hashes.items()):
        documents.setdefault(fingerprint, {})[task] = base64.b64encode(found).decode()
    text = canonical_json({"schema_version": 1, "documents": documents}, indent=1) + "\n"
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path}: exists already; choose another file, both can be given.") from error


def read_document_files(paths: Sequence[Path]) -> dict[tuple[str, str], tuple[bytes, ...]]:
    """The hashes of all files; where several hold a task of the same data, each counts.

    Raises:
        DataError: a file is not one that :func:`write_document_file` wrote; names the field.
    """
    found: dict[tuple[str, str], tuple[bytes, ...]] = {}
    for path in paths:
        for fingerprint, tasks in _read(path).documents.items():
            for task, text in tasks.items():
                hashes = _decoded(path, task, text)
                found[fingerprint, task] = (*found.get((fingerprint, task), ()), hashes)
    return found


def _read(path: Path) -> _File:
    fix = "write it anew with `medtasks leaderboard digest`"
    try:
        return _File.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {fix}.") from error
    except ValidationError as error:
        raise DataError(f"{path}: not a file of document hashes ({first_problem(error)}); {fix}.") from error


def _decoded(path: Path, task: str, text: str) -> bytes:
    try:
        hashes = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        hashes = b""
    if not hashes or len(hashes) % LENGTH:
        raise DataError(
            f"{path}: field `documents`: the hashes of {task} are damaged, expected {LENGTH} bytes a document; write "
            "the file anew with `medtasks leaderboard digest`."
        )
    return hashes
