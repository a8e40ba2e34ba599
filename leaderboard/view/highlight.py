"""Which part of a response was extracted: its own words, or the option letter without which the extraction changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.answers.option_letter import read_stages
from medtasks.catalog.spec import TaskSpec

_MOST = 40
"""Letters of a response that are tried; each try filters the whole response."""


@dataclass(frozen=True)
class Segment:
    """A piece of a response; ``marked`` if it was extracted."""

    text: str
    marked: bool = False


def response_parts(spec: TaskSpec, response: str) -> list[tuple[str, str]]:
    """The response with the names of its stages, of which the last is read; one without a name if it has none."""
    stages = read_stages(response) if spec.stage1_template is not None else ("", response)
    return [("Stage 1", stages[0]), ("Stage 2", stages[1])] if stages[0] else [("", response)]


def segments(spec: TaskSpec, response: str, filtered: str, document: Mapping[str, Any]) -> list[Segment]:
    """``response``, with the part marked that became ``filtered``; unmarked if that cannot be told."""

    def read(text: str) -> str:
        (found,) = spec.filter.kind().apply([[text]], [document])
        return found.strip() if isinstance(found, str) else ""

    try:
        spans = _verbatim(response, filtered) if len(filtered) > 1 else _deciding(response, filtered, read)
    except Exception:  # filters of other packages
        spans = []
    found, end = [], 0
    for start, stop in sorted(spans):
        found += [Segment(response[end:start]), Segment(response[start:stop], marked=True)]
        end = stop
    return [one for one in (*found, Segment(response[end:])) if one.text]


def _verbatim(response: str, filtered: str) -> list[tuple[int, int]]:
    words = filtered.split()
    if not words:
        return []
    found = list(re.finditer(r"\s+".join(map(re.escape, words)), response, re.IGNORECASE))
    return [found[-1].span()] if found else []


def _deciding(response: str, letter: str, read: Callable[[str], str]) -> list[tuple[int, int]]:
    """The last mention of ``letter`` without which the extraction changes; else the last ones that do so together."""
    if not letter:
        return []
    pattern = rf"(?<![^\W\d_]){re.escape(letter)}(?![^\W\d_])"
    spans = [found.span() for found in re.finditer(pattern, response, re.IGNORECASE)][-_MOST:][::-1]
    for span in spans:
        if read(_without(response, [span])) != letter:
            return [span]
    for number in range(2, len(spans) + 1):
        if read(_without(response, spans[:number])) != letter:
            return spans[:number]
    return []


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    for start, stop in spans:
        text = f"{text[:start]}{' ' * (stop - start)}{text[stop:]}"
    return text
