"""Base class of filters: each response is filtered on its own, by a function from text to text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar


class ResponseFilter:
    """A step for the harness's ``filter_list``; ``read`` filters one raw response.

    ``version`` changes whenever a rule does and is part of every protocol hash. ``status`` is the extraction status of
    a filtered response: ``ok``, or why there is no answer to score.
    """

    version: ClassVar[str]
    read: Callable[[str], str]

    @staticmethod
    def status(filtered: str) -> str:
        """``empty``, or ``ok`` for any other text."""
        return "ok" if filtered.strip() else "empty"

    def reader(self, docs: Any) -> Callable[[str], str]:  # noqa: ARG002
        """``read``, or for a filter that depends on the documents, the function for ``docs``."""
        return self.read

    def apply(self, resps: list[list[str]], docs: Any) -> list[str | list[str]]:
        """One filtered string per document; a list of them if a document was answered several times."""
        read = cache(self.reader(docs))  # many responses are one letter
        filtered = [[read(text) for text in answers] for answers in resps]
        return [answers[0] if len(answers) == 1 else answers for answers in filtered]
