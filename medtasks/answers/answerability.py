"""Answers of a task that lets the model abstain with the word ``unanswerable``.

Questions may end with "respond exactly: unanswerable" if the evidence is missing. A longer reply is
still an abstention if that is its answer. The rules:

1. Thinking blocks and leading ``Answer:`` labels are removed; what is left is the answer, or
``empty``.
2. The deciding part is the text after the last label that begins a line (``Answer: …``, ``Final
   answer: …``, ``{"answer": …``); without a label it is the whole answer. Markup does not count.
3. The reply abstains if the deciding part begins with ``unanswerable`` (any case, an option's
   letter before it), and ends there or continues with an explanation: after a sign, *because*, *at
   this time*, *from the frames*.
4. It also abstains if one of its sentences calls the question, the answer or the response
   unanswerable, or concludes with the word (``so the response is: unanswerable``, ``I would answer
   unanswerable``, ``Therefore, unanswerable.``), or is that word alone.
5. A short reply that says nothing but that the question cannot be answered abstains, too, in
   whatever words (``cannot be answered from the clip``, ``There isn't enough visual information``;
   ``words/abstentions.yaml``).
6. A reply that only mentions the word (``not unanswerable``, ``unanswerable | answer``, ``is it
   unanswerable?``, ``if … unanswerable``), or continues with *but* or *or*, is an answer, and stays
   as it was written.
"""

from __future__ import annotations

from typing import Literal

from medtasks.answers.base import ResponseFilter
from medtasks.answers.markup import answer_text, bounded, plain_text, reply_text
from medtasks.answers.vocabulary import Vocabulary

UNANSWERABLE = "unanswerable"
"""How every abstention is written after filtering."""

AnswerabilityStatus = Literal["ok", "unanswerable", "empty"]

_EMPTY = "[empty]"
_PATTERNS = Vocabulary("abstentions")


def answer_or_unanswerable(text: str) -> str:
    """The answer without thinking and leading labels, ``unanswerable`` where it abstains, or
    ``[empty]``.

    >>> (answer_or_unanswerable("Answer: Unanswerable - the view is dark"),
    ...  answer_or_unanswerable("Answer: a polyp"))
    ('unanswerable', 'a polyp')
    """
    answer, before = text, ""
    while answer != before:  # removing a label may uncover thinking or another label
        before = answer
        answer = answer_text(reply_text(answer))
        labels = _PATTERNS["labels_again"].match(answer)
        if labels:
            answer = answer[labels.end() :].strip()
    bare_text = plain_text(bounded(answer))
    if answer == _EMPTY or not bare_text:
        return _EMPTY
    return UNANSWERABLE if _abstains(bare_text) else answer


def answerability_status(filtered: str) -> AnswerabilityStatus:
    """Status of a response, filtered or not."""
    answer = answer_or_unanswerable(filtered)
    if answer == _EMPTY:
        return "empty"
    return "unanswerable" if answer == UNANSWERABLE else "ok"


class AnswerabilityFilter(ResponseFilter):
    """Raw responses become answers, ``unanswerable`` or ``[empty]``."""

    version = "14"
    status = staticmethod(answerability_status)
    read = staticmethod(answer_or_unanswerable)


def declines(reply: str) -> bool:
    """Whether a short reply says only that the question cannot be answered."""
    if len(reply) > 400 or "?" in reply or not _PATTERNS["declines"].search(reply):
        return False
    # "Not visible on the left; it lies behind the liver."
    if _PATTERNS["placed_elsewhere"].search(reply):
        return False
    return _PATTERNS["answers"].search(_PATTERNS["sorry"].sub("", reply)) is None


def _abstains(bare_text: str) -> bool:
    """Whether an answer without markup is an abstention (rules 3 to 5)."""
    # {"answerable": false, "answer": null}
    if bare_text.startswith("{") and _PATTERNS["flagged"].match(bare_text):
        return True
    start = _deciding_start(bare_text)
    answer = bare_text[start:].strip()
    if _PATTERNS["abstains"].match(bare_text, start) or declines(answer):
        return True
    return any(map(_concludes, _PATTERNS["sentence_ends"].split(answer)))


def _deciding_start(bare_text: str) -> int:
    """Where the last label ends that words follow; 0 without a label."""
    labels = list(_PATTERNS["label"].finditer(bare_text))
    for label in reversed(labels):
        behind = bare_text[label.end() : label.end() + 40]
        if any(map(str.isalnum, behind)):
            return label.end()
    return 0


def _concludes(sentence: str) -> bool:
    """Whether the sentence calls the question or the answer unanswerable, neither asked nor
    doubted.
    """
    if _PATTERNS["abstains"].fullmatch(sentence.strip()):
        return True
    statement = _PATTERNS["concludes"].search(sentence)
    if statement is None or "?" in sentence[statement.end() :]:
        return False
    before = sentence[: statement.start("word")]
    if _PATTERNS["condition"].search(before, 0, statement.start()):
        return False
    return _PATTERNS["doubts"].search(_PATTERNS["clause_ends"].split(before)[-1]) is None
