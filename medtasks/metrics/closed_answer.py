"""Closed questions: normalised exact match against the answer's text or its letter.

Case, punctuation and articles are ignored, an option's letter is as good as its text, and several
answers are a set (docs/fidelity.md). Anything else is a mismatch (a judge may review mismatches,
counted separately). The rules:

1. Thinking blocks and markup are removed. A reply that is nothing but a selection is read whole. If
   it is not, stated confidences at the end of lines (``forceps, confidence: 90%``) are removed,
   too.
2. Otherwise the text after a label is read: after *final* answers (including a LaTeX box and an
   answer tag) if there are any, else after ``Answer:``, else after ``the answer is``. The last one
   decides, and no other one of its rank, nor a later one, may select something else.
3. Without a label, and after one, the lines of a text are read: one unbroken run of lines that are
   selections counts, at the beginning or (without a label) at the end; the rest is an explanation,
   and must not select anything else.
4. A selection of one option is its text, its letter (``B``, ``(b)``, ``Option B``), or letter and
   text (``B. forceps``, ``forceps (B)``). A letter whose text contradicts it selects nothing.
   Letters are A, B, C … in the order of choices.
5. Texts take precedence over letters; if a choice is itself a single letter, letters select
   nothing.
6. For several answers, selections are joined by comma, semicolon, slash, *and*, ``&``, line breaks
   or bullets; the longest choice texts are matched first, so a choice may contain such a separator.
   Sets must be equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from medtasks.answers.markup import plain_text, reply_text
from medtasks.answers.stated_confidence import without_confidence
from medtasks.metrics.answer_options import answer_options
from medtasks.metrics.normalisation import has_content

VERSION = "3"
"""Bumped when a rule changes; part of the signature of every metric based on matches."""

_LABEL = re.compile(
    r"(?:(?<![^\W_])(?P<final>final[\s_-]{1,3})?(?:answers?|ans\.?|response|(?:correct|best|right|chosen|selected)\s{1,3}"
    r"(?:options?|choices?))|答案)[\"')\]]{0,3}[ \t]{0,4}"
    r"(?:(?P<sign>[:=]|->|→|[-–—][ \t])"
    r"|(?:is|are|would[ \t]be|是|为)(?P<colon>[ \t]{0,3}[:=])?(?![^\W_])|(?P<above>\n))",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]{0,4}(?:```|~~~)[a-z]{0,12}[ \t]{0,4}$", re.IGNORECASE | re.MULTILINE)
_KEYS = (
    "final_answer",
    "answer",
    "answers",
    "response",
    "choice",
    "option",
    "selected",
    "selection",
)

_Reader = Callable[[str], "frozenset[int] | None"]
"""The options that a text selects; None if it is not a selection."""


def closed_answer_matches(
    response: str, answers: Sequence[str], choices: Sequence[str] = (), multi_select: bool = False
) -> bool:
    """Whether ``response``, raw or filtered, selects exactly ``answers``, by the rules in this
    module's docstring.

    ``answers`` are texts of ``choices``, or their letters; several imply ``multi_select``. A
    question without options has no choices.

    >>> choices = ["hand", "forceps", "bovie"]
    >>> replies = ("B) Forceps.", "A) Forceps")
    >>> [closed_answer_matches(reply, ["forceps"], choices) for reply in replies]
    [True, False]
    """
    options, expected = answer_options(choices, answers)
    if not expected:
        return False
    several = multi_select or len(expected) > 1
    return _selected(response, options.several if several else options.single) == expected


def _selected(response: str, read: _Reader) -> frozenset[int] | None:
    """The options the reply selects, read by ``read`` (rules 1 to 3)."""
    reply = reply_text(response)
    if reply == "[empty]":
        return None
    text = plain_text(_from_json(_FENCE.sub("", reply).strip()))
    whole = read(text)
    if whole is not None:
        return whole
    text = without_confidence(text)
    labelled = _labelled_selections(text, read)
    if not labelled:
        return _selection_of_lines(text, read, at_end=True)
    return _decisive_selection(labelled)


class _Rank(IntEnum):
    """How strongly a label says that an answer follows."""

    SAID = 0
    LABELLED = 1
    FINAL = 2


class _Labelled(NamedTuple):
    """What the text after a label selects."""

    rank: _Rank
    selection: frozenset[int] | None


def _labelled_selections(text: str, read: _Reader) -> list[_Labelled]:
    """What the text after each label, up to the next one, selects; labels before blank text are
    left out.
    """
    labels = [label for label in _LABEL.finditer(text) if _is_label(label)]
    ends = [label.start() for label in labels[1:]]
    ends.append(len(text))
    labelled = []
    for label, end in zip(labels, ends, strict=False):
        introduced = text[label.end() : end]
        if has_content(introduced):
            selection = _selection_of_lines(introduced, read, at_end=False)
            labelled.append(_Labelled(_rank_of_label(label), selection))
    return labelled


def _is_label(match: re.Match[str]) -> bool:
    """Whether a match is a label: if a line break follows, it must be the first word in its
    line.
    """
    if not match["above"]:
        return True
    before = match.string[max(0, match.start() - 12) : match.start()].rpartition("\n")[2]
    return not any(character.isalnum() for character in before)


def _rank_of_label(label: re.Match[str]) -> _Rank:
    """Final, or labelled by a sign or a line of its own, or said in a sentence."""
    if not (label["sign"] or label["colon"] or label["above"]):
        return _Rank.SAID
    return _Rank.FINAL if label["final"] else _Rank.LABELLED


def _decisive_selection(labelled: Sequence[_Labelled]) -> frozenset[int] | None:
    """The selection of the last label of the highest rank; None if another one of its rank, or a
    later one, selects something else.
    """
    highest = max(label.rank for label in labelled)
    deciding = max(place for place, label in enumerate(labelled) if label.rank == highest)
    answer = labelled[deciding].selection
    selections = set()
    for place, label in enumerate(labelled):
        counts = label.rank == highest or place > deciding
        if counts and label.selection is not None:
            selections.add(label.selection)
    return answer if selections == {answer} else None


def _selection_of_lines(text: str, read: _Reader, at_end: bool) -> frozenset[int] | None:
    """The options that the text selects as a whole, or that one run of its lines selects: the
    first lines or, with ``at_end``, also the last ones.
    """
    whole = read(text)
    if whole is not None:
        return whole
    selections = [read(line) for line in text.split("\n") if has_content(line)]
    places = [place for place, selection in enumerate(selections) if selection is not None]
    if not places:
        return None
    first, last = places[0], places[-1]
    is_one_run = last - first + 1 == len(places)
    is_at_end = at_end and last == len(selections) - 1
    if not is_one_run or not (first == 0 or is_at_end):
        return None
    chosen: set[int] = set()
    for selection in selections:
        chosen.update(selection or ())
    return frozenset(chosen)


def _from_json(text: str) -> str:
    """The answer in a JSON reply, one per line if there are several; any other text unchanged."""
    if not text.startswith(("{", "[")):
        return text
    try:
        loaded = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    if isinstance(loaded, dict):
        loaded = _answer_field(loaded)
    answers = loaded if isinstance(loaded, list) else [loaded]
    if not all(isinstance(answer, (str, int, float)) for answer in answers):
        return text
    return "\n".join(str(answer) for answer in answers)


def _answer_field(reply: dict[str, Any]) -> Any:
    """The value of the first key that names an answer; None without one."""
    fields = {key.casefold(): value for key, value in reply.items()}
    for key in _KEYS:
        if key in fields:
            return fields[key]
    return None
