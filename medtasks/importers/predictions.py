"""A prediction as a file has it: a response, what identifies its sample, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Integral
from typing import Any, TypeAlias, TypeGuard

from medtasks.catalog.records import Where, is_text, text_field, wrong
from medtasks.core.text import first_names
from medtasks.runs.replies import Reply

Row: TypeAlias = Mapping[str, Any]

NO_RESPONSE = "none in the file"
"""Why a prediction whose response is null failed."""


class End(Enum):
    """How a response ended: whole, or cut off by a limit."""

    WHOLE = "stop"
    TOKEN_LIMIT = "at the token limit"
    CELL_LIMIT = "at 32,767 characters, the most that a cell of a workbook holds"

    @property
    def finish(self) -> str:
        """The value of `Reply.finish`."""
        return "stop" if self is End.WHOLE else "length"


_ENDS: Mapping[str, End] = {
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence", "tool_calls"), End.WHOLE),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), End.TOKEN_LIMIT),
}
"""Reasons for which APIs and harnesses report that a response ended; others leave it unknown."""
_BLOCKED = frozenset(
    (
        "content_filter",
        "safety",
        "refusal",
        "prohibited_content",
        "blocklist",
        "recitation",
        "spii",
    ),
)
"""Reasons that mean that a filter withheld the response."""


@dataclass(frozen=True)
class Prediction:
    """One response, its place in the file, and what identifies the sample that it answers.

    ``keys`` may have ``sample_id``, ``img_id`` and ``question``, ``task``, ``id`` (the other tool's
    sample id), ``target`` (its reference answer), and for a harness line ``doc_id`` (position among
    the task's documents) and ``input_media``. ``verdict`` is a judge's verdict on the response,
    ``failed`` the reason why there is no response. ``end`` is None if the file does not say how the
    response ended, ``epoch`` if the file has no repeats.
    """

    where: Where
    keys: Mapping[str, str]
    response: str
    verdict: Mapping[str, Any] | None = None
    failed: str | None = None
    end: End | None = None
    epoch: int | None = None

    @property
    def reply(self) -> Reply:
        """The reply, failed if its text is one that back-ends return for failed requests."""
        if self.failed is not None:
            return Reply.failure(self.failed)
        return Reply(self.response, finish=None if self.end is None else self.end.finish).checked()

    @property
    def answer(self) -> tuple[str, bool]:
        """What predictions for a sample must agree on: the response, and whether there is one."""
        return self.response, self.failed is None


def prediction(
    where: Where,
    keys: Mapping[str, str],
    response: str | None,
    finish: str | None = None,
    **more: Any,
) -> Prediction:
    """The prediction with this response; ``more`` are further fields.

    It is failed if the response is None or ``finish`` says that a filter withheld it.
    """
    if is_blocked(finish):
        return Prediction(where, keys, "", failed=finish, **more)
    if response is None:
        return Prediction(where, keys, "", failed=NO_RESPONSE, **more)
    return Prediction(where, keys, response, **{"end": _ENDS.get(_reason(finish)), **more})


def is_blocked(finish: str | None) -> bool:
    """Whether ``finish``, the reason for which a response ended, says that a filter withheld it."""
    return _reason(finish) in _BLOCKED


def _reason(finish: str | None) -> str:
    """The reason in the spelling of `_ENDS` and `_BLOCKED`."""
    return (finish or "").strip().lower()


# --- fields of rows ---

_IDS = frozenset(("sample_id", "img_id"))
"""Keys whose texts may consist of digits."""
_FIRST_INEXACT = 2.0**53
"""Floating-point numbers from here on may stand for several whole numbers."""


def is_null(value: object) -> bool:
    """Whether ``value`` is None, or the NaN that data frames and some JSON have in its place."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def responses_in(where: Where, field: str, content: object) -> list[str | None]:
    """The responses in ``content``, a text or texts in nested lists; None for a null or no text."""
    responses: list[str | None] = []
    rest = [content]
    while rest:  # a file may nest lists deeper than Python calls
        value = rest.pop()
        if isinstance(value, list):
            rest.extend(reversed(value))
        elif is_null(value):
            responses.append(None)
        elif isinstance(value, str):
            responses.append(value)
        else:
            raise wrong(where, field, value, "the text of a response")
    return responses or [None]


def one_response(where: Where, field: str, content: object) -> str | None:
    """The only response in ``content``; None if it is null."""
    responses = responses_in(where, field, content)
    if len(responses) > 1:
        raise wrong(where, field, content, f"one response for the sample, not {len(responses)}")
    return responses[0]


def finish_in(row: Row, where: Where, field: str = "finish_reason") -> str | None:
    """The reason for which the response ended; None if the row does not have one."""
    reason = row.get(field)
    if is_null(reason):
        return None
    if not isinstance(reason, str):
        raise wrong(where, field, reason, "a reason such as stop, length or content_filter")
    return reason


def known_texts(row: Row, columns: Mapping[str, str], where: Where) -> dict[str, str]:
    """The stripped texts of the ``columns``, which maps keys to the names of columns.

    Cells that are missing, null or empty are left out. An id may be a whole number: data frames
    read ids of digits as numbers, as floating-point ones if some are missing.
    """
    texts = {}
    for key, column in columns.items():
        value = row.get(column)
        if is_null(value) or value == "":
            continue
        if key in _IDS and _is_whole_number(value):
            if isinstance(value, float) and abs(value) >= _FIRST_INEXACT:
                expected = "an id as a text, because this number has lost its last digits"
                raise wrong(where, column, value, expected)
            texts[key] = str(int(value))
        else:
            texts[key] = text_field(row, column, where).strip()
    return texts


def _is_whole_number(value: object) -> TypeGuard[Integral | float]:
    """Whether ``value`` is a number without decimals, also one of NumPy, and no truth value."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, Integral) and not isinstance(value, bool)


def identifying_texts(row: Row, **fields: str) -> dict[str, str]:
    """The stripped texts in another tool's row that identify its sample, by our keys.

    ``fields`` maps our keys to the row's own names of fields.
    """
    names = {name: name for name in ("sample_id", "img_id", "question", "task")} | fields
    texts = {}
    for key, name in names.items():
        value = row.get(name)
        if is_text(value) and value.strip():
            texts[key] = value.strip()
    return texts


def names_in(row: Row) -> str:
    """The first twelve names of the row's fields, quoted, and how many more there are."""
    quoted = [repr(name[:40]) for name in sorted(map(str, row))]
    return first_names(quoted, 12) or "no fields"
