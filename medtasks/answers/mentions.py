"""Letters and option texts in a response that may be the answer, each replaced by one character
that patterns find.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

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
    """``bare_text`` with its mentions marked, and letters that belong to a name (``vitamin D``, ``E.
    coli``) removed.

    >>> marked = mark_mentions("Image A shows no C-shaped tube, so option (B) is right, not D.", {})
    >>> [sorted(mention.letters) for mention in marked.mentions.values()]
    [['B']]
    """
    bare_text = mark_places(
        bare_text.translate({ord(MARK): None, ord(DENIED): None, ord(OWN): None}), options
    )
    bare_text, texts = mark_texts(bare_text, options)
    words = vocabulary_of(bare_text)
    bare_text = words["excluding_table"].sub("\n", bare_text)
    bare_text = words["example"].sub(" for example, ", bare_text)
    bare_text = words["name"].sub(" named ", words["name_begun"].sub(" named ", bare_text))
    bare_text = words["suffixed"].sub(
        " ", words["glued"].sub(r"\g<head>\g<letter>\g<sign> ", bare_text)
    )
    headings = [match.end() for match in words["heading"].finditer(bare_text)]
    pieces: list[str] = []
    mentions: dict[int, Mention] = {}
    refused: set[str] = set()
    end = length = 0
    for start, stop, sign, mention in _mentions(bare_text, texts, words):
        denied = _is_denied(bare_text, start, stop, mention, words, headings)
        pieces += [bare_text[end:start], DENIED if denied else MARK, sign]
        length += start - end
        if denied:
            refused |= mention.letters
        else:
            mentions[length] = mention
        length += 1 + len(sign)
        end = stop
    return Marked("".join(pieces) + bare_text[end:], mentions, frozenset(refused), words)


def _mentions(
    bare_text: str, texts: Mapping[str, str], words: Vocabulary
) -> list[tuple[int, int, str, Mention]]:
    """Start, end, what follows the mark, and the mention, for each letter and each option text, in
    order.
    """
    mentions: list[tuple[int, int, str, Mention]] = []
    beside: set[int] = set()
    end = 0
    for match in words["mention"].finditer(bare_text):
        mention = _mention(match, words)
        if mention is None:
            continue
        start, stop, sign = match.start(), match.end(), ""
        behind = words["text_behind"].match(bare_text, stop)
        before = words["text_before"].search(bare_text, max(end, start - 8), start)
        if len(mention.letters) == 1 and behind:
            joined = mention.beside(texts[behind["text"]])
            if joined.own or (mention.upper and behind["stops"] is not None):
                mention, stop, sign = joined, behind.end(), behind["sign"] + OWN * joined.own
        elif (
            len(mention.letters) == 1
            and before
            and (mention.bracketed or mention.named or before["sign"])
        ):
            mention, start = mention.beside(texts[before["text"]]), before.start()
            sign = OWN * mention.own
        mentions.append((start, stop, sign, mention))
        beside.update(range(start, stop))
        end = stop
    for match in words["text"].finditer(bare_text):
        if match.start() not in beside:
            mentions.append(
                (match.start(), match.end(), "", Mention(frozenset(texts[match[0]]), text=True))
            )
    return sorted(mentions, key=itemgetter(0))


def _mention(match: re.Match[str], words: Vocabulary) -> Mention | None:
    """The mention of a match; None for the beginning of a list (``Options B``) and for words (``A
    and a``).
    """
    noun = match["noun"] or ""
    named = match["letters"].replace(noun, "", 1)
    letters = [letter[0][-1] for letter in words["letter"].finditer(named)]
    if letters[0].isupper() and "," in named:  # "D, e non a C"
        letters = [letter for letter in letters if letter.isupper()]
    if (noun.rstrip().casefold().endswith("s") and len(letters) == 1) or len(
        set(map(str.isupper, letters))
    ) > 1:
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
    bare_text: str,
    start: int,
    stop: int,
    mention: Mention,
    words: Vocabulary,
    headings: Sequence[int],
) -> bool:
    """Whether the words around a mention, in its clause or on its line, or a heading above deny
    it.
    """
    before = bare_text[max(0, start - _REACH) : start]
    if words["denied_before"].search(before) or words["denied_after"].match(bare_text, stop):
        return True
    if len(mention.letters) > 1 and words["denied_set"].match(bare_text, stop):
        return True
    if ((mention.bracketed and not mention.bold) or mention.text) and not words["affirmed"].match(
        bare_text, stop
    ):
        clause = words["clause_turns"].split(before)[-1]
        if _ANY_LANGUAGE["denies_clause"].search(clause):
            return True
    line = words["line_start"].search(before)
    if line and ("✗" in line["lead"] or words["denied_line"].match(bare_text, stop)):
        return True
    above = bisect_right(headings, start)  # "Why not the others?"
    if not above or "\n\n" in bare_text[headings[above - 1] : start].lstrip("\n"):
        return False
    if words["answer_label"].match(bare_text[bare_text.rfind("\n", 0, start) + 1 : start]):
        return False
    return mention.bracketed or line is not None
