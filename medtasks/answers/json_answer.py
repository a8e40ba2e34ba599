"""The answer of a reply that is a JSON object."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

_LONGEST = 64_000
_FENCED = re.compile(r"\s*(?:```|~~~)[a-zA-Z]{0,12}\s*\n(?P<inside>[\s\S]*?)\n\s*(?:```|~~~)\s*")
_ANSWER_KEYS = frozenset(
    {"answer", "final answer", "your answer", "the answer", "response", "final response"}
)


def answer_field(reply: str) -> str | None:
    """The text of the field that gives the answer, if ``reply`` is a JSON object with one; else
    None.

    The field is called *answer* or the like, or it is the only one. The object may be in a code
    fence, and may be written as Python does, in single quotes.

    >>> (answer_field('{"answer": "One polyp.", "confidence": 0.9}'),
    ...  answer_field('{"finding": "One polyp."}'))
    ('One polyp.', 'One polyp.')
    >>> answer_field('{"finding": "One polyp.", "site": "caecum"}') is None
    True
    """
    fenced = _FENCED.fullmatch(reply[:_LONGEST])
    text = (fenced["inside"] if fenced else reply).strip()
    if not (text.startswith("{") and text.endswith("}")) or len(text) > _LONGEST:
        return None
    fields = _object(text)
    answers = [value for key, value in fields.items() if _words(key) in _ANSWER_KEYS]
    if not answers and len(fields) == 1:
        answers = [*fields.values()]
    if len(answers) != 1 or not isinstance(answers[0], str):
        return None
    return answers[0].strip()


def _words(key: Any) -> str:
    return re.sub(r"[\W_]+", " ", str(key)).strip().casefold()


def _object(text: str) -> dict[Any, Any]:
    """The object that ``text`` is in JSON or as a literal of Python; empty if it is neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            fields = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(fields, dict):
            return fields
    return {}
