"""Open answers: what a model says, without what it thinks."""

from __future__ import annotations

import re

from medtasks.filters.thinking import strip_thinking

__all__ = ["VERSION", "AnswerTextFilter", "answer_text"]

VERSION = "2"
"""Changes whenever the rule does; part of every protocol hash."""

_LABEL = re.compile(r"^(?:\*\*)?(?:final\s+)?answer\s*[:：](?:\*\*)?\s*", re.IGNORECASE)


def answer_text(text: str) -> str:
    """``text`` without thinking blocks, surrounding blanks and a leading ``Answer:``; may be empty.

    >>> answer_text("<think>hm</think> Answer: One pink polyp.")
    'One pink polyp.'
    """
    return _LABEL.sub("", strip_thinking(text), count=1).strip()


class AnswerTextFilter:
    """A step for the harness's ``filter_list``: raw responses become answer texts."""

    def apply(self, resps: list[list[str]], docs: object) -> list[str | list[str]]:
        """One filtered string per document; a list of them where a document was answered several times."""
        del docs
        filtered = [[answer_text(text) for text in answers] for answers in resps]
        return [answers[0] if len(answers) == 1 else answers for answers in filtered]
