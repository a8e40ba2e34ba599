"""Claims: mentions that words, signs or a tick call the answer, and how firmly they do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from medtasks.answers.mentions import Marked
from medtasks.answers.vocabulary import DENIED, MARK, Claim, Rank, Vocabulary

REACH = 200
"""Characters around a mention in which words say something about it."""


@dataclass(frozen=True)
class Called:
    """How firmly a mention is called the answer, and the letters that its claim names."""

    rank: Rank
    letters: frozenset[str]


def claimed(marked: Marked) -> dict[int, Called]:
    """The mentions that words or a tick call the answer, by position."""
    ranks: dict[int, Rank] = {}
    beside: dict[int, frozenset[str]] = {}
    for claim in marked.words.claims:
        for match in claim.pattern.finditer(marked.text):
            at = match.start("letter")
            if _is_enumerated(marked, at) or _is_quoted(marked, match.start(), at):
                continue
            pair = _paired(marked, match)
            if pair is not None:
                beside[at] = marked.mentions[pair].letters
            if _is_prose(marked, claim, at):
                continue
            rank = _rank_of(marked, claim, match)
            if rank is not None:
                ranks[at] = max(rank, ranks.get(at, rank))
    for match in marked.words["ticked"].finditer(marked.text):
        at = match.start(match.lastgroup or 0)
        if marked.mentions[at].upper:
            ranks[at] = Rank.ANSWER
    called: dict[int, Called] = {}
    for at, rank in ranks.items():
        letters = _with_others(marked, at, ranks) | beside.get(at, frozenset())
        called[at] = Called(rank, letters)
    return called


def _is_enumerated(marked: Marked, at: int) -> bool:
    """Whether a mention is one of a list, as in "Choose one: A. Polyp B. Adenoma"."""
    text, words = marked.text, marked.words
    is_first = words["enumerated"].match(text, at + 1) is not None
    return is_first or words["in_row"].search(text, max(0, at - 12), at) is not None


def _paired(marked: Marked, match: re.Match[str]) -> int | None:
    """The mention that a claim is paired with, as in "between answer A and answer D"."""
    text, words = marked.text, marked.words
    start = match.start()
    pair = words["paired"].search(text, max(0, start - REACH), start)
    if pair is None or words["copula"].search(text, start, match.start("letter")):
        return None
    return pair.start()


def _is_prose(marked: Marked, claim: Claim, at: int) -> bool:
    """Whether the words of a claim may mean something else here."""
    mention = marked.mentions[at]
    if claim.loose:
        if not mention.upper:
            return True
        if marked.is_last(at) and not mention.closed and marked.follows_sentence(at):
            return True  # it may be cut off
    return claim.rank == Rank.IMPLIED and (mention.text or len(mention.letters) > 1)


def _rank_of(marked: Marked, claim: Claim, match: re.Match[str]) -> Rank | None:
    """The rank of a claim where it is made; None if words around it take it back."""
    text, words = marked.text, marked.words
    at = match.start("letter")
    start = match.start()
    before = ""
    stop = words["sentence_ends"].match(text, start)
    if stop:
        start = stop.end()
    else:
        before = sentence_before(marked, start)
    rank = _weighed(
        words,
        claim.rank,
        before,
        text[start:at],
        text[at + 1 : match.end()],
        text[match.end() : match.end() + 160],
        bool(match.groupdict().get("sign")),
    )
    if rank is None or rank < Rank.ANSWER or not marked.mentions[at].text:
        return rank
    return Rank.FINAL if words["ends_line"].match(text, at + 1) else Rank.ANSWER


@lru_cache(maxsize=4096)  # a model that loops repeats its claims
def _weighed(
    words: Vocabulary, rank: Rank, before: str, label: str, behind: str, after: str, is_label: bool
) -> Rank | None:
    """The rank of a claim that consists of ``label``, the letter and ``behind``, between two parts
    of its sentence.

    None if a condition, a question or a negation takes it back.
    """
    claim = f"{label}{MARK}{behind}"
    if words["provided"].match(words["forced"].sub("", after[:100])):
        return None
    before_claim = words["forced"].sub("", before + label)
    doubted = words["doubts"].search(before_claim)
    if is_label and not doubted:
        if words["final"].search(claim):
            return Rank.FINAL
        if not before.strip(" \t*_#>-•\"'({[|") or words["concludes"].fullmatch(
            before.strip(" \t,")
        ):
            return Rank.ANSWER
    if label.startswith(DENIED):  # "not A but B"
        clause = ""
    elif label.startswith((";", ",", "→", "⇒", "=")):
        clause = label
    else:
        clause = words["clause_ends"].split(before)[-1] + label
    if doubted or words["discredits"].search(clause):
        return None
    if words["question"].match(behind + after) or words["hypothetical"].match(behind + after):
        return None
    if rank == Rank.IMPLIED and words["weakens"].search(
        before + claim + words["turns"].split(after)[0]
    ):
        return None
    if (rank <= Rank.SUGGESTED or words["qualifies"].search(clause + claim)) and words["but"].match(
        after
    ):
        return None
    guessed = rank <= Rank.STATED and words["guesses"].search(clause + claim)
    if words["final"].match(claim) and not guessed:
        return Rank.FINAL
    if words["concludes"].search(before_claim) and rank >= Rank.SUGGESTED:
        return Rank.CONCLUDED
    return Rank.TENTATIVE if guessed else rank


def _is_quoted(marked: Marked, start: int, position: int) -> bool:
    """Whether a claim is within quotation marks in a sentence of other words: somebody else's
    claim.
    """
    text, words = marked.text, marked.words
    ends = words["quote_ends"].match(text, position + 1)
    if ends is None:
        return False
    while not text[start].isalnum() and start < position:
        start += 1
    before = text[max(text.rfind("\n", 0, start) + 1, start - 120) : start]
    return bool(
        words["quoted"].search(before) or (ends["more"] and words["quoted_first"].search(before))
    )


def _with_others(marked: Marked, position: int, ranks: dict[int, Rank]) -> frozenset[str]:
    """The letters of a claim, with those that "A … or" before or "or C" after it adds."""
    letters, words = marked.mentions[position].letters, marked.words
    start = max(0, position - 120)
    earlier = words["or_before"].search(marked.text[start:position])
    if earlier:
        letters |= marked.mentions[start + earlier.start("letter")].letters
    while True:
        beside = words["beside"].match(marked.text, position + 1)
        if beside is None or beside.start("letter") in ranks:
            return letters
        position = beside.start("letter")
        between = beside[0][:-1].strip()
        alone = between in (";", ",") or (not between and marked.mentions[position].bracketed)
        if not alone and not words["or"].search(between):
            return letters
        letters |= marked.mentions[position].letters


def sentence_before(marked: Marked, position: int) -> str:
    """The beginning, before ``position``, of the sentence that it is in."""
    before = marked.text[max(0, position - REACH) : position]
    return marked.words["sentence_ends"].split(before)[-1]
