"""Removal of the reasoning before an answer."""

from __future__ import annotations

from medtasks.answers.vocabulary import Vocabulary

PATTERNS = Vocabulary("markup")


def strip_thinking(text: str) -> str:
    """``text`` without its thinking blocks, stripped of surrounding blanks.

    Blocks are ``<think>`` and its variants (``[THINK]``, ``◁think▷``, ``<|begin_of_thought|>``, …), the text from a
    heading ``## Thinking`` to ``## Final Response``, and every channel but the final one
    (``<|channel|>analysis<|message|>``, also without its special tokens: ``analysisWe … assistantfinal``).

    A closing tag without an opening one (chat templates may prefill the opening tag) ends reasoning that began
    at the start. After an opening tag that is never closed (the response was cut off) everything is reasoning, unless
    it ends with an ``<answer>`` tag. Nested blocks end with the outermost one.

    >>> strip_thinking("<think>A or B?</think>B"), strip_thinking("or C</think> D"), strip_thinking("<think>E")
    ('B', 'D', '')
    """
    if PATTERNS["tagged"].search(text) is None:
        return _last_channel(text.strip())
    kept: list[str] = []
    depth, position, below_heading = 0, 0, False
    for tag in PATTERNS["thinking"].finditer(text):
        if tag["answer"] and not below_heading:
            continue
        if depth == 0:
            kept.append(text[position : tag.start()])
        position = tag.end()
        if tag["answer"]:
            depth, below_heading = 0, False
        elif tag["heading"]:
            depth, below_heading = max(depth, 1), True
        elif tag["opened"]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
    if depth == 0:
        kept.append(text[position:])
    elif tagged := PATTERNS["tagged_answer"].search(text, position):
        kept.append(tagged[0])
    return _last_channel("".join(kept).strip())


def _last_channel(text: str) -> str:
    """The text of the last final channel; all of ``text`` if it has no channels."""
    channels = list(PATTERNS["channel"].finditer(text)) if "<|message|>" in text else []  # the search alone is slow
    if channels:
        final = [channel["said"] for channel in channels if channel["name"] == "final"]
        text = final[-1].strip() if final else ""
    for _ in range(2):  # the text of the final channel may begin like an analysis again
        text = PATTERNS["channels_joined"].sub("", text).strip()
    return text
