"""The statements of a response that decide which option it selects (rule 5 of `option_letter`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from medtasks.answers.mentions import Marked, Mention, mark_mentions
from medtasks.answers.option_text import texts_within
from medtasks.answers.statements import left_over, letters_of, statements, weakened
from medtasks.answers.vocabulary import MARK, Rank, vocabulary_of


def deciding_statements(
    bare_text: str, letters: str, options: Mapping[str, str]
) -> Sequence[Mention]:
    """The statements that decide, those under the last heading with *answer* if there are any."""
    sections = list(vocabulary_of("")["section"].finditer(bare_text))
    for section in reversed(sections[-3:]):
        deciding = _deciding(mark_mentions(bare_text[section.end() :], options), letters)
        if deciding:
            return deciding
    marked = mark_mentions(bare_text, options)
    deciding = _deciding(marked, letters)
    beside: list[Mention] = []
    for statement in deciding:
        if statement.bare and not statement.own and options:  # "It is on the left. (B)"
            named = _named_before(marked, statement.position, options)
            if not named & statement.letters:
                beside += [replace(statement, letters=frozenset(letter)) for letter in named]
    return [*deciding, *beside]


def _named_before(marked: Marked, position: int, options: Mapping[str, str]) -> frozenset[str]:
    """The options whose texts, however short, are in the sentence before a letter on its line."""
    text, words = marked.text, marked.words
    line = max(text.rfind("\n", 0, position) + 1, position - 300)
    start = line
    for sentence in words["sentence_ends"].finditer(text, line, position):
        if _has_words(text[sentence.end() : position]):
            start = sentence.end()
    marks = re.compile(MARK).finditer(text, start, position)
    mentions = [marked.mentions[mark.start()] for mark in marks]
    named = letters_of(mention for mention in mentions if mention.text)
    return named | texts_within(text[start:position], options, words)


def _has_words(text: str) -> bool:
    """Whether a text has a letter, a digit or a mark, not only punctuation."""
    return re.search(rf"[\w{MARK}]", text) is not None


def _deciding(marked: Marked, letters: str) -> Sequence[Mention]:
    """The statements that count: one, if it decides alone, or all that contradict each other."""
    mentions = statements(marked, letters)
    firm = [statement for statement in mentions if _is_firm(statement)]
    if any(not statement.text or statement.rank == Rank.FINAL for statement in firm):
        return _deciding_firm(marked, mentions, firm)
    return _deciding_without_firm(marked, weakened(marked, mentions), letters)


def _is_firm(statement: Mention) -> bool:
    """Whether it states an answer; with an option's text alone, only a label does."""
    return statement.rank >= (Rank.ANSWER if statement.text else Rank.STATED)


def _deciding_firm(
    marked: Marked, mentions: Sequence[Mention], firm: Sequence[Mention]
) -> Sequence[Mention]:
    """The firm statements that are upheld, with the doubts and retractions that follow."""
    retractions = _retractions(marked)
    for retraction in reversed(retractions):
        upheld = [statement for statement in firm if statement.position > retraction]
        if upheld:
            firm = upheld
            break
    last = firm[-1].position
    if _is_reopened(marked, last):
        return ()
    later = [statement for statement in mentions if statement.position > last]
    doubts = [statement for statement in later if statement.rank == Rank.TENTATIVE]
    last_retraction = max(retractions, default=0)
    unclear: list[Mention] = []
    if last_retraction > last:
        unclear = [statement for statement in later if statement.position > last_retraction]
    return [*_outranking([*firm, *doubts]), *unclear]


def _deciding_without_firm(
    marked: Marked, mentions: Sequence[Mention], letters: str
) -> Sequence[Mention]:
    """Tentative claims, else the letter that is left over or implied, else labels."""
    claims = [statement for statement in mentions if statement.rank >= Rank.TENTATIVE]
    last = claims[-1].position if claims else 0
    if marked.words["withdraws"].search(marked.text, last):
        return ()
    if all(claim.rank <= Rank.IMPLIED for claim in claims):
        left = left_over(marked, mentions, letters)
        if left is not None:
            return (left,)
        if any(claim.rank == Rank.IMPLIED and claim.upper for claim in claims):
            mentioned = [statement for statement in mentions if statement.rank >= Rank.MENTIONED]
            return [statement for statement in mentioned if statement.upper]
        claims = [claim for claim in claims if claim.rank != Rank.IMPLIED]
    if not all(claim.text for claim in claims):
        return _claims_and_beside(marked, mentions, claims, letters)
    if _retractions(marked) and not marked.ended:
        return ()
    return _labels_and_others(marked, mentions, letters)


def _retractions(marked: Marked) -> list[int]:
    """Where words end that take back what was said before them."""
    return [match.end() for match in marked.words["retracts"].finditer(marked.text)]


def _labels_and_others(
    marked: Marked, mentions: Sequence[Mention], letters: str
) -> Sequence[Mention]:
    """The labels; if all are of one option, with every other mention, which contradicts it."""
    labels = [statement for statement in mentions if statement.rank == Rank.LABEL]
    listed_mentions = [
        statement for statement in mentions if statement.rank in (Rank.LISTED, Rank.REPEATED)
    ]
    if marked.unfinished:  # what the reply began with may still be its answer
        start = len(marked.text) - len(marked.text.lstrip(" ("))
        labels = [label for label in labels if not label.named and label.position == start]
    elif not labels and any(statement.rank == Rank.LISTED for statement in listed_mentions):
        labels = listed_mentions
    if len(letters_of(labels)) != 1:
        return labels
    other_mentions: list[Mention] = []
    for statement in mentions:
        is_option = statement.upper and statement.letters & set(letters)
        if (
            is_option
            and statement not in listed_mentions
            and (statement.text or not statement.weak)
        ):
            other_mentions.append(statement)
    return [*labels, *other_mentions]


def _claims_and_beside(
    marked: Marked, mentions: Sequence[Mention], claims: Sequence[Mention], letters: str
) -> Sequence[Mention]:
    """Claims without a firm one, with what the sentence of the last one names (all if it is
    tentative), and a label.
    """
    claim = claims[-1]
    if marked.cut_off or _is_reopened(marked, claim.position):
        return ()
    beside = mentions
    if claim.rank != Rank.TENTATIVE:
        beside = _in_sentence_of(claim, marked, mentions, letters)
    labels: list[Mention] = []
    for statement in mentions:
        if statement.rank == Rank.LABEL and statement.position < 4 and statement.upper:
            labels.append(statement)
    return [*_outranking(claims), *beside, *labels]


def _in_sentence_of(
    claim: Mention, marked: Marked, mentions: Sequence[Mention], letters: str
) -> list[Mention]:
    """The statements in the sentence of a claim that *but* or a semicolon does not set aside from
    it.
    """
    text, words = marked.text, marked.words
    ends = words["sentence_ends"]
    start = max((end.end() for end in ends.finditer(text, 0, claim.position)), default=0)
    stop = ends.search(text, claim.position)
    end = stop.start() if stop else len(text)
    beside: list[Mention] = []
    for statement in mentions:
        counts = statement.rank > Rank.MENTIONED or statement.letters & set(letters)
        if not counts or not start <= statement.position < end:
            continue
        can_be_set_aside = statement.weak or claim.letters < statement.letters
        first, last = sorted((statement.position, claim.position))
        if not (can_be_set_aside and words["parted"].search(text, first, last)):
            beside.append(statement)
    return beside


def _is_reopened(marked: Marked, position: int) -> bool:
    """Whether the text withdraws the claim at ``position``, or is cut off while it reasons or lists
    on after it.
    """
    text, words = marked.text, marked.words
    if words["withdraws"].search(text, position):
        return True
    if marked.ended:
        return False
    more = marked.unfinished and words["more_comes"].match(text, position + 1)
    return bool(
        more
        or words["reasons_on"].search(text, position)
        or words["retracts"].search(text, position)
    )


def _outranking(claims: Sequence[Mention]) -> Sequence[Mention]:
    """The last claim if it outranks or narrows down every other one; else all of them.

    An option's text never outranks a letter that is stated: either may be a slip.
    """
    last = claims[-1]
    for claim in claims:
        if claim.letters == last.letters:
            continue
        letter_is_stated = not claim.text and claim.rank >= Rank.STATED
        outranked = claim.rank < last.rank and not (last.text and letter_is_stated)
        narrowed = claim.rank <= last.rank + 1 and last.letters < claim.letters
        if not outranked and not narrowed:
            return claims
    return [claim for claim in claims if claim.letters == last.letters]
