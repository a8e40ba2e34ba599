"""Replies that are a JSON object with an answer, an explanation and perhaps a confidence.

Thinking is removed first. Of several objects with an answer, the last one counts. Text around the
object, such as a code fence, is ignored. A reply without such an object has no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.api import FilterInfo, OptionLetterFilter, Reading, ResponseFilter, strip_thinking

_EXPLANATION_KEYS = ("explanation", "textual_explanation", "reasoning_trace")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_OBJECTS = 100
"""Braces at which an object is tried to be read: a runaway reply has thousands."""


@dataclass(frozen=True)
class ExplainedReply:
    """What a reply says; an empty text is missing.

    Args:
        answer: the answer.
        explanation: the reasons for the answer.
        confidence: the stated confidence, from 0 to 1; None if it is missing or invalid.
        has_invalid_confidence: whether a confidence is stated that is not a number from 0 to 1.
    """

    answer: str = ""
    explanation: str = ""
    confidence: float | None = None
    has_invalid_confidence: bool = False

    @property
    def status(self) -> str:
        """``ok``, ``no_answer`` or ``no_explanation``."""
        if not self.answer:
            return "no_answer"
        return "ok" if self.explanation else "no_explanation"


def read_reply(response: str) -> ExplainedReply:
    """The answer, explanation and confidence in a raw response. Never raises.

    >>> reply = read_reply('Sure: {"answer": "A polyp.", "explanation": "Round."}')
    >>> reply.answer, reply.explanation, reply.confidence
    ('A polyp.', 'Round.', None)
    >>> read_reply("A polyp.").status
    'no_answer'
    """
    fields = _fields(response)
    explanations = [_text(fields.get(key)) for key in _EXPLANATION_KEYS]
    explanation = next(filter(None, explanations), "")
    stated = fields.get("confidence")
    confidence = _share(stated)
    return ExplainedReply(
        answer=_text(fields.get("answer")),
        explanation=explanation,
        confidence=confidence,
        has_invalid_confidence=stated is not None and confidence is None,
    )


def _fields(response: str) -> Mapping[str, Any]:
    """The last JSON object with an answer in a raw response; empty without one."""
    fields: Mapping[str, Any] = {}
    for candidate in _objects(strip_thinking(response)):
        if "answer" in candidate:
            fields = candidate
    return fields


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order, none of them inside another one."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks in texts unescaped
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)


def _text(value: object) -> str:
    """A text without blanks around it, or a number as text; empty for anything else.

    Half a surrogate pair, which JSON can escape but no file can contain, becomes U+FFFD.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    encodable = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", str(value))
    return encodable.strip()


def _share(value: object) -> float | None:
    """A number from 0 to 1; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


class ExplainedAnswerFilter(ResponseFilter):
    """Raw responses become their answers; without one, an empty text, which no word of a reference
    overlaps with.
    """

    version = "2"

    @staticmethod
    def read(text: str) -> str:
        """The answer of one response."""
        return read_reply(text).answer

    @staticmethod
    def status(filtered: str) -> str:
        """``no_answer``, or ``ok``."""
        return "ok" if filtered.strip() else "no_answer"


class ExplainedReplyFilter(ResponseFilter):
    """Raw responses become JSON objects with ``answer`` and ``explanation``."""

    version = "2"

    @staticmethod
    def read(text: str) -> str:
        """The answer and the explanation of one response, as JSON."""
        reply = read_reply(text)
        fields = {"answer": reply.answer, "explanation": reply.explanation}
        return json.dumps(fields, ensure_ascii=False)

    @staticmethod
    def status(filtered: str) -> str:
        """``ok``, ``no_answer`` or ``no_explanation``."""
        return read_reply(filtered).status


class ExplainedOptionFilter(OptionLetterFilter):
    """Raw responses become the letter in their ``answer``, or ``[status]``.

    `OptionLetterFilter` reads the answer alone, so that letters in the explanation do not matter;
    of a reply without a JSON object, it reads everything.
    """

    version = f"3+{OptionLetterFilter.version}"

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """The function that reads responses to documents with these options."""
        read_option = super().reader(context)
        return lambda text: read_option(_option_part(text))


def _option_part(response: str) -> str:
    """The part of a raw response in which an option is read: what its object has as the answer,
    lists and objects as JSON; all of it without such an object.
    """
    fields = _fields(response)
    if not fields:
        return response
    answer = fields["answer"]
    if isinstance(answer, list | dict):
        return json.dumps(answer, ensure_ascii=False)
    return _text(answer)


FILTERS = tuple(
    FilterInfo(kind, kind.version, kind.status)
    for kind in (ExplainedAnswerFilter, ExplainedReplyFilter, ExplainedOptionFilter)
)
