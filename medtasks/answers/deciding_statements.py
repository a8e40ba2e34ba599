"""The statements of a response that decide which option it selects (rule 5 of `option_letter`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from medtasks.answers.mentions import Marked, Mention, mark_mentions
from medtasks.answers.option_text import texts_within
from medtasks.answers.statements import left_over, letters_of, statements, weakened
from medtasks.answers.vocabulary import MARK, Rank, vocabulary_of

_RANKS_OF_LISTS = (Rank.LISTED, Rank.REPEATED)
"""Ranks of mentions that only list the options."""


def deciding_statements(
    bare_text: str, letters: str, options: Mapping[str, str]
) -> Sequence[Mention]:
    """The statements of a response that decide which option it selects.

    They are those below the last of up to three headings with *answer*, if there are any; else
    those of the whole text, with the options that contradict their bare letters.
    """
    headings = list(vocabulary_of("")["section"].finditer(bare_text))
    for heading in reversed(headings[-3:]):
        section = bare_text[heading.end() :]
        deciding = _deciding(mark_mentions(section, options), letters)
        if deciding:
            return deciding
    marked = mark_mentions(bare_text, options)
    deciding = _deciding(marked, letters)
    if not options:
        return deciding
    return [*deciding, *_contradicting_options(marked, deciding, options)]


def _contradicting_options(
    marked: Marked, deciding: Sequence[Mention], options: Mapping[str, str]
) -> Iterator[Mention]:
    """Other options whose texts precede a bare letter, as in ``It is on the left. (B)``.

    Each is a statement like that of the letter, and as firm.
    """
    for statement in deciding:
        if not statement.bare or statement.own:
            continue
        named = _named_before(marked, statement.position, options)
        if named.isdisjoint(statement.letters):
            for letter in named:
                yield replace(statement, letters=frozenset(letter))


def _named_before(marked: Marked, position: int, options: Mapping[str, str]) -> frozenset[str]:
    """The options whose texts, however short, are in the sentence before a letter on its line.

    The last 300 characters before the letter are read at most.
    """
    text, words = marked.text, marked.words
    line_start = max(text.rfind("\n", 0, position) + 1, position - 300)
    start = line_start
    for sentence_end in words["sentence_ends"].finditer(text, line_start, position):
        if _has_words(text[sentence_end.end() : position]):
            start = sentence_end.end()
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
    """The labels that count; if all are of one option, also the mentions that may contradict it."""
    labels = _counting_labels(marked, mentions)
    if len(letters_of(labels)) != 1:
        return labels
    contradicting = [mention for mention in mentions if _may_contradict_label(mention, letters)]
    return [*labels, *contradicting]


def _counting_labels(marked: Marked, mentions: Sequence[Mention]) -> Sequence[Mention]:
    """The labels of a reply, or, without any, the options that it lists.

    Of a reply that breaks off, only a label at its start counts: it may still be the answer.
    """
    labels = [mention for mention in mentions if mention.rank == Rank.LABEL]
    if marked.unfinished:
        start = len(marked.text) - len(marked.text.lstrip(" ("))
        return [label for label in labels if label.position == start and not label.named]
    has_list = any(mention.rank == Rank.LISTED for mention in mentions)
    if not labels and has_list:
        return [mention for mention in mentions if mention.rank in _RANKS_OF_LISTS]
    return labels


def _may_contradict_label(mention: Mention, letters: str) -> bool:
    """Whether a mention names an option outside of lists, by its text or without a doubt."""
    is_option = mention.upper and not mention.letters.isdisjoint(letters)
    is_listed = mention.rank in _RANKS_OF_LISTS
    is_doubted = mention.weak and not mention.text
    return is_option and not is_listed and not is_doubted


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
        beside = _statements_beside(claim, marked, mentions, letters)
    labels: list[Mention] = []
    for statement in mentions:
        if statement.rank == Rank.LABEL and statement.position < 4 and statement.upper:
            labels.append(statement)
    return [*_outranking(claims), *beside, *labels]


def _statements_beside(
    claim: Mention, marked: Marked, mentions: Sequence[Mention], letters: str
) -> list[Mention]:
    """The statements in the same sentence as a claim, the claim included, that count with it."""
    start, end = _sentence_around(marked, claim.position)
    beside: list[Mention] = []
    for statement in mentions:
        if not start <= statement.position < end:
            continue
        is_option = not statement.letters.isdisjoint(letters)
        is_more_than_mention = statement.rank > Rank.MENTIONED
        if not is_option and not is_more_than_mention:
            continue
        if not _is_set_aside(statement, claim, marked):
            beside.append(statement)
    return beside


def _sentence_around(marked: Marked, position: int) -> tuple[int, int]:
    """Where the sentence that contains a position begins and where it ends."""
    sentence_ends = marked.words["sentence_ends"]
    start = 0
    for previous_end in sentence_ends.finditer(marked.text, 0, position):
        start = previous_end.end()
    next_end = sentence_ends.search(marked.text, position)
    end = len(marked.text) if next_end is None else next_end.start()
    return start, end


def _is_set_aside(statement: Mention, claim: Mention, marked: Marked) -> bool:
    """Whether *but* or a semicolon between a statement and a claim makes the claim alone count.

    Only a statement that is doubted, or that names more options than the claim, gives way to it.
    """
    names_more_options = claim.letters < statement.letters
    if not statement.weak and not names_more_options:
        return False
    first, last = sorted((statement.position, claim.position))
    return marked.words["parted"].search(marked.text, first, last) is not None


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
