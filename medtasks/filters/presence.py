"""What a free answer says about a finding: that it is there, that it is not, how many there are, or nothing clear.

Negation has a scope, as in NegEx (Chapman et al. 2001, J Biomed Inform 34:301-310): a trigger before a mention (``no``,
``without``) or behind it (``is not seen``) denies it, up to a word or a comma that begins a new statement. The rules:

1. Thinking blocks, markup and questions are removed. Statements end with sentences, at *but* and the like, and at a
   comma, *and* or *with* before an article, a number or *there*; lists (``no text, boxes or tools``) go on.
2. A statement that hedges (``may``, ``cannot be excluded``) makes its mentions unclear; *probably* is no hedge.
3. Mentions that are asserted and denied make the finding unclear, unless *but*, *except* or the like comes between.
   Beside an assertion, ``no other polyps`` says nothing new; ``non-polypoid`` and ``polyp-like`` are no mentions.
4. A count is the number before the noun (``two sessile polyps``) or behind it (``polyps: 2``); *a* and *single* are 1,
   a denied mention is 0. Vague numbers (``several``, ``two to three``), numbers that differ or are joined (``a flat and
   a sessile polyp``: one polyp and one polyp) give none, as do those of a type or grade (``type 1 polyp``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from medtasks.filters.plain_text import plain_text
from medtasks.filters.thinking import strip_thinking

VERSION = "2"
"""Changes whenever a rule does; part of the signature of every score that reads answers this way."""

Said = Literal["present", "absent", "unclear", "silent"]

_SENTENCE_ENDS = re.compile(r"(?<=[.!?])[\"')\]]*\s+|[;\n]|(?<=[^\d\s])\.(?=[A-Z])")
_CONTRAST = r"but|however|although|though|yet|except(?:\s+for)?|apart\s+from|other\s+than|besides|whereas|while|instead"
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS = {**{word: number for number, word in enumerate(_WORDS)}, "a": 1, "an": 1, "single": 1, "solitary": 1}
_NEW = r"(?:an?|the|this|there|it|which|only|evidence|multiple|several|numerous|\d+|" + "|".join(_WORDS[1:]) + r")\b"
_SEEN = (
    r"(?:seen|visible|present|identified|observed|noted|detected|found|evident|apparent|shown|discernible|appreciated"
    r"|visuali[sz]ed|recogni[sz]ed|displayed|in\s+(?:view|sight|the\s+(?:image|picture|frame)))"
)
_STATEMENT_ENDS = re.compile(
    rf"\b(?:{_CONTRAST})\b|,\s*(?:and\s+|with\s+)?(?={_NEW}|no\b)|\b(?:and|with)\s+(?={_NEW}|no\b)|(?<=\w),?\s+(?=without\b)"
    rf"|\b{_SEEN}(?:,|\s+and\b)(?!\s*(?:or|nor)\b)",
    re.IGNORECASE,
)
_CONTRAST_END = re.compile(rf"\b(?:{_CONTRAST})\Z", re.IGNORECASE)
_DENIES_BEFORE = re.compile(
    r"\b(?:no(?!\s+(?:doubt|change|more\s+than|less\s+than|fewer\s+than))|nothing|not(?!\s+(?:only|just|more\s+than))|without"
    r"|absence|absent|lack(?:s|ing)?|free\s+(?:of|from)|negative\s+for|devoid|neither|nor|none\s+of|never|cannot|zero"
    r"|(?<![\w.,-])0(?![.,-]\w))\b|n['’]t\b",
    re.IGNORECASE,
)
_DENIES_BEHIND = re.compile(
    rf"[^,(]{{0,60}}?(?:(?:\bnot|\bcannot|n['’]t|\bneither|\bnever)\s+(?:be\s+|been\s+)?(?:\w+ly\s+)?(?:{_SEEN}|there|any)\b"
    r"|\b(?:absent|lacking|missing|unremarkable|negative|none)\b|[:=|]\s*(?:no|none|zero|0|absent|negative)\b"
    r"|\b(?:is|are|was|were|(?:can|could)\s+be)\s+(?:excluded|ruled\s+out)\b)"
    r"|\s*[:=|-]\s*(?:no|none|zero|0)\b",
    re.IGNORECASE,
)
_NO_OTHER = re.compile(
    r"\b(?:no|without)\s+(?:any\s+)?(?:other|further|additional|more)\s+(?:\w+\s+)?\Z", re.IGNORECASE
)
_REACH = 200
"""How many characters before a mention may deny it."""

_HEDGES = re.compile(
    r"\b(?:may|might|could|possibl[ey]|possibility|perhaps|maybe|rule\s+out|uncertain|unclear|unsure|whether|if|suspected|suspicious"
    r"|suspicion|questionable|equivocal|indeterminate|difficult\s+to|hard\s+to|impossible\s+to|unable\s+to"
    r"|not\s+(?:clear|sure|certain|possible)"
    r"|(?:cannot|can\s?not|can['’]t)\s+(?:be\s+)?(?:\w+ly\s+)?(?:determin|exclud|rul|tell|told|sa[iy]|ascertain|assess|confirm|judg))",
    re.IGNORECASE,
)
_LABELS = r"(?:(?:(?:the\s+)?final\s+)?answer\s*(?::|is\b)[\s{(:]*){0,2}"
"""What a reply puts before its answer; a LaTeX box is *final answer* and braces."""

_BARE = re.compile(
    rf"\W*{_LABELS}(?:(?P<yes>yes|yeah|yep|present|positive|true)"
    r"|(?P<no>no|nope|none|nothing|absent|negative|false))\b",
    re.IGNORECASE,
)
_NUMBER = r"(?P<number>\d{1,6}|" + "|".join(_NUMBERS) + r")"
_VAGUE = re.compile(
    r"(?:\b(?:at\s+least|at\s+most|more\s+than|less\s+than|fewer\s+than|over|up\s+to|about|approximately|around|nearly"
    r"|roughly)|[\d<>~≥≤]\s*(?:-|–|to|or)?|\b(?:one|two|three|four)\s+(?:to|or))\s*\Z",
    re.IGNORECASE,
)
_AND = re.compile(r"\band\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+\w+\s+and\Z", re.IGNORECASE)
_TYPE = re.compile(r"\b(?:type|grade|class|stage|category|paris|nice|jnet|kudo|image|frame|figure)\s*\Z", re.IGNORECASE)
_MANY = re.compile(r"\b(?:several|multiple|many|numerous|few|various|couple|dozens?|some)\b", re.IGNORECASE)


@lru_cache(maxsize=64)  # an answer is read for one class after the other
def _statements(text: str) -> tuple[str, ...]:
    """The statements of a text, without its questions."""
    plain = plain_text(strip_thinking(text))
    found: list[str] = []
    for sentence in _SENTENCE_ENDS.split(plain):
        if sentence is None or sentence.rstrip().endswith("?"):
            continue
        start = 0
        for end in (*_STATEMENT_ENDS.finditer(sentence), None):
            stop = len(sentence) if end is None else end.end()
            found.append(sentence[start:stop].strip())
            start = stop
    return tuple(part for part in found if part)


def said_of(text: str, terms: str) -> Said:
    """What ``text`` says about a finding; ``terms`` is a regular expression of its names.

    >>> said_of("No polyps are seen, but a metal clip is visible.", "polyps?")
    'absent'
    >>> said_of("A polyp cannot be excluded.", "polyps?"), said_of("The view is dark.", "polyps?")
    ('unclear', 'silent')
    """
    states: list[Said] = []
    contrasted = no_other = False
    for statement in _statements(text):
        for state in _mentions(statement, terms):
            if state == "no other":
                no_other = True
                continue
            contrasted = contrasted and state == "present" and "absent" in states
            if contrasted:
                states.clear()
            states.append(state)
        contrasted = bool(states) and _CONTRAST_END.search(statement) is not None
    if not states:
        return "absent" if no_other else "silent"
    return states[0] if len(set(states)) == 1 else "unclear"


def _mentions(statement: str, terms: str) -> Iterator[Said | Literal["no other"]]:
    mentions = list(_names(terms).finditer(statement))
    hedged = bool(mentions) and _HEDGES.search(statement) is not None
    for mention in mentions:
        before = statement[max(0, mention.start() - _REACH) : mention.start()]
        if hedged:
            yield "unclear"
        elif _NO_OTHER.search(before):
            yield "no other"
        elif _DENIES_BEFORE.search(before) or _DENIES_BEHIND.match(statement, mention.end()):
            yield "absent"
        else:
            yield "present"


def bare_answer(text: str) -> Said:
    """``present`` or ``absent`` for an answer that begins with yes or no, as to one question about presence."""
    found = _BARE.match(plain_text(strip_thinking(text)))
    if found is None:
        return "silent"
    return "present" if found["yes"] else "absent"


def count_of(text: str, terms: str, *, only: bool = False) -> int | None:
    """How many of a finding ``text`` counts; None if it gives no one number.

    Args:
        text: the answer.
        terms: a regular expression of the finding's names, in singular and plural.
        only: whether nothing else was asked, so that a number alone is the count.

    >>> count_of("Two sessile polyps and one clip.", "polyps?"), count_of("Several polyps.", "polyps?")
    (2, None)
    """
    found: set[int | None] = set()
    joined = False
    for statement in _statements(text):
        counts = set(_counts(statement, terms))
        some = any(counts)  # not "no findings and no abnormalities"
        found |= counts | ({None} if joined and some else set())
        joined = (_AND if some else _BETWEEN).search(statement) is not None
    if not found and any("no other" in _mentions(statement, terms) for statement in _statements(text)):
        return 0
    if not found and only:
        plain = plain_text(strip_thinking(text))
        alone = _pattern(rf"\W*{_LABELS}(?:there\s+(?:is|are)\s+)?{_NUMBER}\b[^\w-]*").fullmatch(plain)
        if alone is not None:
            return _number(alone["number"])
        return 0 if _pattern(r"\W*(?:no|none|nothing)\b[^\w]*").fullmatch(plain) else None
    return found.pop() if len(found) == 1 else None


def _counts(statement: str, terms: str) -> Iterator[int | None]:
    """The counts in a statement, None for a vague one; a mention without a number gives none."""
    states = [state for state in _mentions(statement, terms) if state != "no other"]
    if not states:
        return
    if "unclear" in states:
        yield None
        return
    behind = _pattern(
        rf"(?:\b(?:number|count|total)\s+of\s+(?:\w+\s+){{0,2}}?(?:{terms})\b[^.,\d]{{0,30}}?"
        rf"|\b(?:{terms})(?:\s+count)?(?:\s*[:=|]\s*|(?<=count)\s+is\s+))"
        rf"\b{_NUMBER}\b"
    ).search(statement)
    before = _pattern(
        rf"\b{_NUMBER}(?!\s*-?\s*(?:mm|cm|%)\b)(?:\s+pairs?\s+of)?"
        rf"(?:\s+(?!(?:of|and|or|to|is|are)\b)[\w/-]+(?:\.\d+)?){{0,3}}?\s+(?:{terms})\b"
    )
    numbers = list(before.finditer(statement))
    if behind is not None and not numbers:
        yield _number(behind["number"])
    elif "absent" in states:
        yield 0
    else:
        if _MANY.search(statement):
            yield None
        for match in numbers:
            before_it = statement[max(0, match.start() - _REACH) : match.start()]
            yield None if _VAGUE.search(before_it) or _TYPE.search(before_it) else _number(match["number"])


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBERS[word.casefold()]


@lru_cache(maxsize=512)
def _names(terms: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?<!non-)(?:{terms})\b(?!-like)", re.IGNORECASE)


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
