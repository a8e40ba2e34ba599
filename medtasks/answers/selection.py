"""The option that a reply selects, from its statements (rules in ``option_letter``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from medtasks.answers.vocabulary import MARK, Rank
from medtasks.answers.mentions import Marked, letters_alone, mark_mentions
from medtasks.answers.option_text import named_letters, texts_within, unique_forms, whole_option
from medtasks.answers.markup import bounded, labelled, own_turn, plain_text
from medtasks.answers.statements import (
    Statement,
    claims,
    has_ended,
    is_cut_off,
    is_reopened,
    labels,
    retractions,
    sentence_before,
    sentence_of,
)

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\ufe0f\ufeff]")
_SIGNS = str.maketrans(dict.fromkeys("✔✅☑√", "✓") | dict.fromkeys("✘❌✕✖☒🚫❎", "✗") | {"\r": "\n", "\u2028": "\n"})
_BOX = re.compile(r"^(?P<lead>[ \t]{0,8}(?:[-*+]|\d{1,2}[.)])?[ \t]{0,4})\[(?P<tick>[ xX])\](?=[ \t])", re.MULTILINE)
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(?P<tag>s|del|strike)>[^<\n]{1,200}</(?P=tag)>", re.IGNORECASE)
_CYRILLIC = re.compile(r"(?<!\w)[АВСЕ](?=[ \t]{0,3}(?:$|[.)\]:;,*—–(-]))", re.MULTILINE)  # alike in print
_Q = re.compile(r"\W{0,8}Q\d{0,2}[ \t]?[:.]")
_A = re.compile(r"(?<![A-Za-z0-9])A\d{0,2}(?=[ \t]?:)")
_NEXT_TURN = re.compile(r"^[^\w\n]{0,6}(?:user|human|question|q|instruction)\s{0,2}\d{0,3}[ \t]?:", re.I | re.M)
_SECTION = re.compile(
    r"^[^\w\n]{0,6}(?:\d{1,2}[.)][ \t]?)?(?:(?:the|my)[ \t])?"
    r"(?:final[ \t](?:response|answer|verdict|decision|conclusion|diagnosis|choice|selection)"
    r"|conclusion|answer|(?:最终)?(?:结论|答案)|回答)[^\w\n]{0,6}\n",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Selection:
    """The letters that a reply selects, options or not; ``text``: an option's text alone is the answer.

    ``named`` has the options whose texts a reply without one selected option contains.
    """

    letters: frozenset[str]
    text: bool = False
    named: frozenset[str] = frozenset()


def selection_of(reply: str, letters: str, options: Mapping[str, str]) -> Selection | None:
    """What a reply without thinking selects; None if it is empty."""
    plain = _normalised(bounded(reply))
    if not plain:
        return None
    next_turn = _NEXT_TURN.search(plain, 1)
    if next_turn:  # the model went on to write the next question
        found = _selected(plain[: next_turn.start()].strip(), letters, options)
        if found.letters:
            return found
    return _selected(plain, letters, options)


def _normalised(reply: str) -> str:
    """The model's own turn as plain text, in which JSON keys, answer tags and checked boxes are words and signs."""
    text = _INVISIBLE.sub("", own_turn(reply)).translate(_SIGNS)
    text = _A.sub("Answer", _STRUCK.sub("", text), count=1) if _Q.match(text) else _STRUCK.sub("", text)
    text = _BOX.sub(lambda box: f"{box['lead']}{'✗' if box['tick'] == ' ' else '✓'}", text)
    text = labelled(text)
    text = _CYRILLIC.sub(lambda letter: "ABCE"["АВСЕ".index(letter[0])], text)
    return plain_text(text)


def _selected(plain: str, letters: str, options: Mapping[str, str]) -> Selection:
    alone = letters_alone(plain)
    if alone:
        return Selection(alone)
    said = plain.rstrip(". ").casefold()
    same = [letter for letter in unique_forms(options).values() if options[letter].strip().casefold() == said]
    if len(same) == 1:  # also "A. fumigatus", whose letter belongs to the text
        return Selection(frozenset(same), text=True)
    whole = whole_option(plain, options) if options else None
    stated = _deciding_letters(plain, letters, options)
    found = frozenset().union(*(one.letters for one in stated))
    if whole and found <= {whole}:
        return Selection(frozenset(whole), text=all(one.text for one in stated))
    if stated and all(one.text for one in stated) and len(found) == 1:
        found = frozenset()  # an option's text within prose
    found |= frozenset(whole or "")
    return Selection(found, named=named_letters(plain, options) if len(found) != 1 else frozenset())


def _deciding_letters(plain: str, letters: str, options: Mapping[str, str]) -> Sequence[Statement]:
    """The statements that decide, those under the last heading with *answer* if there are any."""
    for section in reversed(list(_SECTION.finditer(plain))[-3:]):
        found = _deciding(mark_mentions(plain[section.end() :], options), letters)
        if found:
            return found
    marked = mark_mentions(plain, options)
    found = _deciding(marked, letters)
    return [*found, *_texts_beside(marked, found, options)]


def _deciding(marked: Marked, letters: str) -> Sequence[Statement]:
    """The statements that count: one, if it decides alone, or all that contradict each other."""
    text, words, found = marked.text, marked.words, claims(marked)
    firm = [one for one in found if one.rank >= (Rank.ANSWER if one.text else Rank.STATED)]
    if firm:
        taken_back = retractions(words, text)
        firm = _upheld(firm, taken_back)
        last = firm[-1].position
        if is_reopened(words, text, last):
            return ()
        doubts = [one for one in found if one.rank == Rank.TENTATIVE and one.position > last]
        unclear = [at for at in marked.mentions if taken_back and at > taken_back[-1] > last]
        return [*_outranking([*firm, *doubts]), *_labels_at(marked, unclear)]
    if found:
        if is_cut_off(words, text) or is_reopened(words, text, found[-1].position):
            return ()
        start, end = sentence_of(text, found[-1].position)
        whole = found[-1].rank == Rank.TENTATIVE
        beside = [at for at in marked.mentions if whole or start <= at < end]
        return [*_outranking(found), *_labels_at(marked, beside)]
    if retractions(words, text) and not has_ended(text):
        return ()
    return _undisputed(marked, letters)


def _undisputed(marked: Marked, letters: str) -> Sequence[Statement]:
    """Labels; a letter or an option's text elsewhere that is not denied contradicts them."""
    places, named = labels(marked, letters)
    chosen = _labels_at(marked, places)
    if len(frozenset().union(*(one.letters for one in chosen))) == 1:
        chosen = [*chosen, *(Statement(frozenset(one), Rank.LABEL, len(marked.text)) for one in named & set(letters))]
    return chosen


def _texts_beside(marked: Marked, found: Sequence[Statement], options: Mapping[str, str]) -> Iterator[Statement]:
    """Other options whose texts, however short, the sentence before a bare letter names: ``It is on the left. (B)``."""
    if len({one.letters for one in found}) != 1 or not options:
        return
    for one in found:
        if one.bare and not marked.mentions[one.position].own:
            start, sentence = sentence_before(marked.text, one.position)
            marks = [marked.mentions[start + mark.start()] for mark in re.finditer(MARK, sentence)]
            named = texts_within(sentence, options, marked.words)
            named = named.union(*(mark.letters for mark in marks if mark.text))
            if not named & one.letters:
                yield from (Statement(frozenset(letter), Rank.LABEL, one.position, bare=True) for letter in named)


def _labels_at(marked: Marked, places: Iterable[int]) -> list[Statement]:
    mentions = marked.mentions
    return [Statement(mentions[at].letters, Rank.LABEL, at, mentions[at].text, bare=True) for at in places]


def _upheld(firm: Sequence[Statement], taken_back: Sequence[int]) -> list[Statement]:
    """The claims that are not taken back: those after the last retraction that a claim follows."""
    for position in reversed(taken_back):
        behind = [claim for claim in firm if claim.position > position]
        if behind:
            return behind
    return list(firm)


def _outranking(found: Sequence[Statement]) -> Sequence[Statement]:
    """The last statement if it outranks or narrows down every other one; else all of them."""
    last = found[-1]
    others = [claim for claim in found if claim.letters != last.letters]
    alone = all(one.rank < last.rank or (one.rank == last.rank and last.letters < one.letters) for one in others)
    return [one for one in found if one.letters == last.letters] if alone else found
