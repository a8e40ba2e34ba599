"""Do prompts hold the gold answer where nothing hides it: in the question, or in a field that is shown beside it?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from medtasks.validation.codes import shown
from medtasks.validation.options import options_of
from medtasks.validation.rendered import texts_in
from medtasks.validation.tally import Tally

__all__ = ["check_giveaways"]

FEW = 5
"""Documents below which an answer may be in its question by chance."""

MOST = 0.8
"""Share of documents whose field holds their own answer, from which it is no chance."""

OTHERS = 0.2
"""Share of documents whose field holds another answer, up to which it tells which is right: "red or blue?" does not."""

_OPTIONS = frozenset({"choices", "options"})
_NO_WORD = re.compile(r"\W+")


def check_giveaways(documents: Sequence[Mapping[str, Any]], fields: Set[str], tally: Tally) -> None:
    """Count in ``tally`` the documents of which one of ``fields``, which their prompt shows, holds the gold answer.

    A field is reported where it holds the document's own answer nearly always, and another answer hardly ever: as its
    words, or by its letter. The list of options holds all answers, and is left out.
    """
    answers = list(_answers(documents))
    for field in sorted(fields - _OPTIONS):
        texts = [_words(_text(document.get(field))) for document in documents]
        for kind in ("text", "letter"):
            rows = [
                (document, *pair)
                for document, text, own in zip(documents, texts, answers, strict=True)
                if (pair := _held(text, own.get(kind))) is not None
            ]
            _count(field, kind, rows, tally)


def _count(field: str, kind: str, rows: Sequence[tuple[Mapping[str, Any], bool, bool]], tally: Tally) -> None:
    told = [document for document, own, _ in rows if own]
    other = sum(held for _, _, held in rows)
    if len(rows) < FEW or len(told) < MOST * len(rows) or other > OTHERS * len(rows):
        return
    tally.withdraw("MT323", field)
    for document in told:
        message = f"`{field}` holds the {kind} of the gold answer ({shown(document['target'])}), which the prompt shows"
        tally.add("MT219", document, message, "take the answer out of it", field)


Answers = tuple[str, str]
"""The words of a document's own answer, and of another one."""


def _answers(documents: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Answers]]:
    """For each document its own answer and one that is wrong, as text and, where there are options, as letter."""
    distinct = sorted({str(document.get("target")) for document in documents})
    following = dict(zip(distinct, (*distinct[1:], *distinct[:1]), strict=True))
    for document in documents:
        target, options = str(document.get("target")), dict(options_of(document))
        if target in options and isinstance(document.get("choices"), Mapping):
            wrong = next((name for name in options if options[name] != options[target]), None)
            yield {} if wrong is None else {"text": (options[target], options[wrong]), "letter": (target, wrong)}
        else:
            wrong = next((one for one in (*options.values(), following[target]) if one != target), None)
            yield {} if wrong is None else {"text": (target, wrong)}


def _held(text: str, answers: Answers | None) -> tuple[bool, bool] | None:
    """Whether a text holds the own and the other answer; None where there is nothing to look for."""
    if answers is None:
        return None
    own, other = map(_words, answers)
    if not own.strip() or not other.strip() or own == other:
        return None
    return own in text, other in text


def _text(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else " ".join(texts_in(value))


def _words(text: str) -> str:
    """The words of ``text``, with a blank before, between and after them."""
    return f" {_NO_WORD.sub(' ', text.casefold()).strip()} "
