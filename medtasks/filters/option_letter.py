"""Option letters out of free text: rule-based, deterministic, the same for every model.

MI-CXR (section 4.1, appendix E.5) counts a response only where exactly one option is selectable. The rules:

1. Thinking blocks are removed, the text is normalised (NFKC: full-width letters become plain ones). Nothing
   left is ``empty``.
2. A response that is one letter and punctuation is that letter, in either case: ``B``, ``(b)``, ``**B.**``.
3. A last line that holds only an answer marker and a letter decides: ``Answer: B``, ``Final answer - (B)``.
4. Otherwise every answer marker counts: ``the answer is B``, ``correct option: B``, ``I choose B``, ``B is
   correct``, ``{"answer": "B"}``. Where some say *final*, only those count. All must name the same letter.
5. Without a marker, letters that stand as labels count: alone on a line, before ``.``, ``)``, ``:``, ``,`` or a
   dash at the start of a line, in brackets, in bold, after the word *option*.
6. Letters that name something else never count: articles (``A small effusion``), parts of a word or name
   (``C-shaped``, ``T1``, ``E. coli``, ``vitamin D``, ``image A``), and options that are denied (``not B``,
   ``B is wrong``).
7. Several different letters are ``multiple``, also where they stand in a hedge (``B or C``). No letter is
   ``none``. One letter that is no option is ``out_of_range``.

Option texts are never matched: a response that repeats an option's words without its letter is ``none``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from medtasks.filters.thinking import strip_thinking

__all__ = ["VERSION", "Extraction", "OptionLetterFilter", "Status", "extract_option", "option_status"]

VERSION = "1"
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


_OPENING = r"[\(\[\{<\"'«“‘]*"
_CLOSING = r"[\)\]\}>\"'»”’]*"
# A letter that ends a word: not "T1", not "C-shaped", not "B's", not "e.g."
_END = r"(?![\w]|[-‐‑'’]\w|\.\w)"
_LETTER = rf"{_OPENING}(?P<letter>[A-Za-z]){_END}{_CLOSING}"

_BARE = re.compile(rf"[\s.:,;!]*{_LETTER}[\s.:,;!{_CLOSING[1:-2]}]*")
_VERB = r"(?:(?:\s*[\"']?\s*(?:is|are|would\s+be|will\s+be|must\s+be|:|=|-|–|—|→|⇒))+)"
_NOUN = r"(?:(?:option|choice|letter|answer)\s*:?\s*)?"
_ANSWER = (
    r"(?P<final>\bfinal(?:ly)?\s+)?"
    r"(?:\b(?:the|my|correct|best|right|chosen|most\s+likely|most\s+appropriate|single)\s+)*"
    r"\b(?:answer|option|choice|selection)"
)
_MARKER = re.compile(rf"{_ANSWER}{_VERB}\s*{_NOUN}{_LETTER}", re.IGNORECASE)
_CHOSEN = re.compile(
    rf"\b(?:I|we)\s+(?:would\s+|will\s+|'ll\s+)?(?:choose|select|pick|go\s+with|answer)\s+(?:with\s+)?{_NOUN}{_LETTER}",
    re.IGNORECASE,
)
_SAID_RIGHT = re.compile(
    rf"(?<![\w-]){_LETTER}\s+(?:is|would\s+be|must\s+be)\s+(?:the\s+)?"
    r"(?:(?:single|only|most|best)\s+)?(?:correct|right|true|best|answer|appropriate)\b",
)
_BOXED = re.compile(r"\\boxed\s*\{\s*(?:\\(?:text|mathrm|textbf)\s*\{)?\s*" + _LETTER)
_FINAL_LINE = re.compile(
    rf"[\s\W]*(?:(?:the|my|final|correct|best|right|chosen)\s+)*(?:answer|option|choice){_VERB}\s*{_NOUN}{_LETTER}"
    r"[\s.!*_]*",
    re.IGNORECASE,
)

_LABELS = (
    re.compile(rf"^[\s>•*-]*{_OPENING}(?P<letter>[A-Za-z]){_CLOSING}[\s.:]*$", re.MULTILINE),  # alone on its line
    re.compile(r"^[\s>•*-]*[\(\[\{]?(?P<letter>[A-Za-z])[\)\]\}]?[.:\)](?=\s)(?!\s+coli\b)", re.MULTILINE),
    re.compile(r"^[\s>•*-]*(?P<letter>[A-Z])(?:,|\s+[-–—])(?=\s)", re.MULTILINE),
    re.compile(  # first of a bare hedge: "A or B", "B/C"
        r"^\W*(?P<letter>[A-Z])(?=\s*(?:[/,;&]|or\b|and\b)\s*(?:maybe\s+|possibly\s+)?(?:option\s+)?\W?[A-Z](?!\w))",
        re.MULTILINE,
    ),
    re.compile(r"[\(\[](?P<letter>[A-Z])[\)\]]"),
    re.compile(r"\b[Oo]ption\s+[\(\[\"']?(?P<letter>[A-Z])" + _END),
)
_BOLD = re.compile(r"(?:\*\*|__)\s*[\(\[]?(?P<letter>[A-Z])[\)\]]?[.:]?\s*(?:\*\*|__)")
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")

_HEDGED = re.compile(
    rf"\s*(?:,|;|/|&|\+|\bor\b|\band\b|\bas\s+well\s+as\b|,\s*or\b|,\s*and\b)\s*(?:maybe\s+|possibly\s+)?"
    rf"(?:option\s+|choice\s+)?{_OPENING}(?P<letter>[A-Z]){_END}(?!\s+[a-z]+\s+[a-z]+){_CLOSING}",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    rf"{_CLOSING}\s*(?:is|was|are|can\s*be|seems?|looks|would\s+be)?\s*(?:clearly\s+|also\s+|definitely\s+)?"
    r"(?:not\b|in\s?correct|wrong|false|excluded|ruled\s+out|unlikely|eliminated|cannot|can't|isn't|doesn't)",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"\b(?:not|neither|nor|except|than|reject|exclude|eliminate)\s+(?:option\s+)?\W?$", re.IGNORECASE
)
_NAMED_BEFORE = re.compile(
    r"\b(?:vitamin|hepatitis|type|image|figure|fig\.?|panel|patient|stage|group|zone|grade|class|visit|line|lines)"
    r"\s*\W?$",
    re.IGNORECASE,
)
# "A" and "a" before a word are articles, "I" before a word is a pronoun.
_WORD_AFTER = re.compile(r"\s+(?!or\b|and\b|is\b|because\b|since\b|as\b)[a-z]{2,}")


def extract_option(text: str, letters: str = "ABCDE") -> Extraction:
    """The one option that ``text`` selects among ``letters``, by the rules in this module's docstring.

    Never raises; the result depends on the text alone.
    """
    normal = unicodedata.normalize("NFKC", strip_thinking(text)).strip()
    plain = _EMPHASIS.sub("", normal).strip()
    if not plain:
        return Extraction(None, "empty")
    bare = _BARE.fullmatch(plain)
    if bare:
        return _decide({bare["letter"].upper()}, letters)
    last_line = plain.splitlines()[-1]
    deciding = _FINAL_LINE.fullmatch(last_line)
    if deciding:
        return _decide({deciding["letter"].upper()}, letters)
    marked = _marked(plain)
    return _decide(marked or _labelled(normal, plain), letters)


def option_status(filtered: str) -> Status:
    """Status that a filtered response carries: ``ok`` for a letter, else the one in brackets.

    A text that is neither (made by another filter) is judged by :func:`extract_option`.
    """
    inner = filtered.strip().removeprefix("[").removesuffix("]")
    if filtered.strip() == f"[{inner}]" and inner in get_args(Status):
        status: Status = inner  # type: ignore[assignment]
        return status
    return extract_option(filtered).status


class OptionLetterFilter:
    """A step for the harness's ``filter_list``: raw responses become letters or ``[status]`` markers."""

    def __init__(self, letters: str = "ABCDE") -> None:
        self._letters = letters

    def apply(self, resps: list[list[str]], docs: object) -> list[str | list[str]]:
        """One filtered string per document; a list of them where a document was answered several times."""
        del docs
        filtered = [[extract_option(text, self._letters).filtered for text in answers] for answers in resps]
        return [answers[0] if len(answers) == 1 else answers for answers in filtered]


def _decide(found: set[str], letters: str) -> Extraction:
    if not found:
        return Extraction(None, "none")
    if len(found) > 1:
        return Extraction(None, "multiple")
    letter = next(iter(found))
    return Extraction(letter, "ok") if letter in letters else Extraction(None, "out_of_range")


def _marked(plain: str) -> set[str]:
    """Letters that answer markers name; with a marker that says *final*, only the letters of those."""
    final: set[str] = set()
    others: set[str] = set()
    for pattern in (_MARKER, _CHOSEN, _SAID_RIGHT, _BOXED):
        for match in pattern.finditer(plain):
            named = _selection(plain, match)
            if "final" in match.re.groupindex and match["final"]:
                final |= named
            else:
                others |= named
    return final or others


def _labelled(normal: str, plain: str) -> set[str]:
    found = {match["letter"].upper() for match in _BOLD.finditer(normal) if not _names_thing(normal, match)}
    for pattern in _LABELS:
        for match in pattern.finditer(plain):
            found |= _selection(plain, match)
    return found


def _selection(text: str, match: re.Match[str]) -> set[str]:
    """The matched letter and those it is hedged with; none where it is an article, a name or denied."""
    if _names_thing(text, match):
        return set()
    return {match["letter"].upper(), *_hedges(text, match.end())}


def _hedges(text: str, position: int) -> Iterator[str]:
    while (match := _HEDGED.match(text, position)) is not None:
        if match["letter"].islower() and _WORD_AFTER.match(text, match.end("letter")):
            return
        yield match["letter"].upper()
        position = match.end()


def _names_thing(text: str, match: re.Match[str]) -> bool:
    letter, begin, end = match["letter"], match.start("letter"), match.end("letter")
    if letter in "AaIi" and _WORD_AFTER.match(text, end):
        return True
    if letter.islower() and _WORD_AFTER.match(text, end) and letter not in "bcde":
        return True
    before = text[max(0, begin - 24) : begin]
    return bool(_DENIED_AFTER.match(text, end) or _DENIED_BEFORE.search(before) or _NAMED_BEFORE.search(before))
