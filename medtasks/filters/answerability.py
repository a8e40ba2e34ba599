"""Answers of a task that lets the model abstain with the word ``unanswerable``.

Questions may end with "respond exactly: unanswerable" if the evidence is missing. A longer reply is
still an abstention if that is its answer. The rules:

1. Thinking blocks and leading ``Answer:`` labels are removed; what is left is the answer, or ``empty``.
2. The deciding part is the text after the last label that begins a line (``Answer: …``, ``Final answer: …``,
   ``{"answer": …``); without a label it is the whole answer. Markup does not count.
3. The reply abstains if the deciding part begins with ``unanswerable`` (any case, an option's letter before it), and
   ends there or continues with an explanation: after a sign, *because*, *at this time*, *from the frames*.
4. It also abstains if one of its sentences calls the question, the answer or the response unanswerable, or concludes
   with the word (``so the response is: unanswerable``, ``I would answer unanswerable``, ``Therefore, unanswerable.``),
   or is that word alone.
5. A short reply that says nothing but that the question cannot be answered abstains, too, in whatever words
   (``cannot be answered from the clip``, ``There isn't enough visual information``; ``words/abstentions.yaml``).
6. A reply that only mentions the word (``not unanswerable``, ``unanswerable | answer``, ``is it unanswerable?``, ``if …
   unanswerable``), or continues with *but* or *or*, is an answer, and stays as it was written.
"""

from __future__ import annotations

import re
from typing import Literal

from medtasks.filters.answer_text import answer_text
from medtasks.filters.base import ResponseFilter
from medtasks.filters.cues import abstentions
from medtasks.filters.plain_text import bounded, plain_text
from medtasks.filters.reasoned_answer import reply_text

UNANSWERABLE = "unanswerable"
"""How every abstention is written after filtering."""

AnswerabilityStatus = Literal["ok", "unanswerable", "empty"]

_EMPTY = "[empty]"
_LABELS_AGAIN = re.compile(r"(?:(?:\*\*)?(?:final\s{1,20})?answer\s{0,20}[:：](?:\*\*)?\s*)+", re.IGNORECASE)
_LABEL = re.compile(
    r"^[^\w\n]{0,12}(?:(?:so|thus|therefore|hence|the|my|correct|final)[ ,_]{1,3}){0,4}"
    r"(?:answer|response|respond|reply|output|status|assistant)[\"')\]]{0,3}[ \t]{0,4}(?:[:=]|[-–—][ \t]|is\b:?|$)",
    re.IGNORECASE | re.MULTILINE,
)
_WORD = (
    r"un[ ‐‑-]?answerable(?![^\W_])[\"')\]}>]{0,4}[ \t]{0,4}(?![ \t,;.]{0,3}(?:but|however|although|though|or|yet)\b)"
    r"(?:[^\w?|/]*$|[.,:;!(\n–—。，；]|->|→|-[ \t]|\b(?:because|since|as|due\s+to|for\s+now|at\s+(?:this|the)|given"
    r"|based|until|unless|without|with|(?:from|in|within|by|using)\s{1,3}(?:the|this|these))\b)"
)
_OPEN = r"[\"'(\[{]{0,3}"
_ABSTAINS = re.compile(
    r"[\W_]{0,20}(?:(?:based\s+on|from|given|according\s+to)\s[^,.\n]{2,60},\s{0,3})?"
    rf"(?:option\s{{1,3}})?(?:[A-Z\d]{{1,2}}[)\].:]{{1,2}}\s{{0,3}})?{_OPEN}{_WORD}",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?:\b(?:question|query|answer|response|reply|output|status|it|this|that)\s{1,3}"
    r"(?:is|remains|stays|(?:must|should|has\s{1,3}to|is\s{1,3}to|(?<=answer\s)would|(?<=response\s)would)\s{1,3}be)"
    r"(?:\s{1,3}(?:therefore|thus|then|currently|simply|still|considered|deemed|marked\s{1,3}as|regarded\s{1,3}as)){0,2}"
    r"|\bI(?:['’](?:d|ll)|\s{1,3}(?:would|will|must|should|have\s{1,3}to)){0,2}\s{1,3}"
    r"(?:answer|respond|reply|say|conclude|go|choose|select)(?:\s{1,3}(?:with|that\s{1,3}it\s{1,3}is))?"
    r"|\b(?:therefore|thus|hence|so|response|answer|output|reply)|(?:因此|所以|故)?(?:回答|答案|输出)(?:是|为)?)"
    rf"\s{{0,3}}[:=,]?\s{{0,3}}{_OPEN}(?P<word>{_WORD})",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；;])|\n")
_DOUBTED = re.compile(
    r"\b(?:if|whether|where|when|unless|not|never|neither|hardly|previous|earlier|first|initially)\b|n['’]t\b",
    re.IGNORECASE,
)
_SORRY = re.compile(r"\A[^\w\n]{0,8}(?:I['’]m |I am )?sorry,? but\b", re.IGNORECASE)
_CONDITION = re.compile(r"\bif\b", re.IGNORECASE)
_CLAUSE_ENDS = re.compile(r"[,:]|\b(?:so|therefore|thus|hence|and)\b|，")


def answer_or_unanswerable(text: str) -> str:
    """The answer without thinking and leading labels, ``unanswerable`` where it abstains, or ``[empty]``.

    >>> answer_or_unanswerable("Answer: Unanswerable - the view is dark"), answer_or_unanswerable("Answer: a polyp")
    ('unanswerable', 'a polyp')
    """
    answer = _answer(text)
    plain = plain_text(bounded(answer))
    if answer == _EMPTY or not plain:
        return _EMPTY
    return UNANSWERABLE if _abstains(plain) else answer


def answerability_status(filtered: str) -> AnswerabilityStatus:
    """Status of a response, filtered or not."""
    answer = answer_or_unanswerable(filtered)
    if answer == _EMPTY:
        return "empty"
    return "unanswerable" if answer == UNANSWERABLE else "ok"


class AnswerabilityFilter(ResponseFilter):
    """Raw responses become answers, ``unanswerable`` or ``[empty]``."""

    version = "5"
    status = staticmethod(answerability_status)
    read = staticmethod(answer_or_unanswerable)


def _answer(text: str) -> str:
    """``text`` without thinking and leading labels; removing a label may uncover either again."""
    while (answer := _without_label(text)) != text:
        text = answer
    return answer


def _without_label(text: str) -> str:
    answer = answer_text(reply_text(text))
    again = _LABELS_AGAIN.match(answer)
    return answer[again.end() :].strip() if again else answer


def _abstains(plain: str) -> bool:
    start = 0
    for label in _LABEL.finditer(plain):
        if any(character.isalnum() for character in plain[label.end() : label.end() + 40]):
            start = label.end()
    if _ABSTAINS.match(plain, start):
        return True
    return _declines(plain[start:].strip()) or any(map(_concludes, _SENTENCE_ENDS.split(plain[start:])))


def _declines(reply: str) -> bool:
    """Whether a short reply says only that the question cannot be answered."""
    if len(reply) > 400 or "?" in reply:
        return False
    says, answers = abstentions()
    declined = says.match(reply)
    return declined is not None and answers.search(_SORRY.sub("", reply)) is None


def _concludes(sentence: str) -> bool:
    if _ABSTAINS.fullmatch(sentence.strip()):
        return True
    statement = _SAYS.search(sentence)
    if statement is None or "?" in sentence[statement.end() :] or _CONDITION.search(sentence[: statement.start()]):
        return False
    return _DOUBTED.search(_CLAUSE_ENDS.split(sentence[: statement.start("word")])[-1]) is None
