"""The option that a reply selects, from its statements (rules in ``option_letter``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from medtasks.answers.markup import bounded, labelled, own_turn, plain_text
from medtasks.answers.mentions import Marked, letters_alone, mark_mentions
from medtasks.answers.option_text import named_letters, texts_within, unique_forms, whole_option
from medtasks.answers.statements import Statement, statements
from medtasks.answers.vocabulary import MARK, Rank

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
    deciding = _deciding_statements(plain, letters, options)
    found = frozenset[str]().union(*(one.letters for one in deciding))
    by_text = all(one.mention.text for one in deciding)
    if whole and found <= {whole}:
        return Selection(frozenset(whole), text=by_text)
    if by_text and len(found) == 1:
        found = frozenset()  # an option's text within prose
    found |= frozenset(whole or "")
    return Selection(found, named=named_letters(plain, options) if len(found) != 1 else frozenset())


def _deciding_statements(plain: str, letters: str, options: Mapping[str, str]) -> Sequence[Statement]:
    """The statements that decide, those under the last heading with *answer* if there are any."""
    for section in reversed(list(_SECTION.finditer(plain))[-3:]):
        if found := _deciding(mark_mentions(plain[section.end() :], options), letters):
            return found
    marked = mark_mentions(plain, options)
    found = _deciding(marked, letters)
    return [*found, *_texts_beside(marked, found, options)]


def _deciding(marked: Marked, letters: str) -> Sequence[Statement]:
    """The statements that count: one, if it decides alone, or all that contradict each other."""
    text, found = marked.text, statements(marked, letters)
    claims = [one for one in found if one.rank >= Rank.TENTATIVE]
    firm = [one for one in claims if one.rank >= (Rank.ANSWER if one.mention.text else Rank.STATED)]
    retractions = [match.end() for match in marked.words["retracts"].finditer(text)]
    if firm:
        firm = _upheld(firm, retractions)
        last = firm[-1].position
        if _is_reopened(marked, last):
            return ()
        later = [one for one in found if one.position > last]
        doubts = [one for one in later if one.rank == Rank.TENTATIVE]
        unclear = [one for one in later if retractions and one.position > retractions[-1] > last]
        return [*_outranking([*firm, *doubts]), *unclear]
    if claims:
        last = claims[-1].position
        if marked.cut_off or _is_reopened(marked, last):
            return ()
        ends = marked.words["sentence_ends"]
        start = max((end.end() for end in ends.finditer(text, 0, last)), default=0)
        stop = ends.search(text, last)
        whole = claims[-1].rank == Rank.TENTATIVE
        beside = [one for one in found if whole or start <= one.position < (stop.start() if stop else len(text))]
        return [*_outranking(claims), *beside]
    if retractions and not marked.ended:
        return ()
    return _undisputed(marked, found, letters)


def _undisputed(marked: Marked, found: Sequence[Statement], letters: str) -> Sequence[Statement]:
    """Labels; a letter or an option's text elsewhere that is not denied contradicts them."""
    labels = [one for one in found if one.rank == Rank.LABEL and len(one.letters) < max(4, len(letters))]
    others = [one for one in found if one.rank != Rank.LISTED and one.mention.upper]
    if marked.unfinished:  # what the reply began with may still be its answer
        first = len(marked.text) - len(marked.text.lstrip()) + len(marked.text.strip().partition("\n")[0])
        labels = [one for one in labels if one.position < first and not one.mention.named]
    elif not labels:
        labels = [one for one in found if one.rank in (Rank.LISTED, Rank.LABEL)]
    opened = marked.words["opener"].search(marked.text)
    if opened:
        before = [one for one in labels if one.position < opened.start()]
        if before or len(_named(labels)) == 1:
            labels, others = before, [one for one in others if one.position < opened.start()]
    labels = [one for one in labels if one.letters <= frozenset(letters)] or labels
    if len(_named(labels)) != 1:
        return labels
    return [*labels, *(one for one in others if one.letters & frozenset(letters))]


def _named(found: Iterable[Statement]) -> frozenset[str]:
    return frozenset[str]().union(*(one.letters for one in found))


def _is_reopened(marked: Marked, position: int) -> bool:
    """Whether the text withdraws the claim at ``position``, or is cut off while it reasons or lists on after it."""
    text, words = marked.text, marked.words
    if marked.ended or words["withdraws"].search(text, position):
        return words["withdraws"].search(text, position) is not None
    more = marked.unfinished and words["more_comes"].match(text, position + 1)
    return bool(more or words["reasons_on"].search(text, position) or words["retracts"].search(text, position))


def _texts_beside(marked: Marked, found: Sequence[Statement], options: Mapping[str, str]) -> Iterator[Statement]:
    """Other options whose texts, however short, the sentence before a bare letter names: ``It is on the left. (B)``."""
    if len({one.letters for one in found}) != 1 or not options:
        return
    for one in found:
        if one.bare and not one.mention.own:
            start, sentence = _sentence_above(marked, one.position)
            marks = [marked.mentions[start + mark.start()] for mark in re.finditer(MARK, sentence)]
            named = texts_within(sentence, options, marked.words)
            named = named.union(*(mark.letters for mark in marks if mark.text))
            if not named & one.letters:
                yield from (replace(one, letters=frozenset(letter)) for letter in named)


def _sentence_above(marked: Marked, position: int) -> tuple[int, str]:
    """Start and text of what is on the line before ``position``: the rest of its sentence, or the one before."""
    text, words = marked.text, marked.words
    line = max(text.rfind("\n", 0, position) + 1, position - 300)
    ends = [line, *(match.end() for match in words["sentence_ends"].finditer(text, line, position))]
    while len(ends) > 1 and not re.search(rf"[\w{MARK}]", text[ends[-1] : position]):
        ends.pop()
    return ends[-1], text[ends[-1] : position]


def _upheld(firm: Sequence[Statement], retractions: Sequence[int]) -> list[Statement]:
    """The claims that are not taken back: those after the last retraction that a claim follows."""
    for position in reversed(retractions):
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
