"""Open answers: the reply without its thinking and what wraps it."""

from __future__ import annotations

import re

from medtasks.answers.base import ResponseFilter
from medtasks.answers.markup import own_turn
from medtasks.answers.thinking import strip_thinking

_WRAPPED = re.compile(
    r"(?:<answer>|<\|begin_of_box\|>)(?P<inner>(?:(?!</?answer>|<\|(?:begin|end)_of_box\|>)[\s\S])*)"
    r"(?:</answer>|<\|end_of_box\|>)?\s*",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^(?:\*\*)?(?:final\s+)?answer\s*[:：](?:\*\*)?\s*", re.IGNORECASE)


def answer_text(text: str) -> str:
    """``text`` without thinking blocks, surrounding blanks and a leading ``Answer:``; may be empty.

    An ``<answer>`` tag around the whole reply is removed, as are the token that ends the model's turn and what follows.

    >>> answer_text("<think>hm</think> Answer: One pink polyp.")
    'One pink polyp.'
    """
    reply = own_turn(strip_thinking(text)).strip()
    wrapped = _WRAPPED.fullmatch(reply)
    return _LABEL.sub("", wrapped["inner"].strip() if wrapped else reply, count=1).strip()


class AnswerTextFilter(ResponseFilter):
    """Raw responses become answer texts."""

    version = "3"
    read = staticmethod(answer_text)
