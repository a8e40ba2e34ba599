"""A response without the model's thoughts, by a table of the formats in which models mark them.

The table is `words/thoughts.yaml`. Markers may be left in by a back-end, stripped in part, or cut
off by a token limit, so a thought is also what stands before a closing marker without an opening
one, and what follows an opening marker that is never closed.
"""

from __future__ import annotations

import re
from functools import cache

from medtasks.answers.vocabulary import Vocabulary

_PATTERNS = Vocabulary("thoughts")

OPENING, CLOSING = "<think>", "</think>"
"""The markers that replace those of a format that is not in the table, where a back-end knows
them.
"""

_BLANK = " \t\r\n*_`#"


def strip_thinking(text: str) -> str:
    """``text`` without thoughts and the head of the model's turn, stripped of surrounding blanks.

    A thought is what a format of the table marks (``<think>``, ``[THINK]``, ``<|channel>thought``,
    …), the text from a heading ``## Thinking`` to ``## Final Response``, and every channel but the
    final one (``<|channel|>analysis<|message|>``, also without its special tokens: ``analysisWe …
    assistantfinal``). A closing marker without an opening one (chat templates may prefill it) ends
    a thought that began with the response; of a thought that is never closed, only an ``<answer>``
    tag at its end is left. Nested thoughts end with the outermost.

    >>> (strip_thinking("<think>A or B?</think>B"),
    ...  strip_thinking("or C</think> D"),
    ...  strip_thinking("<think>E"))
    ('B', 'D', '')
    >>> strip_thinking("<|channel>thought\\nA or B?<channel|>B"), strip_thinking("ASSISTANT: B")
    ('B', 'B')
    """
    turn = _without_head(text)
    if _PATTERNS["marked"].search(turn):  # quicker than looking for every boundary
        turn = _without_head(_outside_thoughts(turn))
    return _last_channel(turn.strip())


def _without_head(text: str) -> str:
    """``text`` without the tokens or the name that begin the model's turn."""
    return _PATTERNS["turn_begins"].sub("", text)


def _outside_thoughts(text: str) -> str:
    """``text`` without the parts between the boundaries of thoughts."""
    kept: list[str] = []
    depth = 0
    position = 0
    below_heading = False
    for boundary in _PATTERNS["boundary"].finditer(text):
        ends_heading = boundary["answer"] is not None
        if ends_heading and not below_heading:
            continue  # an answer's heading that no heading of a thought precedes
        if depth == 0:
            kept.append(text[position : boundary.start()])
        position = boundary.end()
        if ends_heading:
            depth, below_heading = 0, False
        elif boundary["heading"]:
            depth, below_heading = max(depth, 1), True
        elif boundary["opened"]:
            depth += 1
        elif depth:
            depth -= 1
        else:  # the opening marker was part of the prompt
            kept.clear()
    if depth == 0:
        kept.append(text[position:])
    elif answer := _PATTERNS["tagged_answer"].search(text, position):
        kept.append(answer[0])
    return "".join(kept)


def _last_channel(text: str) -> str:
    """What the last final channel of ``text`` says; ``text`` itself if it has no channels."""
    channels: list[re.Match[str]] = []
    if "<|message|>" in text:  # quicker than looking for a channel
        channels = list(_PATTERNS["channel"].finditer(text))
    if channels:
        final = [channel["said"] for channel in channels if channel["name"] == "final"]
        text = final[-1].strip() if final else ""
    for _ in range(2):  # the text of the final channel may begin like an analysis again
        text = _PATTERNS["channels_joined"].sub("", text).strip()
    return text


def own_turn(text: str) -> str:
    """``text`` up to the token that ends the model's turn; such tokens before any words are
    skipped.

    >>> own_turn("One polyp.<|im_end|>\\n<|im_start|>user"), own_turn("<turn|> B<turn|>")
    ('One polyp.', ' B')
    """
    if "<" not in text and "[" not in text:
        return text
    for turn in _PATTERNS["turn_ends"].split(text):
        if _PATTERNS["silent"].sub("", turn).strip(_BLANK):
            return turn
    return ""


def ends_in_opening(prompt: str) -> bool:
    """Whether ``prompt`` ends with a marker that opens a thought, so that the response begins
    within it.

    >>> (ends_in_opening("<|im_start|>assistant\\n<think>\\n"),
    ...  ends_in_opening("<think>\\n\\n</think>\\n\\n"))
    (True, False)
    """
    return _PATTERNS["opened_last"].search(prompt[-200:]) is not None


@cache
def marker_tokens() -> frozenset[str]:
    """Every marker of the table as a tokenizer has it: a back-end that drops one joins a thought
    and its answer.
    """
    tokens = set(_PATTERNS.table["channel_tokens"])
    for thought_format in _PATTERNS.table["formats"]:
        tokens.update(thought_format["tokens"])
    return frozenset(tokens)
