"""Reasoning that a model thinks aloud before it answers is not part of the answer."""

from __future__ import annotations

import re

__all__ = ["strip_thinking"]

_NAMES = "think|thinking|thought|analysis|reasoning"
_OPEN = re.compile(rf"<\s*(?:{_NAMES})\s*>|◁\s*think\s*▷", re.IGNORECASE)
_CLOSE = re.compile(rf"<\s*/\s*(?:{_NAMES})\s*>|◁\s*/\s*think\s*▷", re.IGNORECASE)


def strip_thinking(text: str) -> str:
    """``text`` without its thinking blocks, stripped of surrounding blanks.

    A closing tag without an opening one (chat templates may prefill the opening tag) ends reasoning that began
    at the start. An opening tag that is never closed (the response was cut off) leaves nothing behind it: what
    follows is reasoning, not an answer. Nested blocks end with the outermost one.

    >>> strip_thinking("<think>A or B?</think>B"), strip_thinking("or C</think> D"), strip_thinking("<think>E")
    ('B', 'D', '')
    """
    kept: list[str] = []
    depth, position = 0, 0
    while position < len(text):
        opening, closing = _OPEN.search(text, position), _CLOSE.search(text, position)
        tag = min((match for match in (opening, closing) if match), key=lambda match: match.start(), default=None)
        end = tag.start() if tag else len(text)
        if depth == 0:
            kept.append(text[position:end])
        if tag is None:
            break
        if tag is opening:
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        position = tag.end()
    return "".join(kept).strip()
