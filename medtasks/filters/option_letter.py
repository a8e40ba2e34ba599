"""Option letters out of free text: rule-based, deterministic, the same for every model.

MI-CXR (section 4.1, appendix E.5) counts a response only where exactly one option is selectable. The rules:

1. Thinking blocks and markup are removed and the text is normalised (NFKC: full-width letters become plain
   ones; a letter in bold counts as one in brackets). Nothing left is ``empty``.
2. A response of nothing but single letters and punctuation names those letters: ``B``, ``(b)``, ``A/C``.
3. A *mention* is a single letter that is no part of a word (``C-shaped``, ``T1``, ``A-lines``), no article or
   pronoun (``A small effusion``, ``I see``) and no name (``vitamin D``, ``image A``, ``E. coli``). Letters joined
   by *or*, *and*, a comma or a slash are one mention of several letters.
4. A mention that is denied selects nothing: ``not B``, ``B is incorrect``, ``neither B nor C``.
5. A mention is *marked* where the text says that it is the answer: ``Answer: B``, ``the correct option is B``,
   ``I choose B``, ``B is correct``, ``therefore B.``, ``{"answer": "B"}``, ``\\boxed{B}``. Marks have ranks: one
   that says *final* (a LaTeX box and an answer tag do) is above a line that begins ``Answer:``, and that is
   above a mark within prose.
6. Marked mentions decide. The last one decides alone where its rank is above that of every earlier one with other
   letters (``The answer may be A … Answer: C`` is C); otherwise all of them count.
7. Without a mark, mentions that stand as labels count: alone on a line; before ``.``, ``)``, ``:``, ``,`` or a
   dash at the start of a line; in brackets; after the word *option*; and several joined letters (a hedge).
8. One letter among the options is ``ok``. Several different letters are ``multiple``, no letter is ``none``, one
   letter that is no option is ``out_of_range``. There is no partial credit.

Option texts are never matched: a response that repeats an option's words without its letter is ``none``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from medtasks.filters.mentions import OPEN, Mention, letters_alone, mentions, without_names
from medtasks.filters.plain_text import plain_text
from medtasks.filters.thinking import strip_thinking

__all__ = [
    "VERSION",
    "Extraction",
    "OptionLetterFilter",
    "Status",
    "extract_option",
    "option_status",
    "parse_filtered",
]

VERSION = "2"
"""Changes whenever a rule does; part of every protocol hash."""

Status = Literal["ok", "none", "multiple", "out_of_range", "empty"]


@dataclass(frozen=True)
class Extraction:
    """The extracted letter; None unless ``status`` is ``ok``."""

    letter: str | None
    status: Status

    @property
    def filtered(self) -> str:
        """The letter, or the status in brackets: what the harness logs as the filtered response."""
        return self.letter or f"[{self.status}]"


# What may stand between a mark and its letter
_IS = r"(?:is|are|was|(?:would|will|must|should|could|may|might|can|has\s+to)\s+be)"
_SIGN = r"(?::|=|-|–|—|->|=>|→|⇒)"
_SEPARATOR = rf"[\"')\]]{{0,2}}\s{{0,4}}(?:{_IS}\b|{_SIGN}|是|为|為)(?:\s{{0,4}}{_SIGN})?\s{{0,4}}"
_LEAD = (
    rf"(?:(?:most|likely|probably|clearly|definitely|therefore|thus|indeed|still|either|both|the)\s+"
    rf"|(?:final\s+)?(?:option|choice|letter|answer|interval)s?\s{{0,4}}{_SIGN}?\s{{0,4}}){{0,4}}{OPEN}$"
)
_QUALIFIER = r"(?:correct|best|right|chosen|selected|final|likely|appropriate|suitable|accurate|single|my)"
_FILLER = r"(?:\s+(?!(?:is|are|was|not|never|whether|if|nor|wrong|incorrect)\b)[^\W_]+){0,5}"
_NOUN = (
    rf"(?:(?<![A-Za-z])(?:answers?|ans|selection|conclusion){_FILLER}|{_QUALIFIER}[\s_-]+(?:option|choice|letter|interval|one){_FILLER}"
    rf"|\b(?:option|choice)(?:\s+(?:selected|chosen))?|\b(?:correct|selected|chosen)|答案)"
)
_MARK = re.compile(rf"(?P<final>\bfinal(?:ly)?[\s_-]+)?{_NOUN}\s{{0,4}}\.?{_SEPARATOR}{_LEAD}", re.IGNORECASE)
_MARK_ABOVE = re.compile(  # "Answer" alone on the line above
    rf"(?:^|\n)\W{{0,4}}(?P<final>final\s+)?(?:the\s+)?(?:{_QUALIFIER}\s+)?(?:answer|option|choice)\s{{0,4}}:?\s{{0,2}}\n\s{{0,4}}{_LEAD}",
    re.IGNORECASE,
)
_MARK_BESIDE = re.compile(rf"\b(?P<final>final\s+)?(?:answer|ans\.?)[\])]?\s{{1,4}}{OPEN}$", re.IGNORECASE)
_ANSWER_LINE = re.compile(
    rf"(?:^|\n)\W{{0,6}}(?:(?:the|so|thus|therefore|hence|{_QUALIFIER})[\s,]+){{0,4}}(?:answers?|option|choice|selection|答案)"
    rf"[\"')\]]{{0,2}}\s{{0,4}}{_SIGN}\s{{0,4}}{_LEAD}",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:I|we)(?:['’](?:d|ll|ve)|\s+am)?\s+(?:(?:would|will|shall|have|must|therefore|thus|finally)\s+){0,3}"
    r"(?:choose|chose|chosen|select(?:ed)?|pick(?:ed)?|answer|go(?:ing)?\s+with|opt\s+for)\s+"
    rf"(?:(?:with|for)\s+)?:?\s{{0,2}}{_LEAD}",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"(?:\b(?:therefore|thus|hence|so)[,:]?|\b(?:I|we)\s+(?:would\s+)?(?:think|believe|say|conclude)(?:\s+that)?"
    rf"|\bcorresponds\s+to|\bit(?:['’]s|\s+{_IS}))(?:\s+it(?:['’]s|\s+{_IS}))?\s{{1,4}}{_LEAD}",
    re.IGNORECASE,
)
_CLAUSE_ENDS = re.compile(r"\s{0,4}(?:$|\n|[.!](?:\s|$)|,?\s{0,4}(?:because|since|as)\b)")
_SAID_RIGHT = re.compile(
    rf"\s{{1,4}}(?:{_IS}|seems|fits)\s+(?:(?:most|likely|clearly|the|single|only|therefore|final)\s+){{0,3}}"
    r"(?:correct|right|true|best|answer|appropriate)\b"
)
_DOUBTED = re.compile(
    r"(?:\b(?:not|whether|if|unless|neither|nor|why|suppose|assuming|never)|n['’]t)\b[^.,;:\n]{0,30}$", re.I
)

_LINE_STARTS = re.compile(rf"(?:^|\n)[\s>•–-]{{0,8}}{OPEN}$")
_LINE_ENDS = re.compile(r"[ \t.:!]{0,8}(?:$|\n)")
_LABEL_ENDS = re.compile(r"[:)]|\.(?:\s|$)|,\s|\s{1,2}[-–—]\s|\s+(?:because|since)\b")
_BRACKETED = re.compile(r"[(\[{][\"']?[A-Z][\"']?[)\]}]")
_OPTION_BEFORE = re.compile(rf"\b(?:option|choice)s?\s{{0,3}}[:#]?\s{{0,3}}{OPEN}$", re.IGNORECASE)
_JOINED_BEFORE = re.compile(rf"\b(?:or|and)\s+(?:(?:maybe|possibly|perhaps|option|choice)\s+){{0,2}}{OPEN}$")
_NEGATION = re.compile(r"\b(?:not|than|unlike|instead|neither|nor|except)\b|n['’]t\b", re.IGNORECASE)
_ROMAN = frozenset("IVX")

_PROSE, _LINE, _FINAL = 0, 1, 2


@dataclass(frozen=True)
class _Selection:
    letters: frozenset[str]
    rank: int
    end: int


def extract_option(text: str, letters: str = "ABCDE") -> Extraction:
    """The one option that ``text`` selects among ``letters``, by the rules in this module's docstring.

    Never raises; the result depends on the text alone. A status marker of this filter is read back as it is.
    """
    own = _own_marker(text)
    if own:
        return Extraction(None, own)
    plain = plain_text(strip_thinking(text))
    if not plain:
        return Extraction(None, "empty")
    plain = without_names(plain)
    alone = letters_alone(plain)
    if alone:
        return _decide(alone, letters)
    found = mentions(plain)
    return _decide(_deciding(_selections(found)) or _labelled(found), letters)


def parse_filtered(filtered: str) -> Extraction:
    """The extraction that a filtered response carries: the letter, or the status in brackets.

    A text that is neither (made by another filter) is judged by :func:`extract_option`.
    """
    text = filtered.strip()
    if len(text) == 1 and "A" <= text <= "Z":
        return Extraction(text, "ok")
    return extract_option(text)


def option_status(filtered: str) -> Status:
    """Status of :func:`parse_filtered`."""
    return parse_filtered(filtered).status


class OptionLetterFilter:
    """A step for the harness's ``filter_list``: raw responses become letters or ``[status]`` markers."""

    def __init__(self, letters: str = "ABCDE") -> None:
        self._letters = letters

    def apply(self, resps: list[list[str]], docs: object) -> list[str | list[str]]:
        """One filtered string per document; a list of them where a document was answered several times."""
        del docs
        filtered = [[extract_option(text, self._letters).filtered for text in answers] for answers in resps]
        return [answers[0] if len(answers) == 1 else answers for answers in filtered]


def _own_marker(text: str) -> Status | None:
    inner = text.strip()
    for status in get_args(Status):
        if status != "ok" and inner == f"[{status}]":
            known: Status = status
            return known
    return None


def _decide(found: frozenset[str], letters: str) -> Extraction:
    if not found:
        return Extraction(None, "none")
    if len(found) > 1:
        return Extraction(None, "multiple")
    letter = next(iter(found))
    return Extraction(letter, "ok") if letter in letters else Extraction(None, "out_of_range")


def _selections(found: list[Mention]) -> list[_Selection]:
    """Marked mentions in order; a later "or C" on the same line belongs to the mark before it."""
    selections: list[_Selection] = []
    for mention in found:
        rank = _rank(mention)
        if rank is not None:
            selections.append(_Selection(mention.letters, rank, mention.end))
        elif selections and _continues(selections[-1], mention):
            last = selections.pop()
            selections.append(_Selection(last.letters | mention.letters, last.rank, mention.end))
    return selections


def _rank(mention: Mention) -> int | None:
    """How strongly the text around says that ``mention`` is the answer; None where it does not."""
    for mark in (_MARK, _MARK_ABOVE):
        match = mark.search(mention.before)
        if match is not None:
            if match["final"] or "final" in match[0].lower():
                return _FINAL
            return _LINE if mark is _MARK_ABOVE or _ANSWER_LINE.search(mention.before) else _PROSE
    if _CHOICE.search(mention.before):
        return _PROSE
    if not mention.upper or _DOUBTED.search(mention.before):
        return None
    if _CLAUSE_ENDS.match(mention.after) and (
        _MARK_BESIDE.search(mention.before) or _CONCLUSION.search(mention.before)
    ):
        return _PROSE
    return _PROSE if _SAID_RIGHT.match(mention.after) else None


def _continues(selection: _Selection, mention: Mention) -> bool:
    distance = mention.begin - selection.end
    between = mention.before[-distance:]
    if distance > len(mention.before) or "\n" in between or _NEGATION.search(between):
        return False
    ends = _LABEL_ENDS.match(mention.after) or _LINE_ENDS.match(mention.after) or mention.text.endswith(")")
    return bool(_JOINED_BEFORE.search(between) and ends)


def _deciding(selections: list[_Selection]) -> frozenset[str]:
    if not selections:
        return frozenset()
    last = selections[-1]
    others = [selection for selection in selections if selection.letters != last.letters]
    if all(selection.rank < last.rank for selection in others):
        return last.letters
    return frozenset[str]().union(*(selection.letters for selection in selections))


def _labelled(mentions: list[Mention]) -> frozenset[str]:
    return frozenset[str]().union(*(mention.letters for mention in mentions if _is_label(mention)))


def _is_label(mention: Mention) -> bool:
    if len(mention.letters) > 1:
        return mention.upper or _LINE_STARTS.search(mention.before) is not None
    if mention.letters <= _ROMAN:
        return False
    if _BRACKETED.search(mention.text) or _OPTION_BEFORE.search(mention.before):
        return True
    if _LINE_STARTS.search(mention.before) is None:
        return False
    closed = mention.text[-1] in ")]}"
    return closed or bool(_LINE_ENDS.match(mention.after) or _LABEL_ENDS.match(mention.after))
