"""One prediction made with another tool, and the checks that all layouts share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where, is_text, text_field, wrong
from medtasks.core.errors import reading
from medtasks.core.files import read_regular


@dataclass(frozen=True)
class Prediction:
    """One response, its place in the file, and what identifies the sample that it answers.

    ``keys`` may have ``img_id`` and ``question``, ``task``, ``id`` (the other tool's sample id), ``target`` (its
    reference answer), and for a harness line ``doc_id`` (position among the task's documents) and ``medium``.
    ``verdict`` is a judge's verdict on the response, ``failed`` the reason why there is no response.
    """

    where: Where
    sample_id: str | None
    keys: Mapping[str, str]
    response: str
    verdict: Mapping[str, Any] | None = None
    failed: str | None = None


def content_of(path: Path) -> bytes:
    """The content of the file; raises :class:`DataError` if it cannot be read."""
    with reading(path, "check the path"):
        return read_regular(path)


def identifying(row: Mapping[str, Any]) -> dict[str, str]:
    """The texts in another tool's row that identify its sample."""
    names = ("sample_id", "img_id", "question", "task")
    return {name: row[name].strip() for name in names if is_text(row.get(name)) and row[name].strip()}


def one_response(where: Where, field: str, found: object) -> str:
    """The one text in ``found``, which may be nested in lists; an empty text is a response too.

    Raises:
        DataError: no text, several texts (repeats must be scored one at a time), or another type.
    """
    texts, waiting = [], [found]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif is_text(item):
            texts.append(item)
        else:
            raise wrong(where, field, item, "the text of a response")
    if len(texts) != 1:
        raise wrong(where, field, found, f"one response for the sample, not {len(texts)}")
    return texts[0]


def optional_text(row: Mapping[str, Any], field: str, where: Where) -> str | None:
    """The text of ``field``; None if it is missing or null.

    Raises:
        DataError: the field is not a text, or is blank.
    """
    return None if row.get(field) is None else text_field(row, field, where)
