"""Responses without markup: words, brackets and line breaks that rules can read."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from medtasks.answers.thinking import strip_thinking

_SPECIAL_TOKEN = re.compile(r"<\|[^|<>\n]{0,40}\|>|</?(?:s|bos|eos|pad|unk|image)>", re.IGNORECASE)
_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|endoftext|end_of_text|end|return)\|>|</s>|<end_of_turn>|<eos>", re.IGNORECASE
)
_ANSWER_OPENED = re.compile(r"<\s{0,3}(?:final[ _-]?)?answer\s{0,3}>", re.IGNORECASE)
_ANSWER_CLOSED = re.compile(r"<\s{0,3}/\s{0,3}(?:final[ _-]?)?answer\s{0,3}>", re.IGNORECASE)
_TAG = re.compile(
    r"<(?P<close>\s{0,3}/)?\s{0,3}(?:(?P<name>alert|reason)|conclusion|solution|response|output|choice|prediction|option"
    r"|state|status|decision)\s{0,3}>|<\|(?P<side>begin|end)_of_(?:box|solution)\|>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br\s{0,2}/?>|</?(?:p|div|li|ul|ol|td|tr)>", re.IGNORECASE)
_KEY = re.compile(
    r"(?:(?<=[{,\[])|^)\s{0,20}(?P<quote>[\"'])(?P<key>[^\W\d_][\w .-]{0,40})(?P=quote)\s{0,4}:\s{0,4}", re.MULTILINE
)
_KEY_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|[_-]")
_BOXED = re.compile(r"\\boxed\s{0,3}(?=\{)")
_LATEX_FONT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf)\s{0,3}(?=\{)")
_LATEX_WORDS = re.compile(r"\\text\s{0,3}\{(?P<words>[^{}\n]{0,300}\s[^{}\n]{0,300})\}")
_LATEX_SIGN = re.compile(r"[\\$]")
_HTML_BOLD = re.compile(r"<(?P<tag>b|strong|em|i|u|code)>(?P<inner>[^<\n]{1,400})</(?P=tag)>", re.IGNORECASE)
_EMPHASISED_LETTER = re.compile(
    r"(?P<mark>\*{1,3}|_{2,3}|`{1,3})[ \t]?[(\[\"']?(?P<letter>[A-Za-z])[)\]\"']?[ \t]?[.:]?[ \t]?(?P=mark)"
)
_EMPHASISED_LABEL = re.compile(r"(?:\*{2,3}|__|`)[ \t]?\(?(?P<letter>[A-Z])[.:)](?=[ \t])")
_EMPHASIS = re.compile(r"[*`]|(?<![^\W_])_{1,20}|_{1,20}(?![^\W_])")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]?", re.MULTILINE)
_LONGEST = 64_000
"""Characters that are read at most, half of them at the end."""

_PIECES = re.compile(r"[^.!?。！？\n]{1,2520}[.!?。！？\n]*|[.!?。！？\n]+")
"""Sentences; of endless ones, pieces whose length is a multiple of the length of most words that a model repeats."""

_TAG_SIGNS = str.maketrans("", "", "<>◁▷[]|#")
_BRACKETS = str.maketrans("【】「」『』〔〕〈〉《》", "()()()()()()")


def bounded(reply: str) -> str:
    """A runaway reply without sentences that it repeats, and without its middle if it is still too long."""
    if len(reply) <= _LONGEST:
        return reply
    repeats = Counter[str]()
    kept = []
    pieces = _PIECES.findall(reply)
    for number, piece in enumerate(pieces):
        repeats[piece] += 1
        if repeats[piece] <= 2 or number >= len(pieces) - 4:
            kept.append(piece)
    text = "".join(kept)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}\n\n{text[-_LONGEST // 2 :]}"


def reply_text(text: str) -> str:
    """``text`` without thinking blocks, stripped; idempotent.

    >>> reply_text("<think>hm</think> It enhances.\\nFinal answer: meningioma")
    'It enhances.\\nFinal answer: meningioma'
    """
    reply = strip_thinking(text)
    if strip_thinking(reply) != reply:  # removing one block joined the halves of another tag
        reply = reply.translate(_TAG_SIGNS).strip()
    return reply


def labelled(text: str) -> str:
    """``text`` with JSON keys and the tags of answers as labels, each at the start of a line.

    >>> labelled('{"chosen_option": "B"}'), labelled("<conclusion>B</conclusion>")
    ('{\\nchosen option: "B"}', '\\nfinal answer: B\\n')
    """
    text = _TAG.sub(_tag_label, text)
    return _KEY.sub(lambda key: f"\n{_KEY_WORDS.sub(' ', key['key'])}: ", _BREAK.sub("\n", text))


def _tag_label(tag: re.Match[str]) -> str:
    return "\n" if tag["close"] or tag["side"] == "end" else f"\n{tag['name'] or 'final answer'}: "


def own_turn(text: str) -> str:
    """``text`` up to the end of the model's own turn; tokens that end a turn before any word are skipped.

    >>> own_turn("One polyp.<|im_end|>\\n<|im_start|>user")
    'One polyp.'
    """
    if "<" not in text:
        return text
    return next((turn for turn in _TURN_ENDS.split(text) if plain_text(bounded(turn))), "")


def plain_text(text: str) -> str:
    """``text`` in Unicode form NFKC, without special tokens, Markdown, LaTeX and HTML emphasis, stripped.

    An emphasised letter is put in brackets instead, since both mark a label. A LaTeX box and an ``<answer>`` tag become
    the words *final answer*.

    >>> plain_text("The result is **B**"), plain_text(r"$\\boxed{\\text{C}}$")
    ('The result is (B)', 'final answer: {{C}}')
    """
    text = unicodedata.normalize("NFKC", text).translate(_BRACKETS)
    text = _SPECIAL_TOKEN.sub("\n", text)
    text = _ANSWER_OPENED.sub("\nfinal answer: ", text)
    text = _ANSWER_CLOSED.sub("\n", text)
    text = _BOXED.sub("final answer: ", text)
    text = _LATEX_WORDS.sub(r"\g<words>", text)
    text = _LATEX_FONT.sub("", text)
    text = _LATEX_SIGN.sub("", text)
    text = _HTML_BOLD.sub(r"**\g<inner>**", text)
    text = _EMPHASISED_LETTER.sub(r"(\g<letter>)", text)
    text = _EMPHASISED_LABEL.sub(r"(\g<letter>)", text)
    text = _EMPHASIS.sub("", text)
    return _HEADING.sub("", text).strip()
