"""Open answers: the reply without its thinking."""

from __future__ import annotations

import re

from medtasks.filters.base import ResponseFilter
from medtasks.filters.thinking import strip_thinking

_LABEL = re.compile(r"^(?:\*\*)?(?:final\s+)?answer\s*[:：](?:\*\*)?\s*", re.IGNORECASE)


def answer_text(text: str) -> str:
    """``text`` without thinking blocks, surrounding blanks and a leading ``Answer:``; may be empty.

    >>> answer_text("<think>hm</think> Answer: One pink polyp.")
    'One pink polyp.'
    """
    return _LABEL.sub("", strip_thinking(text), count=1).strip()


class AnswerTextFilter(ResponseFilter):
    """Raw responses become answer texts."""

    version = "2"
    read = staticmethod(answer_text)
