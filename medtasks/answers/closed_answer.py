"""The label that a response to a closed question gives: *yes* or *no*, or one of a list.

1. Thinking, markup and what follows the model's turn are removed. If nothing is left, the status is
   ``empty``.
2. If the response or its last sentence, or what follows its label (``The answer is``) or last box,
   is one label and nothing else, that label is the answer (`medtasks.answers.whole_answer`). So is
   *yes* or *no* at the beginning, unless another label contradicts it.
3. Otherwise the labels count that the response asserts (`medtasks.answers.presence`): ``No
   pneumonia, but an effusion`` asserts the effusion. A longer label is not a mention of a shorter
   one within it. One label is the answer; several are ``multiple``, and no label is ``none``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medtasks.answers.base import Reading, ResponseFilter
from medtasks.answers.markup import answer_text, plain_reply
from medtasks.answers.presence import said_of
from medtasks.answers.thoughts import strip_thinking
from medtasks.answers.whole_answer import whole_answer, yes_or_no

_MARKERS = {"[empty]": "empty", "[none]": "none", "[multiple]": "multiple"}


def closed_answer(text: str, labels: Sequence[str]) -> str:
    """The label that a response gives, or a status in brackets, by the rules in this module's
    docstring.

    Without ``labels``, the answer's text in lower case, without final punctuation.

    >>> closed_answer("Yes, on the left.", ("yes", "no")), closed_answer("CT.", ())
    ('yes', 'ct')
    >>> closed_answer("No pneumonia, but an effusion.", ("pneumonia", "effusion"))
    'effusion'
    """
    if text.strip() in _MARKERS:
        return text.strip()
    if not labels:
        return answer_text(text).lower().strip(" .!。！")
    bare_text = plain_reply(strip_thinking(text))
    if not bare_text:
        return "[empty]"
    by_number = {str(number): label for number, label in enumerate(labels)}
    number = whole_answer(bare_text, by_number).text or yes_or_no(bare_text, by_number)
    if number:
        return by_number[number]
    asserted = [label for label in labels if _is_asserted(bare_text, label, labels)]
    if len(asserted) > 1:
        return "[multiple]"
    return asserted[0] if asserted else "[none]"


def _is_asserted(text: str, label: str, labels: Sequence[str]) -> bool:
    """Whether a text says that ``label`` is the case, where no longer label contains it."""
    for longer in labels:
        if len(longer) > len(label) and label.casefold() in longer.casefold():
            text = re.sub(re.escape(longer), "…", text, flags=re.IGNORECASE)
    if not label.isascii():  # scripts without blanks between words
        return label in text
    return said_of(text, re.escape(label)) == "present"


class ClosedAnswerFilter(ResponseFilter):
    """Raw responses become one of the document's labels or ``[status]`` markers.

    The labels are the document's ``options`` or, of other documents, its ``guesses``.
    """

    version = "1"

    @staticmethod
    def status(filtered: str) -> str:
        """``empty``, ``none`` or ``multiple`` for a marker, ``ok`` for a label."""
        return _MARKERS.get(filtered, "ok" if filtered.strip() else "empty")

    def context(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """The labels."""
        return tuple(document.get("options") or document.get("guesses") or ())

    def reader(self, context: tuple[str, ...]) -> Callable[[str], Reading]:
        """Reads one response."""
        return lambda text: Reading(closed_answer(text, context))
