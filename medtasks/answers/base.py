"""Base class of filters, which filter each response on its own, by a function from text to text;
and how much of a response is scored."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

LONGEST_SCORED = 2**20
"""Characters of a response that are scored: metrics on texts take a hundred bytes of memory and
more for each, and no model answers a question with a megabyte.
"""


def is_scored_whole(response: str) -> bool:
    """Whether the response has at most `LONGEST_SCORED` characters."""
    return len(response) <= LONGEST_SCORED


def scored_part(response: str) -> str:
    """What is scored of a response: all of it, or `LONGEST_SCORED` characters of its beginning and
    end.

    The end is kept because answers come last, after reasoning that ends there.
    """
    if is_scored_whole(response):
        return response
    gap = "\n\n"
    half = (LONGEST_SCORED - len(gap)) // 2
    return f"{response[:half]}{gap}{response[-half:]}"


class Reading(NamedTuple):
    """A filtered response, and how it was read if there are several ways
    (`medtasks.answers.option_letter`).
    """

    filtered: str
    how: str = ""


class ResponseFilter:
    """A step for the harness's ``filter_list``; ``read`` filters one raw response.

    ``version`` changes whenever a rule does and is part of every protocol hash. ``status`` is the
    extraction status of a filtered response: ``ok``, or why there is no answer to score.
    """

    version: ClassVar[str]
    read: Callable[[str], str]

    @staticmethod
    def status(filtered: str) -> str:
        """``empty``, or ``ok`` for any other text."""
        return "ok" if filtered.strip() else "empty"

    def context(self, document: Mapping[str, Any]) -> Hashable:  # noqa: ARG002
        """What of a document the reading depends on: nothing, unless a filter says otherwise."""
        return None

    def reader(self, context: Any) -> Callable[[str], Reading]:  # noqa: ARG002
        """The function that reads responses to documents with this context."""
        return lambda text: Reading(self.read(text))

    def readings(self, resps: Sequence[Sequence[str]], docs: Any) -> list[list[Reading]]:
        """The reading of every response to every document."""
        readers: dict[Hashable, Callable[[str], Reading]] = {}
        readings = []
        for texts, document in zip(resps, docs or [{}] * len(resps), strict=True):
            context = self.context(document)
            if context not in readers:
                readers[context] = cache(self.reader(context))  # many responses are one letter
            readings.append([readers[context](text) for text in texts])
        return readings

    def apply(self, resps: list[list[str]], docs: Any) -> list[str | list[str]]:
        """One filtered string per document; a list of them if a document was answered several
        times.
        """
        parts = [[scored_part(response) for response in responses] for responses in resps]
        filtered: list[str | list[str]] = []
        for readings in self.readings(parts, docs):
            answers = [reading.filtered for reading in readings]
            filtered.append(answers[0] if len(answers) == 1 else answers)
        return filtered
