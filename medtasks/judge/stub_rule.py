"""The stub's rule: word overlap of candidate and reference, both found in the prompts of our rubrics.

The text between the delimiters is only compared, so no candidate can give the stub an instruction.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from medtasks.catalog.rubric import DELIMITER
from medtasks.core.errors import UsageError

SPARE = 40  # extra words allowed in a candidate that contains the reference
_ARTICLES = frozenset({"a", "an", "the"})
_REFERENCE = re.compile(r"^(?:Reference|Expected) answer:(.*)$", re.MULTILINE)
_TAG = re.compile(r"<[^\w\s<>]{0,2}[^\W\d][^<>\n]{0,60}>")  # <b>, </b>, and <|user|> as quoting breaks it


_BLOCK = re.compile(
    rf"^=== BEGIN {DELIMITER} (?P<code>[0-9a-f]+) ===\n(?P<text>.*?)\n=== END {DELIMITER} (?P=code) ===$",
    re.DOTALL | re.MULTILINE,
)
"""A delimited text as `medtasks.catalog.rubric` writes it; the closing line has the code of the opening line."""


def rule_based(request: Mapping[str, Any]) -> str:
    """The default verdict on a rubric's prompt.

    The candidate is the first delimited text (`medtasks.catalog.rubric`) in a user message. The reference is the last
    line before it that begins with "Reference answer:" or "Expected answer:". A prompt without candidate or reference
    gets the minimum, with that reason.

    The rule compares casefolded NFKC words without punctuation, markup and articles. Equal texts, and a response that
    contains the reference as a whole and has at most 40 words more, get the maximum on every scale; an empty one gets
    the minimum, any other the score at the fraction token F1 of the scale, rounded half up: on a scale of 0 and 1,
    F1 = 0.5 gets 1.

    The answer is JSON for the verdict's schema (``response_format``); without one, it is the word "correct" or
    "incorrect".

    Raises:
        UsageError: the schema is not one of ours: objects, whole numbers and texts.
    """
    # in a repair request the prompt is in an earlier message
    asked = (text_of(message) for message in request["messages"] if message.get("role") == "user")
    candidate = next(filter(None, map(_BLOCK.search, asked)), None)
    references = _REFERENCE.findall(candidate.string[: candidate.start()]) if candidate else []
    given = _words(candidate["text"]) if candidate else []
    expected = _words(references[-1]) if references else []
    mark = Fraction(0)
    if expected and len(given) <= len(expected) + SPARE and f" {' '.join(expected)} " in f" {' '.join(given)} ":
        mark = Fraction(1)
    elif expected:
        mark = Fraction(2 * (Counter(given) & Counter(expected)).total(), len(given) + len(expected))
    wanted = request.get("response_format") or {}
    if wanted.get("type") != "json_schema":
        return "correct" if mark == 1 else "incorrect"
    if candidate is None:
        reason = "stub: no candidate text in the prompt"
    elif not given:
        reason = "stub: the text has no words"
    elif not expected:
        reason = "stub: no reference answer in the prompt"
    else:
        reason = "stub: the text has the reference's words" if mark == 1 else f"stub: token F1 {float(mark):.2f}"
    return json.dumps(_filled(wanted["json_schema"].get("schema"), mark, reason), ensure_ascii=False)


def _filled(schema: Any, mark: Fraction, reason: str) -> Any:
    """A value for a schema of `medtasks.catalog.rubric.verdict_schema`: each scale has the score at ``mark``."""
    match schema:
        case {"type": "object", "properties": dict(properties)}:
            return {name: _filled(one, mark, reason) for name, one in properties.items()}
        case {"type": "integer", "enum": [*scale]}:
            return sorted(scale)[math.floor((len(scale) - 1) * mark + Fraction(1, 2))]
        case {"type": "string"}:
            return reason
    raise UsageError(f"the stub judge cannot fill the schema {json.dumps(schema)[:200]}")


def _words(text: str) -> list[str]:
    text = _TAG.sub(" ", unicodedata.normalize("NFKC", text)).casefold()
    words = re.findall(r"[^\W_]+", text)
    # a final article is a name: "type A"
    return [word for word in words[:-1] if word not in _ARTICLES] + words[-1:]


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a chat message, without its images."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
