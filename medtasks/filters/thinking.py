"""Reasoning that a model thinks aloud before it answers is not part of the answer."""

from __future__ import annotations

import re

__all__ = ["strip_thinking"]

_NAMES = "think|thinking|thought|analysis|reasoning"
_TAG = re.compile(
    rf"<\s{{0,3}}(?P<close>/)?\s{{0,3}}(?:{_NAMES})\s{{0,3}}>|◁\s{{0,3}}(?P<kimi>/)?\s{{0,3}}think\s{{0,3}}▷",
    re.IGNORECASE,
)


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
    for tag in _TAG.finditer(text):
        if depth == 0:
            kept.append(text[position : tag.start()])
        position = tag.end()
        if not (tag["close"] or tag["kimi"]):
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept).strip()
