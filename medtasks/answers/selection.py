"""The option that a reply selects, from its statements (rules in ``option_letter``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from medtasks.answers.markup import PATTERNS, plain_reply, strip_thinking
from medtasks.answers.mentions import Marked, letters_alone, mark_mentions
from medtasks.answers.option_text import mark_places, named_letters, texts_within, unique_forms, whole_option, yes_or_no
from medtasks.answers.statements import Statement, left_over, letters_of, statements, weakened
from medtasks.answers.vocabulary import MARK, Rank, vocabulary_of

LETTERS = "ABCDE"
"""The options of a benchmark that declares none."""

Status = Literal["ok", "none", "multiple", "out_of_range", "empty"]
Kind = Literal["letter", "text"]
_MARKERS: dict[str, Status] = {f"[{status}]": status for status in get_args(Status) if status != "ok"}


@dataclass(frozen=True)
class Extraction:
    """The extracted letter; None unless ``status`` is ``ok``.

    ``kind`` is how the option was named: by its letter, or by its text or place. ``named`` has the options whose texts
    are in a response that was not read.
    """

    letter: str | None
    status: Status
    kind: Kind | None = field(default=None, compare=False)
    named: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def filtered(self) -> str:
        """The letter, or the status in brackets: what the harness logs as the filtered response."""
        return self.letter or f"[{self.status}]"


def extract_option(text: str, letters: str = LETTERS, options: Mapping[str, str] | None = None) -> Extraction:
    """The one option that ``text`` selects among ``letters``, by the rules in `medtasks.answers.option_letter`.

    Never raises. A status marker of this filter is read back as it is. ``options`` has the options' texts by letter;
    without them, only letters are read.

    >>> extract_option("Right lung", "AB", {"A": "Left lung", "B": "Right lung"}).letter
    'B'
    """
    if own := _MARKERS.get(text.strip()):
        return Extraction(None, own)
    plain = plain_reply(strip_thinking(text))
    if not plain:
        return Extraction(None, "empty")
    next_turn = PATTERNS["next_turn"].search(plain, 1)
    if next_turn:  # the model went on to write the next question
        found = _extracted(plain[: next_turn.start()].strip(), letters, options or {})
        if found.status != "none":
            return found
    return _extracted(plain, letters, options or {})


def _extracted(plain: str, letters: str, options: Mapping[str, str]) -> Extraction:
    found, kind = _selected(plain, letters, options)
    if len(found) != 1:
        return Extraction(None, "multiple" if found else "none", named=named_letters(plain, options))
    (letter,) = found
    return Extraction(letter, "ok", kind) if letter in letters else Extraction(None, "out_of_range")


def _selected(plain: str, letters: str, options: Mapping[str, str]) -> tuple[frozenset[str], Kind]:
    """The letters that a reply selects, options or not, and how."""
    if alone := letters_alone(plain):
        return alone, "letter"
    if vocabulary_of(plain)["no_answer"].search(plain):  # null in JSON
        return frozenset(), "letter"
    said = plain.rstrip(". ").casefold()
    same = [letter for letter in unique_forms(options).values() if options[letter].strip().casefold() == said]
    if len(same) == 1:  # also "A. fumigatus", whose letter belongs to the text
        return frozenset(same), "text"
    whole = frozenset((options and whole_option(plain, options)) or "")
    deciding = _deciding_statements(plain, letters, options)
    by_text = all(one.mention.text for one in deciding)
    found = letters_of(deciding)
    if by_text and len(found) <= 1:
        labelled = found if deciding and all(one.rank == Rank.FINAL for one in deciding) else frozenset[str]()
        return whole or labelled or frozenset(yes_or_no(plain, options) or ""), "text"  # none within prose
    placed = whole == found and mark_places(plain, options) != plain
    return found | whole, "text" if placed else "letter"


def _deciding_statements(plain: str, letters: str, options: Mapping[str, str]) -> Sequence[Statement]:
    """The statements that decide, those under the last heading with *answer* if there are any."""
    for section in reversed(list(vocabulary_of("")["section"].finditer(plain))[-3:]):
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
    if any(not one.mention.text or one.rank == Rank.FINAL for one in firm):
        firm = _upheld(firm, retractions)
        last = firm[-1].position
        if _is_reopened(marked, last):
            return ()
        later = [one for one in found if one.position > last]
        doubts = [one for one in later if one.rank == Rank.TENTATIVE]
        unclear = [one for one in later if retractions and one.position > retractions[-1] > last]
        return [*_outranking([*firm, *doubts]), *unclear]
    found = weakened(marked, found)
    claims = [one for one in found if one.rank >= Rank.TENTATIVE]
    if marked.words["withdraws"].search(text, claims[-1].position if claims else 0):
        return ()
    if all(one.rank <= Rank.IMPLIED for one in claims):
        if left := left_over(marked, found, letters):
            return (left,)
        if any(one.rank == Rank.IMPLIED and one.mention.upper for one in claims):
            return [one for one in found if one.rank >= Rank.MENTIONED and one.mention.upper]
        claims = [one for one in claims if one.rank != Rank.IMPLIED]
    if not all(one.mention.text for one in claims):
        last = claims[-1].position
        if marked.cut_off or _is_reopened(marked, last):
            return ()
        ends = marked.words["sentence_ends"]
        start = max((end.end() for end in ends.finditer(text, 0, last)), default=0)
        stop = ends.search(text, last)
        whole = claims[-1].rank == Rank.TENTATIVE
        end = stop.start() if stop else len(text)
        counts = [one for one in found if one.rank > Rank.MENTIONED or one.letters & set(letters)]
        near = [one for one in counts if start <= one.position < end and not _is_set_aside(marked, one, claims[-1])]
        beside = found if whole else near
        labels = [one for one in found if one.rank == Rank.LABEL and one.position < 4 and one.mention.upper]
        return [*_outranking(claims), *beside, *labels]
    if retractions and not marked.ended:
        return ()
    return _undisputed(marked, found, letters)


def _is_set_aside(marked: Marked, one: Statement, claim: Statement) -> bool:
    """Whether a weak statement, or one that ``claim`` narrows down, is in a clause that *but* or a semicolon parts."""
    ends = sorted((one.position, claim.position))
    return (one.weak or claim.letters < one.letters) and marked.words["parted"].search(marked.text, *ends) is not None


def _undisputed(marked: Marked, found: Sequence[Statement], letters: str) -> Sequence[Statement]:
    """Labels; a letter or an option's text elsewhere that is not denied contradicts them."""
    labels = [one for one in found if one.rank == Rank.LABEL]
    if marked.unfinished:  # what the reply began with may still be its answer
        start = len(marked.text) - len(marked.text.lstrip(" ("))
        labels = [one for one in labels if not one.mention.named and one.position == start]
    elif not labels and any(one.rank == Rank.LISTED for one in found):
        labels = [one for one in found if one.rank in (Rank.LISTED, Rank.REPEATED)]
    apart = [
        one for one in found if one.rank not in (Rank.REPEATED, Rank.LISTED) and (one.mention.text or not one.weak)
    ]
    others = [one for one in apart if one.mention.upper and one.letters & set(letters)]
    return [*labels, *others] if len(letters_of(labels)) == 1 else labels


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
            start = _start_above(marked, one.position)
            named = texts_within(marked.text[start : one.position], options, marked.words)
            marks = re.compile(MARK).finditer(marked.text, start, one.position)
            beside = [marked.mentions[mark.start()] for mark in marks]
            named = named.union(*(mention.letters for mention in beside if mention.text))
            if not named & one.letters:
                yield from (replace(one, letters=frozenset(letter)) for letter in named)


def _start_above(marked: Marked, position: int) -> int:
    """Where the rest of the sentence on the line before ``position`` starts, or the sentence before it."""
    text, words = marked.text, marked.words
    line = max(text.rfind("\n", 0, position) + 1, position - 300)
    ends = [line, *(match.end() for match in words["sentence_ends"].finditer(text, line, position))]
    while len(ends) > 1 and not re.search(rf"[\w{MARK}]", text[ends[-1] : position]):
        ends.pop()
    return ends[-1]


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
