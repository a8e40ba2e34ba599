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
import string
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from medtasks.answers.markup import plain_text, reply_text, split_units
from medtasks.answers.stated_confidence import without_confidence

VERSION = "3"
"""Bumped when a rule changes; part of the signature of every metric based on matches."""
NORMALISED = "normalised-v2"
"""The rules of :func:`normalise` in signatures."""

_LATEX = re.compile(r"\\(?:boxed|text|textbf|textit|mathrm|mathbf)(?=\s{0,3}\{)")
_REPLACED = str.maketrans(
    dict.fromkeys("‐‑‒–—−", "-") | {"⁄": "/", "&": " and "} | dict.fromkeys("'’‘")
)
_QUOTED_LINE = re.compile(r"^[ \t]{0,3}[>+][ \t]{1,3}(?![\d.<>])", re.MULTILINE)
_IN_NUMBER = re.compile(r"(?<=\d)[./](?=\d)|(?<![\w.])\.(?=\d)|(?<![\w.)\-])-(?=\.?\d)")
_SYMBOLS = "%‰°+<>=±×÷≤≥≠≈→"
_BESIDE_SYMBOL = re.compile(rf" ?([{_SYMBOLS}]) ?")
_TAG = re.compile(
    r"(?<!<)<+(?:b|i|u|em|strong|code|sub|sup|span|p|br|answer)>+"
)  # the slash is gone by then
_ARTICLES = frozenset(("a", "an", "the"))


@lru_cache(maxsize=2**15)  # options are compared with every answer
def normalise(text: str) -> str:
    """``text`` as it is compared: Unicode NFKC, case folded, without markup, punctuation and
    articles.

    Underscores, hyphens and blanks are one blank each. Numbers keep their decimal points, slashes
    and signs, symbols that carry meaning (``%``, ``+``, ``<``) stay, ``&`` is *and*, letters of all
    scripts are kept. An article stays if it is the last word (``type A``). A unit is a word of its
    own (``11-20mm``). Idempotent.

    >>> normalise("The **Needle_Driver**."), normalise("-1.5 %"), normalise("Type A")
    ('needle driver', '-1.5%', 'type a')
    """
    text = _QUOTED_LINE.sub("", _LATEX.sub("", unicodedata.normalize("NFKC", text)))
    text = split_units(_folded(text).translate(_REPLACED))
    kept = {match.start() for match in _IN_NUMBER.finditer(text)}
    kept.update(
        place
        for place, one in enumerate(text)
        if one in _SYMBOLS or unicodedata.category(one)[0] in "LMN"
    )
    text = _folded(
        "".join(character if place in kept else " " for place, character in enumerate(text))
    )
    words = _TAG.sub(" ", _joined(text.split())).split()
    return _joined([word for word in words[:-1] if word not in _ARTICLES] + words[-1:])


def _folded(text: str) -> str:
    """Caseless compatibility form (Unicode, section 3.13, definition D146), without format
    characters.
    """
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return "".join(character for character in text if unicodedata.category(character) != "Cf")


def _joined(words: Sequence[str]) -> str:
    return _BESIDE_SYMBOL.sub(r"\1", " ".join(words))


def closed_answer_matches(
    response: str, answers: Sequence[str], choices: Sequence[str] = (), multi_select: bool = False
) -> bool:
    """Whether ``response``, raw or filtered, selects exactly ``answers``, by the rules in this
    module's docstring.

    ``answers`` are texts of ``choices``, or their letters; several imply ``multi_select``. A
    question without options has no choices.

    >>> choices = ["hand", "forceps", "bovie"]
    >>> [closed_answer_matches(reply, ["forceps"], choices) for reply in ("B) Forceps.", "A) Forceps")]
    [True, False]
    """
    options = _Options(choices, answers)
    several = multi_select or len(options.expected) > 1
    selected = _selected(response, options.several if several else options.single)
    return bool(options.expected) and selected == options.expected


_SEPARATOR = re.compile(r"[,、;/&\n•·]|\band\b", re.IGNORECASE)
_LETTER = re.compile(
    r"[\W_]{0,16}(?P<noun>(?i:options?|choices?|letters?)\b[\s:#]{0,4})?[(\[{\"']{0,3}(?P<letter>[A-Za-z])"
    r"(?P<sep>[\"']{0,2}\s{0,3}[)\]}.:,–—]{1,3}[\"']{0,2}\s{0,4}|[\"']{1,2}\s{0,4}|\s{1,4}-{1,2}\s{1,4}|-\s{1,4}|\s{1,4}|$)"
    r"(?P<rest>.*)",
    re.DOTALL,
)
_TRAILING_LETTER = re.compile(
    r"[(\[](?:option\s{1,3})?(?P<letter>[A-Za-z])[)\]][\s.!\"'}\]]{0,6}$", re.IGNORECASE
)
_ENUMERATED = re.compile(r"[^\w\n]{0,6}\d{1,2}[.)]\s{1,4}(?=\S)")
_OWN_LETTER = re.compile(r"\s{0,3}\(?(?P<letter>[A-Z])[.):]\s{0,4}(?P<text>\S.*)", re.DOTALL)


class _Options:
    """The texts that a reply may select: the choices, and answers not among them (which have no
    letter).
    """

    def __init__(self, choices: Sequence[str], answers: Sequence[str]) -> None:
        lettered = zip(map(_OWN_LETTER.fullmatch, choices), string.ascii_uppercase, strict=False)
        texts = [match["text"] for match, own in lettered if match and match["letter"] == own]
        self._lettered = len(choices)
        self._index(texts if len(texts) == len(choices) else choices)
        raw = list(choices)
        known = [raw.index(answer) if answer in raw else self.one(answer) for answer in answers]
        missing = [answer for answer, index in zip(answers, known, strict=True) if index is None]
        self._index([*self._texts, *missing])
        found = [
            self.one(answer) if index is None else index
            for answer, index in zip(answers, known, strict=True)
        ]
        self.expected = frozenset(self._same[index] for index in found if index is not None)

    def _index(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._form: Callable[[str], str] = normalise
        self._forms = [normalise(text) for text in texts]
        if "" in self._forms or len({*self._forms}) < len(
            {*texts}
        ):  # they differ only in what `normalise` removes
            self._form = _verbatim
            self._forms = [_verbatim(text) for text in texts]
        self._place: dict[str, int] = {}
        names = [form or text for form, text in zip(self._forms, texts, strict=True)]
        self._same = [self._place.setdefault(name, place) for place, name in enumerate(names)]
        letters = any(
            len(form) == 1 and form.isalpha() for form in map(normalise, texts[: self._lettered])
        )
        self._letters = "" if letters else string.ascii_uppercase[: self._lettered]
        self._longest = 1 + max((len(_SEPARATOR.findall(text)) for text in texts), default=0)

    def single(self, text: str) -> frozenset[int] | None:
        """The one option that the whole of ``text`` is."""
        index = self.one(text)
        return None if index is None else frozenset((index,))

    def several(self, text: str) -> frozenset[int] | None:
        """The options that ``text`` lists and nothing else; longest texts first, from the left."""
        edges = [
            0,
            *(edge for match in _SEPARATOR.finditer(text) for edge in match.span()),
            len(text),
        ]
        pieces = zip(edges[::2], edges[1::2], strict=True)  # between separators
        spans = [(begin, end) for begin, end in pieces if _counts(text[begin:end])]
        tails: list[frozenset[int] | None] = [None] * len(spans) + [
            frozenset()
        ]  # what each span and those after it are
        for first in reversed(range(len(spans))):
            for last in reversed(range(first, min(len(spans), first + self._longest + 1))):
                tail = tails[last + 1]
                index = None if tail is None else self.one(text[spans[first][0] : spans[last][1]])
                if tail is not None and index is not None:
                    tails[first] = tail | {index}
                    break
        return tails[0] or None

    def one(self, text: str) -> int | None:
        """The option that ``text`` is by its text, its letter or both; None for anything else."""
        index = self._read(text)
        listed = _ENUMERATED.match(text) if index is None else None
        return self._read(text[listed.end() :]) if listed else index

    def _read(self, text: str) -> int | None:
        whole = self._place.get(self._form(text))
        match = _LETTER.match(text)
        index = self._letters.find(match["letter"].upper()) if match else -1
        if match is not None and index >= 0:
            explicit = bool(match["noun"]) or match["sep"].strip() != ""
            # "A. forceps" is a letter and a text although "A forceps" is an article and a text
            if whole is not None and not (
                explicit and index == 0 and _LETTER.match(self._texts[whole]) is None
            ):
                return whole
            if not _counts(match["rest"]) or self._form(match["rest"]) == self._forms[index] != "":
                return self._same[index]
            return None
        if whole is not None:
            return whole
        trailing = _TRAILING_LETTER.search(text[-24:])
        index = self._letters.find(trailing["letter"].upper()) if trailing else -1
        if trailing is None or index < 0:
            return None
        before = text[: len(text) - len(text[-24:]) + trailing.start()]
        return self._same[index] if self._form(before) == self._forms[index] != "" else None


def _verbatim(text: str) -> str:
    return " ".join(_folded(text).split())


def _counts(text: str) -> bool:
    return normalise(text) != ""


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
_SAID, _LABELLED, _FINAL = 0, 1, 2

_Read = Callable[[str], "frozenset[int] | None"]


def _selected(response: str, read: _Read) -> frozenset[int] | None:
    """The options the reply selects, read by ``read`` (rules 1 to 3)."""
    reply = reply_text(response)
    if reply == "[empty]":
        return None
    plain = plain_text(_from_json(_FENCE.sub("", reply).strip()))
    whole = read(plain)
    if whole is not None:
        return whole
    plain = without_confidence(plain)
    labels = []
    for label in _LABEL.finditer(plain):
        before = plain[max(0, label.start() - 12) : label.start()].rpartition("\n")[2]
        if not label["above"] or not any(character.isalnum() for character in before):
            labels.append(label)
    ends = [
        *(label.start() for label in labels[1:]),
        len(plain),
    ]  # the text after a label ends at the next one
    segments = []
    for label, end in zip(labels, ends, strict=False):
        explicit = label["sign"] or label["colon"] or label["above"]
        rank = _SAID if not explicit else _FINAL if label["final"] else _LABELLED
        text = plain[label.end() : end]
        if _counts(text):
            segments.append((rank, _lines(text, read, at_end=False)))
    if not segments:
        return _lines(plain, read, at_end=True)
    top, deciding = max((rank, place) for place, (rank, _) in enumerate(segments))
    answer = segments[deciding][1]
    others = {
        selection
        for place, (rank, selection) in enumerate(segments)
        if selection is not None and (rank == top or place > deciding)
    }
    return answer if others == {answer} else None


def _lines(text: str, read: _Read, at_end: bool) -> frozenset[int] | None:
    """The options that the text or one run of its lines selects, at its start or, with ``at_end``,
    its end.
    """
    whole = read(text)
    if whole is not None:
        return whole
    lines = [read(line) for line in text.split("\n") if _counts(line)]
    places = [place for place, selection in enumerate(lines) if selection is not None]
    if not places or places[-1] - places[0] + 1 != len(places):
        return None
    if places[0] != 0 and not (at_end and places[-1] == len(lines) - 1):
        return None
    return frozenset[int]().union(*(selection for selection in lines if selection is not None))


def _from_json(text: str) -> str:
    """The answer in a JSON reply, one per line if there are several; any other text unchanged."""
    if not text.startswith(("{", "[")):
        return text
    try:
        loaded = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    if isinstance(loaded, dict):
        fields = {str(key).casefold(): value for key, value in loaded.items()}
        loaded = next((fields[key] for key in _KEYS if key in fields), None)
    listed = loaded if isinstance(loaded, list) else [loaded]
    if not all(isinstance(item, (str, int, float)) for item in listed):
        return text
    return "\n".join(str(item) for item in listed)
