"""Responses without markup: answer texts, and words, brackets and line breaks that patterns can
read.
"""

from __future__ import annotations

import unicodedata
from collections import Counter

from medtasks.answers.base import ResponseFilter
from medtasks.answers.json_answer import answer_field
from medtasks.answers.thoughts import own_turn, strip_thinking
from medtasks.answers.vocabulary import Vocabulary

PATTERNS = Vocabulary("markup")
_LONGEST = 64_000
"""Characters that are read at most, half of them at the end."""

_TAG_SIGNS = str.maketrans("", "", "<>◁▷[]|#")
_CIRCLED = {ord("Ⓐ") + number: f"({chr(ord('A') + number)}) " for number in range(26)}
_BOLD = str.maketrans("‹›", "()")
_BRACKETS = str.maketrans("【】「」『』〔〕〈〉《》", "()()()()()()")


def bounded(reply: str) -> str:
    """A runaway reply without sentences that it repeats, and without its middle if it is still too
    long.
    """
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
    if (
        reply != text and strip_thinking(reply) != reply
    ):  # removing one block joined the halves of another tag
        reply = reply.translate(_TAG_SIGNS).strip()
    return reply


def labelled(text: str) -> str:
    """``text`` with JSON keys and the tags of answers as labels, each at the start of a line.

    >>> labelled('{"chosen_option": "B"}'), labelled("<conclusion>B</conclusion>")
    ('{\\nchosen option: "B"}', '\\nfinal answer: B\\n')
    """
    words = PATTERNS["key_words"]
    return PATTERNS["key"].sub(
        lambda key: f"\n{words.sub(' ', key['key'])}: ", PATTERNS.rewrite("labels", text)
    )


def plain_text(text: str) -> str:
    """``text`` in Unicode form NFKC, without special tokens, Markdown, LaTeX and HTML emphasis,
    stripped.

    A LaTeX box and an ``<answer>`` tag become the words *final answer*.

    >>> plain_text("The result is **B**"), plain_text(r"$\\boxed{\\text{C}}$")
    ('The result is (B)', 'final answer: {{C}}')
    """
    return _normalised(text).translate(_BOLD)


def plain_reply(reply: str) -> str:
    """The model's own turn as plain text, in which JSON keys, answer tags and checked boxes are
    words and signs.

    A letter in bold is in brackets of its own, ``‹B›``.
    """
    signs = PATTERNS.rewrite("signs", own_turn(bounded(reply)).translate(_CIRCLED))
    return _normalised(PATTERNS.rewrite("cyrillic", labelled(signs)))


def split_units(text: str) -> str:
    """``text`` with a blank between a number and its unit.

    >>> split_units("11-20mm"), split_units("T2, 3a")
    ('11-20 mm', 'T2, 3a')
    """
    return PATTERNS["unit_behind_number"].sub(" ", text)


def _normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).translate(_BRACKETS)
    return (
        PATTERNS.rewrite("plain", text) if PATTERNS["marked"].search(text) else text
    ).strip()  # a search is fast


def answer_text(text: str) -> str:
    """``text`` without thinking blocks, surrounding blanks and a leading ``Answer:``; may be empty.

    An ``<answer>`` tag around the whole reply is removed, as are the token that ends the model's
    turn and what follows. Of a reply that is a JSON object, the field that gives the answer is
    left.

    >>> (answer_text("<think>hm</think> Answer: One pink polyp."),
    ...  answer_text('{"answer": "One pink polyp."}'))
    ('One pink polyp.', 'One pink polyp.')
    """
    reply = own_turn(strip_thinking(text)).strip()
    wrapped = PATTERNS["wrapped"].fullmatch(reply)
    if wrapped:
        reply = wrapped["inner"].strip()
    field = answer_field(reply)
    if field is not None:
        reply = field
    return PATTERNS["answer_label"].sub("", reply, count=1).strip()


class AnswerTextFilter(ResponseFilter):
    """Raw responses become answer texts."""

    version = "5"
    read = staticmethod(answer_text)
