"""Letters that are labels, that list the options, or that stand alone in their line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from medtasks.answers.claims import sentence_before
from medtasks.answers.mentions import Marked
from medtasks.answers.vocabulary import DENIED, MARK, Rank


def lone_letters(marked: Marked, listed_places: frozenset[int]) -> dict[int, Rank]:
    """The ranks of a letter that is the whole first line, last line or last sentence."""
    text, words = marked.text, marked.words
    ranks: dict[int, Rank] = {}
    last = words["last_line"].search(text)
    if last and _concludes(marked, last):
        ranks[last.start("letter")] = Rank.CONCLUDED
    first = words["first_line"].search(text)
    if first:
        mention, *below = marked.mentions.values()
        is_repeated = any(later.letters == mention.letters for later in below)
        may_head_list = mention.own or is_repeated
        if not may_head_list or not words["listed_below"].match(text, first.end()):
            ranks[first.start("letter")] = Rank.ANSWER
    return {at: rank for at, rank in ranks.items() if at not in listed_places}


def _concludes(marked: Marked, last: re.Match[str]) -> bool:
    """Whether the letter of the last line, or of the last sentence, is a conclusion."""
    at = last.start("letter")
    if last[0].startswith("\n"):
        return not _begins_list(marked, at)
    mention = marked.mentions[at]
    return marked.ended or mention.own or (mention.bracketed and not mention.named)


def _begins_list(marked: Marked, position: int) -> bool:
    """Whether the letter at the end only begins a list, or the next line of one.

    Words that open a list (``Options:``) are looked for in all of the text above the letter, then
    in the last sentence above it; a question or a labelled line right above it opens one, too.
    """
    words = marked.words
    before = marked.text[:position].rstrip(" \t([\"'→>")
    is_below_blank_line = before.endswith("\n\n")
    *_, since_opener = words["opener"].split(before)
    has_opener = since_opener not in ("", before)
    if has_opener and MARK not in since_opener and DENIED not in since_opener:
        if not is_below_blank_line:
            return True
        has_words_between = since_opener.strip(" .:*\n") != ""
        return not marked.mentions[position].bracketed and not has_words_between
    line_above = before.rstrip("\n").rpartition("\n")[2]
    last_sentence = words["sentence_ends"].split(line_above)[-1].lstrip()
    if words["opener"].search(last_sentence):  # "The answer is B. Options:"
        return True
    is_labelled = words["labelled_line"].match(line_above) is not None
    return not is_below_blank_line and (line_above.endswith("?") or is_labelled)


def label_positions(marked: Marked, letters: str) -> dict[int, bool]:
    """Positions of letters that are only labels, at the start of a line (True) or elsewhere.

    Elsewhere they are joined, or end a sentence in brackets, after a sign or with their text, alone
    on the line. A line that denies an option ends the labels of lines: below it options are
    weighed. Roman numerals are labels only if they are among ``letters`` and not in a list of
    numerals.
    """
    labels = dict.fromkeys(_labels_at_ends(marked, letters), False)
    if not marked.cut_off:
        for at, mention in marked.mentions.items():
            if len(mention.letters) > 1 and mention.upper:
                labels[at] = False
    labels |= dict.fromkeys(_labels_of_lines(marked, letters), True)
    return labels


def _labels_at_ends(marked: Marked, letters: str) -> Iterator[int]:
    """Letters that end a sentence without a claim, alone on their lines."""
    text, words = marked.text, marked.words
    for match in words["at_end"].finditer(text):
        at = match.start("bracketed" if match["bracketed"] else "apart")
        mention = marked.mentions[at]
        start = max(text.rfind("\n", 0, at) + 1, at - 300)
        is_denied = DENIED in text[start:at] and not match["apart"]
        if mention.text or is_denied or _has_other_option(marked, start, at, letters):
            continue
        if match["bracketed"]:
            if mention.bracketed or mention.own:
                yield at
            continue
        sentence = sentence_before(marked, match.start())
        taken_back = words["doubts"].search(sentence) or words["discredits"].search(sentence)
        closed = match["stop"] or mention.closed or not marked.follows_sentence(at)
        if mention.upper and closed and not taken_back:
            yield at


def _has_other_option(marked: Marked, start: int, at: int, letters: str) -> bool:
    """Whether another option is mentioned between ``start`` and the mention at ``at``."""
    own = marked.mentions[at].letters
    for place in range(start, at):
        if marked.text[place] == MARK:
            named = marked.mentions[place].letters
            if named != own and named & set(letters):
                return True
    return False


def _labels_of_lines(marked: Marked, letters: str) -> Iterator[int]:
    """Letters at the start of a line, above a line that denies an option."""
    text, words = marked.text, marked.words
    numerals = frozenset("IVX")
    if not words["roman_list"].search(text):
        numerals -= frozenset(letters)
    denied = words["denied_label"].search(text)
    end = denied.start() if denied else len(text)
    for match in words["label"].finditer(text, 0, end):
        at = match.start("letter")
        mention = marked.mentions[at]
        if words["discussed"].match(text, at + 1) and not words["labelled_line"].match(text):
            continue
        if match["lead"].strip("\n") and at > 12 and marked.is_last(at):
            continue  # "1. A" at the end is the beginning of a line
        closed = mention.closed and not mention.named and not mention.own
        is_signed = match["sign"] is not None or closed
        if is_signed and not mention.text and not mention.letters <= numerals:
            yield at


def listed_positions(marked: Marked, labels: dict[int, bool]) -> frozenset[int]:
    """Positions of mentions that list the options A, B, C, … in this order.

    Two labels of lines are a list, or three mentions of any kind. After a first list two mentions
    are enough: a model that repeats the list may be cut off.
    """
    labels_of_lines = sorted(at for at in labels if labels[at])
    all_mentions = sorted(marked.mentions)
    listed_places: set[int] = set()
    for positions, shortest in ((labels_of_lines, 2), (all_mentions, 3)):
        for run in _alphabetical_runs(marked, positions):
            least = 2 if listed_places else shortest
            if len(run) >= least and not _is_answer_and_prose(marked, labels, run):
                listed_places.update(run)
    return frozenset(listed_places)


def _alphabetical_runs(marked: Marked, positions: Sequence[int]) -> Iterator[list[int]]:
    """The longest runs of successive ``positions`` whose mentions are A, B, C, …"""
    run: list[int] = []
    for at in positions:
        letters = marked.mentions[at].letters
        next_letter = chr(ord("A") + len(run))
        if letters == {next_letter}:
            run.append(at)
            continue
        if run:
            yield run
        run = [at] if letters == {"A"} else []
    if run:
        yield run


def _is_answer_and_prose(marked: Marked, labels: dict[int, bool], run: Sequence[int]) -> bool:
    """Whether a run is an answer at the beginning of the text, and prose that compares the others:
    ``A. …; B would be …, and C …``.
    """
    first, *later = run
    begins_text = first < 4 and first in labels and labels[first]
    return begins_text and not any(_is_signed(marked, labels, at) for at in later)


def _is_signed(marked: Marked, labels: dict[int, bool], at: int) -> bool:
    """Whether a mention looks like a label of a list."""
    mention = marked.mentions[at]
    closed = mention.closed and not mention.bold
    return labels.get(at, False) or closed or marked.text.startswith((".", ":", ")"), at + 1)
