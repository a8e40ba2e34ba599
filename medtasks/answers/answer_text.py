"""Open answers: the reply without its thinking and what wraps it."""

from __future__ import annotations

from medtasks.answers.base import ResponseFilter
from medtasks.answers.markup import own_turn
from medtasks.answers.thinking import PATTERNS, strip_thinking


def answer_text(text: str) -> str:
    """``text`` without thinking blocks, surrounding blanks and a leading ``Answer:``; may be empty.

    An ``<answer>`` tag around the whole reply is removed, as are the token that ends the model's turn and what follows.

    >>> answer_text("<think>hm</think> Answer: One pink polyp.")
    'One pink polyp.'
    """
    reply = own_turn(strip_thinking(text)).strip()
    wrapped = PATTERNS["wrapped"].fullmatch(reply)
    return PATTERNS["answer_label"].sub("", wrapped["inner"].strip() if wrapped else reply, count=1).strip()


class AnswerTextFilter(ResponseFilter):
    """Raw responses become answer texts."""

    version = "4"
    read = staticmethod(answer_text)
