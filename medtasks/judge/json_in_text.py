"""The JSON objects in a judge's answer, read leniently where that cannot change what they state.

Judges write LaTeX, Markdown and paths into their reasons (``\\geq``, ``polyp\\_type``,
``C:\\path``), and a comma after the last entry. Both are corrected exactly where the JSON decoder
stops at them, so strings still end where JSON ends them. Nothing else is: a missing brace or
quotation mark leaves open what was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from medtasks.answers.thoughts import strip_thinking

_BRACE = re.compile(r"[{}]")
_OBJECT_BEGINS = re.compile(r'\{\s*["}]')
_TRAILING_COMMA = re.compile(r",\s*[}\]]")
MOST_CORRECTIONS = 500
"""In one answer, because each reads its object again up to the next error."""
MOST_OBJECTS = 1000
"""In one answer, because an error of the decoder takes time in proportion to the text before it."""


class Invalid(Exception):
    """Why an answer is not a verdict, as the end of a sentence that begins with "because"."""


class _Object(NamedTuple):
    value: dict[str, Any]
    end: int  # in the corrected text


def whole_object(text: str) -> dict[str, Any] | None:
    """The JSON object that all of ``text`` is, after its thinking; None if it is anything else.

    Raises:
        Invalid: as `objects_in`.
    """
    # before thinking is stripped: a reason may mention a thinking tag
    for whole in (text.strip(), strip_thinking(text)):
        reader = _Reader(whole)
        first = reader.object_at(0)
        if first is not None and first.end == len(reader.text):
            return first.value
    return None


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in ``text`` after its thinking: the whole text, or each one outside braces.

    Raises:
        Invalid: the text ends within its thinking or has too many objects, or one is nested too
            deeply, has a duplicate key, or a number that is not JSON.
    """
    whole = whole_object(text)
    if whole is not None:
        yield whole
        return
    answer = strip_thinking(text)
    if not answer:
        raise Invalid("it ends within its thinking")
    yield from _outer_objects(answer)


def _outer_objects(answer: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of an answer that are in no other braces.

    An object inside braces that cannot be read may be a quotation within the judge's own broken
    JSON: the braces must have closed before anything counts.
    """
    reader = _Reader(answer)
    unclosed = 0
    position = 0
    while True:
        brace = _BRACE.search(reader.text, position)
        if brace is None:
            return
        position = brace.end()
        if brace[0] == "}":
            unclosed = max(0, unclosed - 1)
            continue
        decoded = None
        if unclosed == 0:
            decoded = reader.object_at(brace.start())
        if decoded is None:
            unclosed += 1
        else:
            yield decoded.value
            position = decoded.end


class _Reader:
    """Decodes objects of ``text``, which is corrected as far as an object was read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._corrections = 0
        self._objects = 0

    def object_at(self, start: int) -> _Object | None:
        """The object that begins at ``start``; None without one, which leaves the text as it is."""
        if not _OBJECT_BEGINS.match(self.text, start):  # as in LaTeX
            return None
        self._objects += 1
        if self._objects > MOST_OBJECTS:
            raise Invalid(f"it has more than {MOST_OBJECTS:,} JSON objects")
        text = self.text
        last_error = -1
        while True:
            try:
                decoded = _decoded_object(text, start)
            except json.JSONDecodeError as error:
                corrected = _corrected(text, error.pos)
                self._corrections += 1
                if corrected is None or self._corrections > MOST_CORRECTIONS:
                    return None
                if error.pos <= last_error:  # the correction before did not help
                    return None
                text = corrected
                last_error = error.pos
            else:
                if decoded is not None:
                    self.text = text
                return decoded


def _decoded_object(text: str, start: int) -> _Object | None:
    """The object that begins at ``start``; None for other values, or ones that Python cannot hold.

    Raises:
        Invalid: the object is nested too deeply, or as the hooks of the decoder.
        json.JSONDecodeError: the text is not JSON.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise Invalid("it is nested too deeply") from error
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number with more digits than Python reads
        return None
    return _Object(value, end) if isinstance(value, dict) else None


def _corrected(text: str, position: int) -> str | None:
    """``text`` without the backslash or comma that stopped the decoder; None without either."""
    if text.startswith("\\_", position):  # Markdown's escape
        return text[:position] + text[position + 1 :]
    if text.startswith("\\", position):
        return _with_backslash(text, position)
    if text.startswith("\\u", position - 1):  # without four hexadecimal digits
        return _with_backslash(text, position - 1)
    comma = position  # where Python 3.13 stops
    if text.startswith(("}", "]"), position):  # where earlier versions stop
        comma = len(text[:position].rstrip()) - 1
    if _TRAILING_COMMA.match(text, max(comma, 0)):
        return text[:comma] + text[comma + 1 :]
    return None


def _with_backslash(text: str, position: int) -> str:
    return f"{text[:position]}\\{text[position:]}"


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise Invalid("an object has a duplicate key")
    return document


def _refuse_constant(name: str) -> None:
    raise Invalid(f"it has {name}, which is not JSON")


# strict=False: judges write line breaks into their reasons
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, strict=False
)
