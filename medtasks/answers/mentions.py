"""Letters and option texts in a response that may be the answer, each replaced by one character
that patterns find.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from medtasks.answers.option_place import mark_places
from medtasks.answers.option_text import mark_texts
from medtasks.answers.vocabulary import DENIED, MARK, OWN, Rank, Vocabulary, vocabulary_of

_REACH = 120
_ANY_LANGUAGE = Vocabulary("letters")
_ENDS = ".!?。！？…)\"'”’}]|✓✗`"


@dataclass(frozen=True)
class Mention:
    """Options named in one place, by letters in upper case, and (as a statement) how firmly they
    are called the answer.

    ``upper``: all of them are capitals; ``closed``: a bracket or quote follows; ``bracketed``: one
    also precedes;
    ``bold``: it is emphasized; ``named``: a word such as *option* precedes; ``own``: the option's
    text is beside its letter; ``text``: there is no letter but an option's text. ``bare``: no words
    call them the answer; ``heads``: it is the label of a line; ``weak``: words around it deny,
    doubt or compare.
    """

    letters: frozenset[str]
    upper: bool = True
    closed: bool = True
    bracketed: bool = False
    bold: bool = False
    named: bool = False
    own: bool = False
    text: bool = False
    position: int = 0
    rank: Rank = Rank.MENTIONED
    bare: bool = True
    heads: bool = False
    weak: bool = False

    def beside(self, letter: str) -> Mention:
        """This mention with the text of option ``letter`` beside it."""
        if self.letters == {letter}:
            return replace(self, closed=True, own=True)
        return replace(self, letters=self.letters | {letter})


@dataclass(frozen=True)
class Marked:
    """A text in which ``MARK`` (or ``DENIED``) replaces every mention; ``mentions`` by position of
    the marks.

    ``denied`` has the letters of mentions that are denied.
    """

    text: str
    mentions: Mapping[int, Mention]
    denied: frozenset[str]
    words: Vocabulary

    @property
    def ended(self) -> bool:
        """Whether the text ends with a sign that ends sentences."""
        return self.text.rstrip()[-1:] in _ENDS

    @property
    def unfinished(self) -> bool:
        """Whether the text ends with a word or sign that something must follow."""
        return self.words["unfinished"].search(self.text.rstrip()[-20:]) is not None

    @property
    def cut_off(self) -> bool:
        """Whether the text ends within a sentence, as far as can be seen: short last lines need no
        full stop.
        """
        if self.unfinished or self.ended or self.text.rstrip()[-1:] in (MARK, DENIED, OWN):
            return self.unfinished
        above, _, line = self.text.rstrip().rpartition("\n")
        if above.rstrip()[-1:].isalnum():  # a list without full stops
            return False
        last = self.words["sentence_ends"].split(line)[-1]
        return len(last.split()) >= 4 or (len(last) >= 12 and not last.isascii())

    def is_last(self, position: int) -> bool:
        """Whether nothing but a few signs follows ``position``."""
        return len(self.text) - position < 20 and not self.text[position + 1 :].strip()

    def follows_sentence(self, position: int) -> bool:
        """Whether a sentence ends before ``position``: prose that ends there without a full stop is
        cut off.
        """
        line = self.text.rfind("\n", 0, position) + 1
        return (
            position > 20
            and self.words["sentence_ends"].search(self.text, line, position) is not None
        )


def letters_alone(bare_text: str) -> frozenset[str]:
    """The letters of a text of single letters and punctuation only; none for any other text."""
    words = vocabulary_of("")
    if (
        words["letters_only"].fullmatch(bare_text) is None
        or set(bare_text) & set("✓✗")
        or words["name"].search(bare_text)
    ):
        return frozenset()
    return frozenset(character.upper() for character in bare_text if character.isalpha())


def mark_mentions(bare_text: str, options: Mapping[str, str]) -> Marked:
    """``bare_text`` with its mentions marked, and letters that belong to a name (``vitamin D``,
    ``E. coli``) removed.

    >>> marked = mark_mentions("Image A shows no C-shaped tube, so option (B) is right, not D.", {})
    >>> [sorted(mention.letters) for mention in marked.mentions.values()]
    [['B']]
    """
    unmarked = bare_text.translate({ord(MARK): None, ord(DENIED): None, ord(OWN): None})
    with_texts, texts = mark_texts(mark_places(unmarked, options), options)
    words = vocabulary_of(with_texts)
    prepared = _without_names(with_texts, words)
    headings = [match.end() for match in words["heading"].finditer(prepared)]
    pieces: list[str] = []
    mentions: dict[int, Mention] = {}
    denied_letters: set[str] = set()
    end = length = 0
    for occurrence in _occurrences(prepared, texts, words):
        denied = _is_denied(prepared, occurrence, words, headings)
        mark = DENIED if denied else MARK
        pieces += [prepared[end : occurrence.start], mark, occurrence.sign]
        length += occurrence.start - end
        if denied:
            denied_letters |= occurrence.mention.letters
        else:
            mentions[length] = occurrence.mention
        length += len(mark) + len(occurrence.sign)
        end = occurrence.stop
    pieces.append(prepared[end:])
    return Marked("".join(pieces), mentions, frozenset(denied_letters), words)


def _without_names(bare_text: str, words: Vocabulary) -> str:
    """``bare_text`` without tables of excluded options and letters that belong to names, and with
    letters apart from the words they are glued to.
    """
    bare_text = words["excluding_table"].sub("\n", bare_text)
    bare_text = words["example"].sub(" for example, ", bare_text)
    bare_text = words["name_begun"].sub(" named ", bare_text)
    bare_text = words["name"].sub(" named ", bare_text)
    bare_text = words["glued"].sub(r"\g<head>\g<letter>\g<sign> ", bare_text)
    return words["suffixed"].sub(" ", bare_text)


@dataclass(frozen=True)
class _Occurrence:
    """A mention and where it is in a text; ``sign`` is what is kept behind its mark."""

    start: int
    stop: int
    sign: str
    mention: Mention


def _occurrences(bare_text: str, texts: Mapping[str, str], words: Vocabulary) -> list[_Occurrence]:
    """Every mention, by letters or by an option's text, in the order of the text."""
    occurrences: list[_Occurrence] = []
    covered: set[int] = set()
    end = 0
    for match in words["mention"].finditer(bare_text):
        mention = _mention(match, words)
        if mention is None:
            continue
        occurrence = _Occurrence(match.start(), match.end(), "", mention)
        if len(mention.letters) == 1:
            occurrence = _with_text_beside(bare_text, occurrence, end, texts, words)
        occurrences.append(occurrence)
        covered.update(range(occurrence.start, occurrence.stop))
        end = occurrence.stop
    for match in words["text"].finditer(bare_text):
        if match.start() not in covered:
            mention = Mention(frozenset(texts[match[0]]), text=True)
            occurrences.append(_Occurrence(match.start(), match.end(), "", mention))
    return sorted(occurrences, key=attrgetter("start"))


def _with_text_beside(
    bare_text: str,
    letter: _Occurrence,
    previous_end: int,
    texts: Mapping[str, str],
    words: Vocabulary,
) -> _Occurrence:
    """A letter, joined with the option's text behind it, or else with the one before it."""
    mention = letter.mention
    behind = words["text_behind"].match(bare_text, letter.stop)
    if behind:
        joined = mention.beside(texts[behind["text"]])
        if joined.own or (mention.upper and behind["stops"] is not None):
            sign = behind["sign"] + (OWN if joined.own else "")
            return _Occurrence(letter.start, behind.end(), sign, joined)
        return letter
    search_start = max(previous_end, letter.start - 8)
    before = words["text_before"].search(bare_text, search_start, letter.start)
    if before and (mention.bracketed or mention.named or before["sign"]):
        joined = mention.beside(texts[before["text"]])
        return _Occurrence(before.start(), letter.stop, OWN if joined.own else "", joined)
    return letter


def _mention(match: re.Match[str], words: Vocabulary) -> Mention | None:
    """The mention of a match; None for the beginning of a list (``Options B``) and for words (``A
    and a``).
    """
    noun = match["noun"] or ""
    named = match["letters"].replace(noun, "", 1)
    letters = [letter[0][-1] for letter in words["letter"].finditer(named)]
    if letters[0].isupper() and "," in named:  # "D, e non a C"
        letters = [letter for letter in letters if letter.isupper()]
    is_plural = noun.rstrip().casefold().endswith("s")
    if is_plural and len(letters) == 1:
        return None
    if len(set(map(str.isupper, letters))) > 1:  # capitals and small letters
        return None
    closed = bool(match["close"])
    return Mention(
        letters=frozenset(map(str.upper, letters)),
        upper=letters[0].isupper(),
        closed=closed,
        bracketed=closed and not named[0].isalpha(),
        bold="‹" in match[0],
        named=bool(noun),
    )


def _is_denied(
    bare_text: str, occurrence: _Occurrence, words: Vocabulary, headings: Sequence[int]
) -> bool:
    """Whether the words around a mention, in its clause or on its line, or a heading above deny
    it.

    ``headings`` are the ends of headings such as "Why not the others?", in order.
    """
    start, mention = occurrence.start, occurrence.mention
    before = bare_text[max(0, start - _REACH) : start]
    if _is_denied_in_clause(bare_text, before, occurrence, words):
        return True
    line = words["line_start"].search(before)
    if line and ("✗" in line["lead"] or words["denied_line"].match(bare_text, occurrence.stop)):
        return True
    headings_above = bisect_right(headings, start)
    if not headings_above:
        return False
    below_heading = bare_text[headings[headings_above - 1] : start]
    if "\n\n" in below_heading.lstrip("\n"):
        return False
    line_so_far = bare_text[bare_text.rfind("\n", 0, start) + 1 : start]
    if words["answer_label"].match(line_so_far):
        return False
    return mention.bracketed or line is not None


def _is_denied_in_clause(
    bare_text: str, before: str, occurrence: _Occurrence, words: Vocabulary
) -> bool:
    """Whether the words right before or after a mention, or others in its clause, deny it."""
    stop, mention = occurrence.stop, occurrence.mention
    if words["denied_before"].search(before) or words["denied_after"].match(bare_text, stop):
        return True
    if len(mention.letters) > 1 and words["denied_set"].match(bare_text, stop):
        return True
    is_aside = (mention.bracketed and not mention.bold) or mention.text
    if not is_aside or words["affirmed"].match(bare_text, stop):
        return False
    clause = words["clause_turns"].split(before)[-1]
    return _ANY_LANGUAGE["denies_clause"].search(clause) is not None
