"""What a free answer says about a finding: that it is there, that it is not, how many there are, or
nothing clear.

Negation has a scope, as in NegEx (Chapman et al. 2001, J Biomed Inform 34:301-310): a trigger
before a mention (``no``, ``without``) or behind it (``is not seen``) denies it, up to a word or a
comma that begins a new statement. The rules:

1. Thinking blocks, markup and questions are removed. Statements end with sentences, at *but* and
   the like, and at a comma, *and* or *with* before an article, a number or *there*; lists (``no
   text, boxes or tools``) go on.
2. A statement that hedges (``may``, ``cannot be excluded``) makes its mentions unclear; *probably*
is no hedge.
3. Mentions that are asserted and denied make the finding unclear, unless *but*, *except* or the
   like comes between. Beside an assertion, ``no other polyps`` says nothing new; ``non-polypoid``
   and ``polyp-like`` are no mentions.
4. A count is the number before the noun (``two sessile polyps``) or behind it (``polyps: 2``); *a*
   and *single* are 1, a denied mention is 0. Vague numbers (``several``, ``two to three``), numbers
   that differ or are joined (``a flat and a sessile polyp``: one polyp and one polyp) give none, as
   do those of a type or grade (``type 1 polyp``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from medtasks.answers.markup import bounded, plain_text, reply_text
from medtasks.answers.vocabulary import MARK, Vocabulary

VERSION = "3"
"""Changes whenever a rule does; part of the signature of every score that reads answers this
way.
"""

Said = Literal["present", "absent", "unclear", "silent"]
_State = Said | Literal["no other"]

_PATTERNS = Vocabulary("findings")
_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_NUMBERS = {
    **{word: number for number, word in enumerate(_WORDS)},
    "a": 1,
    "an": 1,
    "single": 1,
    "solitary": 1,
}
_REACH = 200
"""How many characters before a mention may deny it."""


def said_of(text: str, terms: str) -> Said:
    """What ``text`` says about a finding; ``terms`` is a regular expression of its names.

    >>> said_of("No polyps are seen, but a metal clip is visible.", "polyps?")
    'absent'
    >>> said_of("A polyp cannot be excluded.", "polyps?"), said_of("The view is dark.", "polyps?")
    ('unclear', 'silent')
    """
    states: list[Said] = []
    contrasted = no_other = False
    for statement, mentions in _statements(text, terms):
        for state in mentions:
            if state == "no other":
                no_other = True
                continue
            if contrasted and state == "present" and "absent" in states:
                states.clear()
            contrasted = False
            states.append(state)
        contrasted = bool(states) and _PATTERNS["contrasts"].search(statement) is not None
    if not states:
        return "absent" if no_other else "silent"
    return states[0] if len(set(states)) == 1 else "unclear"


def bare_answer(text: str) -> Said:
    """``present`` or ``absent`` for an answer that begins with yes or no, as to one question about
    presence.
    """
    answer = _PATTERNS["bare"].match(_normalised(text))
    if answer is None:
        return "silent"
    return "present" if answer["yes"] else "absent"


def count_of(text: str, terms: str, *, only: bool = False) -> int | None:
    """How many of a finding ``text`` counts; None if it gives no one number.

    Args:
        text: the answer.
        terms: a regular expression of the finding's names, in singular and plural.
        only: whether nothing else was asked, so that a number alone is the count.

    >>> (count_of("Two sessile polyps and one clip.", "polyps?"),
    ...  count_of("Several polyps.", "polyps?"))
    (2, None)
    """
    counts = _all_counts(text, terms)
    if counts:
        return counts.pop() if len(counts) == 1 else None
    if any("no other" in mentions for _, mentions in _statements(text, terms)):
        return 0
    return _count_alone(text) if only else None


def _all_counts(text: str, terms: str) -> set[int | None]:
    """The counts that the statements of a text give, None for a vague or a joined one."""
    all_counts: set[int | None] = set()
    joined = False
    for statement, mentions in _statements(text, terms):
        counts = _counts(statement, mentions)
        some = any(counts)  # not "no findings and no abnormalities"
        if joined and some:
            all_counts.add(None)
        all_counts |= counts
        joined = _PATTERNS["joins" if some else "between"].search(statement) is not None
    return all_counts


def _count_alone(text: str) -> int | None:
    """The count in an answer that is just a number or just *none*; None for any other answer."""
    answer = _normalised(text)
    number = _PATTERNS["number_alone"].fullmatch(answer)
    if number:
        return _number(number["number"])
    return 0 if _PATTERNS["none_alone"].fullmatch(answer) else None


@lru_cache(maxsize=64)  # an answer is read for one class after the other
def _normalised(text: str) -> str:
    """``text`` without thinking, markup and an overlong middle."""
    return plain_text(bounded(reply_text(text)))


@lru_cache(maxsize=64)
def _clauses(text: str) -> tuple[str, ...]:
    """The statements of a text, without its questions."""
    clauses: list[str] = []
    for sentence in _PATTERNS["sentence_ends"].split(_normalised(text).replace(MARK, "")):
        if sentence.rstrip().endswith("?"):
            continue
        start = 0
        for statement_end in _PATTERNS["statement_ends"].finditer(sentence):
            clauses.append(sentence[start : statement_end.end()].strip())
            start = statement_end.end()
        clauses.append(sentence[start:].strip())
    return tuple(clauses)


def _statements(text: str, terms: str) -> list[tuple[str, tuple[_State, ...]]]:
    """The statements of a text with what they say about a finding (`_statement`)."""
    return [_statement(clause, terms) for clause in _clauses(text)]


@lru_cache(maxsize=2**14)  # answers to one image share many clauses
def _statement(clause: str, terms: str) -> tuple[str, tuple[_State, ...]]:
    """The clause with ``MARK`` for each mention of the finding, and what it says in each of these
    places.
    """
    statement = _name_pattern(terms).sub(MARK, clause)
    if MARK not in statement:
        return statement, ()
    hedged = _PATTERNS["hedges"].search(statement)
    states: list[_State] = []
    for mention in re.finditer(MARK, statement):
        before = statement[max(0, mention.start() - _REACH) : mention.start()]
        if hedged:
            states.append("unclear")
        elif _PATTERNS["no_other"].search(before):
            states.append("no other")
        elif _PATTERNS["denies_before"].search(before) or _PATTERNS["denies_behind"].match(
            statement, mention.end()
        ):
            states.append("absent")
        else:
            states.append("present")
    return statement, tuple(states)


@lru_cache(maxsize=1024)
def _name_pattern(terms: str) -> re.Pattern[str]:
    """The names of a finding as whole words, without *non-* before or *-like* behind them."""
    return re.compile(rf"\b(?<!non-)(?:{terms})\b(?!-like)", re.IGNORECASE)


def _counts(statement: str, mentions: tuple[_State, ...]) -> set[int | None]:
    """The counts in a statement, None for a vague one; a mention without a number gives none."""
    states = set(mentions) - {"no other"}
    if not states:
        return set()
    if "unclear" in states:
        return {None}
    numbers = list(_PATTERNS["count_before"].finditer(statement))
    behind = _PATTERNS["count_behind"].search(statement)
    if behind and not numbers:
        return {_number(behind["number"])}
    if "absent" in states:
        return {0}
    counts: set[int | None] = {None} if _PATTERNS["many"].search(statement) else set()
    for match in numbers:
        before = statement[max(0, match.start() - _REACH) : match.start()]
        vague = _PATTERNS["vague"].search(before)
        counts.add(None if vague else _number(match["number"]))
    return counts


def _number(word: str) -> int:
    """The number that digits or a word state."""
    return int(word) if word.isdecimal() else _NUMBERS[word.casefold()]
