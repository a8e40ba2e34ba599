"""The options of a closed question, and which of them a text is or lists."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from medtasks.metrics.normalisation import has_content, normalise, verbatim

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


@dataclass(frozen=True)
class _LeadingLetter:
    """The letter at the beginning of a text: the place of its option, and the ``rest`` of the text.

    It ``is_marked`` by a noun before it (``option B``) or a sign after it (``B.``).
    """

    place: int
    is_marked: bool
    rest: str


class AnswerOptions:
    """The options of a closed question, and which of them a text is or lists.

    An option is identified by its place among ``texts``; options with equal texts by the place of
    the first of them. Texts are compared as `normalise` leaves them or, if that makes two different
    options equal or one empty, verbatim.

    Args:
        texts: the options: the choices of the question, then further answers.
        lettered: the number of choices, which have the letters A, B, C and so on. No letter selects
            a choice if the text of a choice is itself a letter.
    """

    def __init__(self, texts: Sequence[str], lettered: int) -> None:
        self._texts = texts
        self._form = _distinguishing_form(texts)
        self._forms = [self._form(text) for text in texts]
        self._place_of_form = _first_places(self._forms, texts)
        self._first_equal: list[int] = []
        for form, text in zip(self._forms, texts, strict=True):
            self._first_equal.append(self._place_of_form[form or text])
        self._letters = string.ascii_uppercase[:lettered]
        if any(_is_letter(normalise(text)) for text in texts[:lettered]):
            self._letters = ""
        separators = [len(_SEPARATOR.findall(text)) for text in texts]
        self._most_pieces = 1 + max(separators, default=0)

    def first_equal(self, place: int) -> int:
        """The place of the first option with the same text."""
        return self._first_equal[place]

    def single(self, text: str) -> frozenset[int] | None:
        """The option that the whole ``text`` is, as a set; None if it is none."""
        place = self.place_of(text)
        return None if place is None else frozenset((place,))

    def several(self, text: str) -> frozenset[int] | None:
        """The options in a text that lists options and nothing else; None for any other text.

        Options may contain separators: from the left, each is taken as long as possible.
        """
        spans = _spans_between_separators(text)
        # element i: the options listed from span i on; None if there is anything else
        options_from: list[frozenset[int] | None] = [None] * len(spans)
        options_from.append(frozenset())
        for first in reversed(range(len(spans))):
            end = min(len(spans), first + self._most_pieces + 1)
            for last in reversed(range(first, end)):
                rest = options_from[last + 1]
                if rest is None:
                    continue
                place = self.place_of(text[spans[first][0] : spans[last][1]])
                if place is not None:
                    options_from[first] = rest | {place}
                    break
        return options_from[0] or None

    def place_of(self, text: str) -> int | None:
        """The option that ``text`` is by its text, its letter or both, or so after an item number
        such as ``2.``; None for anything else.
        """
        place = self._named_place(text)
        if place is not None:
            return place
        number = _ENUMERATED.match(text)
        return None if number is None else self._named_place(text[number.end() :])

    def _named_place(self, text: str) -> int | None:
        """The option that ``text`` is by its text, its letter or both, such as ``forceps``, ``B``,
        ``B. forceps`` and ``forceps (B)``; None if letter and text contradict each other.
        """
        place = self._place_of_form.get(self._form(text))
        letter = self._leading_letter(text)
        if place is not None and not self._was_taken_for_article(letter, place):
            return place
        if letter is None:
            return self._place_before_letter(text)
        if not has_content(letter.rest) or self._is_text(letter.place, letter.rest):
            return self._first_equal[letter.place]
        return None

    def _leading_letter(self, text: str) -> _LeadingLetter | None:
        """The letter of an option at the beginning of ``text``, if there is one."""
        match = _LETTER.match(text)
        place = self._place_of_letter(match)
        if match is None or place is None:
            return None
        is_marked = bool(match["noun"]) or match["sep"].strip() != ""
        return _LeadingLetter(place, is_marked, match["rest"])

    def _place_of_letter(self, match: re.Match[str] | None) -> int | None:
        """The option whose letter was matched, if it has one."""
        place = -1 if match is None else self._letters.find(match["letter"].upper())
        return None if place < 0 else place

    def _was_taken_for_article(self, letter: _LeadingLetter | None, place: int) -> bool:
        """Whether a text equals the option at ``place`` only because `normalise` took its letter,
        an A, for an article.

        "A. forceps" is a letter and a text; "A forceps" is an article and a text.
        """
        if letter is None or letter.place != 0 or not letter.is_marked:
            return False
        return _LETTER.match(self._texts[place]) is None

    def _place_before_letter(self, text: str) -> int | None:
        """The option whose text is followed by its letter, such as ``forceps (B)``."""
        begin = max(0, len(text) - 24)  # so that long texts are not searched
        match = _TRAILING_LETTER.search(text[begin:])
        place = self._place_of_letter(match)
        if match is None or place is None:
            return None
        before = text[: begin + match.start()]
        if not self._is_text(place, before):
            return None
        return self._first_equal[place]

    def _is_text(self, place: int, text: str) -> bool:
        """Whether ``text`` is the text of the option at ``place``."""
        form = self._forms[place]
        return form != "" and self._form(text) == form


def _distinguishing_form(texts: Sequence[str]) -> Callable[[str], str]:
    """`normalise`, or `verbatim` if texts differ only in what `normalise` removes."""
    forms = [normalise(text) for text in texts]
    if "" in forms or len(set(forms)) < len(set(texts)):
        return verbatim
    return normalise


def _first_places(forms: Sequence[str], texts: Sequence[str]) -> dict[str, int]:
    """The first place of each form; a text without a form has itself as its key."""
    places: dict[str, int] = {}
    for place, (form, text) in enumerate(zip(forms, texts, strict=True)):
        places.setdefault(form or text, place)
    return places


def answer_options(
    choices: Sequence[str], answers: Sequence[str]
) -> tuple[AnswerOptions, frozenset[int]]:
    """The options of a question, and the places of its ``answers``, which are texts or letters of
    ``choices``.

    Answers that are neither are options without a letter.
    """
    texts = _without_own_letters(choices)
    options = AnswerOptions(texts, len(choices))
    places: list[int | None] = []
    further: list[str] = []
    for answer in answers:
        place = choices.index(answer) if answer in choices else options.place_of(answer)
        places.append(place)
        if place is None:
            further.append(answer)
    options = AnswerOptions([*texts, *further], len(choices))
    expected: set[int] = set()
    for answer, place in zip(answers, places, strict=True):
        position = options.place_of(answer) if place is None else place
        if position is not None:
            expected.add(options.first_equal(position))
    return options, frozenset(expected)


def _without_own_letters(choices: Sequence[str]) -> Sequence[str]:
    """The choices without their letters, if every one begins with the letter of its place."""
    if len(choices) > len(string.ascii_uppercase):
        return choices
    texts = []
    for letter, choice in zip(string.ascii_uppercase, choices, strict=False):
        match = _OWN_LETTER.fullmatch(choice)
        if match is None or match["letter"] != letter:
            return choices
        texts.append(match["text"])
    return texts


def _spans_between_separators(text: str) -> list[tuple[int, int]]:
    """Where the pieces between separators begin and end, without those that have no content."""
    spans = []
    begin = 0
    for separator in _SEPARATOR.finditer(text):
        spans.append((begin, separator.start()))
        begin = separator.end()
    spans.append((begin, len(text)))
    return [(begin, end) for begin, end in spans if has_content(text[begin:end])]


def _is_letter(text: str) -> bool:
    return len(text) == 1 and text.isalpha()
