"""Reproducibility signatures: one line with all that affects a score but the model; equal lines are
comparable.

Modelled on sacrebleu's: ``key:value`` parts separated by bars, the metric's own first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from medtasks.core.errors import UsageError
from medtasks.core.files import HASH_LENGTH
from medtasks.runs.samples import UNKNOWN_PROMPT

PROTOCOL_PARTS = (
    "task", "group", "version", "filters", "prompt", "protocol", "data", "items", "subset",
    "blind", "pace", "harness", "judge", "confidence-of", "timing",
)  # fmt: skip
"""The parts of a signature that do not come from its metric."""
_NAMES = {
    "version": "task version",
    "protocol": "protocol (task file, metrics, generation settings, frames)",
    "data": "data",
    "harness": "harness options",
    "timing": "timing of streams (law, scale, default tolerance)",
    "split": "sentence splitter of METEOR (NLTK's punkt_tab, or none)",
}
_HASH = re.compile(rf"[0-9a-f]{{{HASH_LENGTH}}}")


def format_signature(parts: Mapping[str, str]) -> str:
    """The parts as one line: the value of ``metric``, then the others as ``key:value``, or only the
    key if it is empty; percent-encoded as in URLs.
    """
    words = [_quoted(parts.get("metric", ""))]
    for key, value in parts.items():
        if key == "metric":
            continue
        word = _quoted(key)
        if value:
            word = f"{word}:{_quoted(value)}"
        words.append(word)
    return "|".join(words)


def parse_signature(text: str) -> dict[str, str]:
    """The parts in a line by :func:`format_signature`, in their order.

    Raises:
        UsageError: a key is duplicated, or a part has none.
    """
    first, *words = text.split("|")
    parts = {"metric": _unquoted(first)}
    for word in words:
        quoted_key, _, value = word.partition(":")
        key = _unquoted(quoted_key)
        if not key or key in parts:
            raise UsageError(
                f"signature {text[:200]!r}: part {word!r} has no key; restore the signature."
            )
        parts[key] = _unquoted(value)
    return parts


def changed_signature(signature: str, **parts: str) -> str:
    """The signature with other ``parts``, or with further ones at its end."""
    return format_signature({**parse_signature(signature), **parts})


_quoted = functools.partial(quote, safe=",;=+()/@*", errors="surrogatepass")
_unquoted = functools.partial(unquote, errors="surrogatepass")


def has_unknown_prompts(signature: str) -> bool:
    """Whether the prompts are unknown, because the responses were made elsewhere. Such scores are
    comparable only with each other, and only if their models were in fact asked the same.
    """
    return parse_signature(signature).get("prompt") == UNKNOWN_PROMPT


def differences(signature: str, expected: str) -> list[str]:
    """How a signature differs from the expected one, a short sentence for each part; empty if they
    are equal.
    """
    parts = parse_signature(signature)
    expected_parts = parse_signature(expected)
    differing = []
    for key in dict.fromkeys((*parts, *expected_parts)):
        if parts.get(key) != expected_parts.get(key):
            differing.append(key)
    if "subset" in differing and "items" in differing:
        differing.remove("items")  # other subsets have other samples
    return [_difference(key, parts.get(key), expected_parts.get(key)) for key in differing]


def _difference(key: str, value: str | None, expected: str | None) -> str:
    """How the value of one part differs; None if a signature lacks the part."""
    if key == "blind":
        return "blind: prompts without media" if value else "prompts with media instead of blind"
    if key == "pace":
        return _difference_of_pace(value, expected)
    if key == "items" and value and expected:
        return _difference_of_items(value, expected)
    name = _NAMES.get(key, key)
    before = f"no {name}" if value is None else f"{name} {_short_value(value)}"
    after = "none" if expected is None else _short_value(expected)
    return f"{before} instead of {after}"


def _difference_of_pace(pace: str | None, expected: str | None) -> str:
    """How the paces differ at which rounds of streams were sent."""
    if pace is None:
        return "rounds of streams sent without pace instead of in real time"
    if expected is None:
        return "rounds of streams sent in real time instead of without pace"
    return f"pace of streams {_short_value(pace)} instead of {_short_value(expected)}"


def _difference_of_items(items: str, expected: str) -> str:
    """The numbers of samples in two values of ``items``, or that the samples differ."""
    count = items.partition("-")[0]
    expected_count = expected.partition("-")[0]
    if count == expected_count:
        return f"other samples ({count} in both)"
    samples = "sample" if count == "1" else "samples"
    return f"{count} {samples} instead of {expected_count}"


def _short_value(value: str) -> str:
    """A value for people: hashes are cut to eight characters."""

    def shortened(match: re.Match[str]) -> str:
        return match[0][:8] + "…"

    return _HASH.sub(shortened, value) or "set"
