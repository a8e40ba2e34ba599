"""Responses without thinking and markup: answer texts, and words, brackets and line breaks that patterns can read."""

from __future__ import annotations

import unicodedata
from collections import Counter

from medtasks.answers.base import ResponseFilter
from medtasks.answers.vocabulary import Vocabulary

PATTERNS = Vocabulary("markup")
_LONGEST = 64_000
"""Characters that are read at most, half of them at the end."""

_TAG_SIGNS = str.maketrans("", "", "<>◁▷[]|#")
_CIRCLED = {ord("Ⓐ") + number: f"({chr(ord('A') + number)}) " for number in range(26)}
_BOLD = str.maketrans("‹›", "()")
_BRACKETS = str.maketrans("【】「」『』〔〕〈〉《》", "()()()()()()")


def strip_thinking(text: str) -> str:
    """``text`` without its thinking blocks, stripped of surrounding blanks.

    Blocks are ``<think>`` and its variants (``[THINK]``, ``◁think▷``, ``<|begin_of_thought|>``, …), the text from a
    heading ``## Thinking`` to ``## Final Response``, and every channel but the final one
    (``<|channel|>analysis<|message|>``, also without its special tokens: ``analysisWe … assistantfinal``). A closing
    tag without an opening one (chat templates may prefill it) ends reasoning that began at the start; one that is
    never closed leaves only an ``<answer>`` tag at the end. Nested blocks end with the outermost one.

    >>> strip_thinking("<think>A or B?</think>B"), strip_thinking("or C</think> D"), strip_thinking("<think>E")
    ('B', 'D', '')
    """
    kept: list[str] = []
    depth, position, below_heading = 0, 0, False
    for tag in PATTERNS["thinking"].finditer(text) if PATTERNS["tagged"].search(text) else ():  # a search is fast
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
    text = "".join(kept).strip()
    channels = list(PATTERNS["channel"].finditer(text)) if "<|message|>" in text else []  # the search alone is slow
    if channels:
        final = [channel["said"] for channel in channels if channel["name"] == "final"]
        text = final[-1].strip() if final else ""
    for _ in range(2):  # the text of the final channel may begin like an analysis again
        text = PATTERNS["channels_joined"].sub("", text).strip()
    return text


def bounded(reply: str) -> str:
    """A runaway reply without sentences that it repeats, and without its middle if it is still too long."""
    if len(reply) <= _LONGEST:
        return reply
    repeats = Counter[str]()
    text = ""
    pieces = PATTERNS["pieces"].findall(reply)
    for number, piece in enumerate(pieces):
        repeats[piece] += 1
        if repeats[piece] <= 2 or number >= len(pieces) - 4:
            text += piece
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}\n\n{text[-_LONGEST // 2 :]}"


def reply_text(text: str) -> str:
    """``text`` without thinking blocks, stripped; idempotent.

    >>> reply_text("<think>hm</think> It enhances.\\nFinal answer: meningioma")
    'It enhances.\\nFinal answer: meningioma'
    """
    reply = strip_thinking(text)
    if reply != text and strip_thinking(reply) != reply:  # removing one block joined the halves of another tag
        reply = reply.translate(_TAG_SIGNS).strip()
    return reply


def labelled(text: str) -> str:
    """``text`` with JSON keys and the tags of answers as labels, each at the start of a line.

    >>> labelled('{"chosen_option": "B"}'), labelled("<conclusion>B</conclusion>")
    ('{\\nchosen option: "B"}', '\\nfinal answer: B\\n')
    """
    words = PATTERNS["key_words"]
    return PATTERNS["key"].sub(lambda key: f"\n{words.sub(' ', key['key'])}: ", PATTERNS.rewrite("labels", text))


def own_turn(text: str) -> str:
    """``text`` up to the end of the model's own turn; tokens that end a turn before any word are skipped.

    >>> own_turn("One polyp.<|im_end|>\\n<|im_start|>user")
    'One polyp.'
    """
    if "<" not in text:
        return text
    return next((turn for turn in PATTERNS["turn_ends"].split(text) if plain_text(bounded(turn))), "")


def plain_text(text: str) -> str:
    """``text`` in Unicode form NFKC, without special tokens, Markdown, LaTeX and HTML emphasis, stripped.

    A LaTeX box and an ``<answer>`` tag become the words *final answer*.

    >>> plain_text("The result is **B**"), plain_text(r"$\\boxed{\\text{C}}$")
    ('The result is (B)', 'final answer: {{C}}')
    """
    return _normalised(text).translate(_BOLD)


def plain_reply(reply: str) -> str:
    """The model's own turn as plain text, in which JSON keys, answer tags and checked boxes are words and signs.

    A letter in bold is in brackets of its own, ``‹B›``.
    """
    signs = PATTERNS.rewrite("signs", own_turn(bounded(reply)).translate(_CIRCLED))
    return _normalised(PATTERNS.rewrite("cyrillic", labelled(signs)))


def _normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).translate(_BRACKETS)
    return (PATTERNS.rewrite("plain", text) if PATTERNS["marked"].search(text) else text).strip()  # a search is fast


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
