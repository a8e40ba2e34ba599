"""Which part of a response became the answer: pieces of the response, of which some are marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from medtasks.catalog.spec import TaskSpec

Span: TypeAlias = tuple[int, int]
_MOST_MENTIONS = 40
"""Mentions of a letter that are tried, the last ones; each try filters the whole response."""


class Piece(NamedTuple):
    """A piece of a response, and whether it became the answer."""

    text: str
    is_marked: bool


def response_pieces(
    spec: TaskSpec, response: str, filtered: str, document: Mapping[str, Any]
) -> list[Piece]:
    """The response in pieces, of which those are marked that the filter read ``filtered`` from.

    Words are marked where the response has them last. The mention of a letter is marked if the
    filter reads something else without it. If no single mention decides, the last two are tried
    together, then the last three, and so on. Nothing is marked if none of these decide.
    """
    mentions = _mentions(response, filtered)
    marked = mentions[-1:]
    if len(filtered) == 1:
        marked = _deciding_mentions(spec, response, filtered, document, mentions)
    pieces = []
    end = 0
    for start, stop in sorted(marked):
        pieces += [Piece(response[end:start], False), Piece(response[start:stop], True)]
        end = stop
    pieces.append(Piece(response[end:], False))
    return [piece for piece in pieces if piece.text]


def _mentions(response: str, filtered: str) -> list[Span]:
    """Where the response has the words of ``filtered``; a letter only where it is a word."""
    pattern = r"\s+".join(map(re.escape, filtered.split()))
    if not pattern:
        return []
    if len(filtered) == 1:
        pattern = rf"(?<![^\W\d_]){pattern}(?![^\W\d_])"
    return [match.span() for match in re.finditer(pattern, response, re.IGNORECASE)]


def _deciding_mentions(
    spec: TaskSpec,
    response: str,
    filtered: str,
    document: Mapping[str, Any],
    mentions: list[Span],
) -> list[Span]:
    """The mentions of a letter without which the task's filter reads something else.

    There are none if no mentions decide, or if the filter fails.
    """
    for spans in _tried_mentions(mentions):
        text = _blanked(response, spans)
        try:
            (reading,) = spec.filter.kind().apply([[text]], [document])
        except Exception:  # filters of other packages
            return []
        if not isinstance(reading, str) or reading.strip() != filtered:
            return spans
    return []


def _tried_mentions(mentions: list[Span]) -> Iterator[list[Span]]:
    """Each of the last mentions, the very last first; then the last two, the last three, ..."""
    latest = mentions[-_MOST_MENTIONS:][::-1]
    for mention in latest:
        yield [mention]
    for count in range(2, len(latest) + 1):
        yield latest[:count]


def _blanked(text: str, spans: Sequence[Span]) -> str:
    """The text with spaces in these spans.

    >>> _blanked("Answer: B", [(8, 9)])
    'Answer:  '
    """
    for start, stop in spans:
        text = f"{text[:start]}{' ' * (stop - start)}{text[stop:]}"
    return text
