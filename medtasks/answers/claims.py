"""Claims: mentions that words, signs or a tick call the answer, and how firmly they do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from medtasks.answers.mentions import Marked
from medtasks.answers.vocabulary import DENIED, MARK, Claim, Rank, Vocabulary

REACH = 200
"""Characters around a mention in which words say something about it."""
_REACH_AFTER = 160
"""Characters after a claim in which words may take it back."""


@dataclass(frozen=True)
class Called:
    """How firmly a mention is called the answer, and the letters that its claim names."""

    rank: Rank
    letters: frozenset[str]


def claimed(marked: Marked) -> dict[int, Called]:
    """The mentions that words or a tick call the answer, by position."""
    ranks: dict[int, Rank] = {}
    paired_letters: dict[int, frozenset[str]] = {}
    for claim in marked.words.claims:
        for match in claim.pattern.finditer(marked.text):
            position = match.start("letter")
            if _is_enumerated(marked, position) or _is_quoted(marked, match.start(), position):
                continue
            pair = _paired(marked, match)
            if pair is not None:
                paired_letters[position] = marked.mentions[pair].letters
            if _is_prose(marked, claim, position):
                continue
            rank = _rank_of(marked, claim, match)
            if rank is not None:
                ranks[position] = max(rank, ranks.get(position, rank))
    for position in _ticked_positions(marked):
        ranks[position] = Rank.ANSWER
    called: dict[int, Called] = {}
    for position, rank in ranks.items():
        letters = _with_others(marked, position, ranks)
        called[position] = Called(rank, letters | paired_letters.get(position, frozenset()))
    return called


def _ticked_positions(marked: Marked) -> list[int]:
    """The positions of capital letters with a tick."""
    positions = []
    for match in marked.words["ticked"].finditer(marked.text):
        position = match.start(match.lastgroup or 0)
        if marked.mentions[position].upper:
            positions.append(position)
    return positions


def _is_enumerated(marked: Marked, position: int) -> bool:
    """Whether a mention is one of a list, as in "Choose one: A. Polyp B. Adenoma"."""
    text, words = marked.text, marked.words
    is_first = words["enumerated"].match(text, position + 1) is not None
    return is_first or words["in_row"].search(text, max(0, position - 12), position) is not None


def _paired(marked: Marked, match: re.Match[str]) -> int | None:
    """The mention that a claim is paired with, as in "between answer A and answer D"."""
    text, words = marked.text, marked.words
    start = match.start()
    pair = words["paired"].search(text, max(0, start - REACH), start)
    if pair is None or words["copula"].search(text, start, match.start("letter")):
        return None
    return pair.start()


def _is_prose(marked: Marked, claim: Claim, position: int) -> bool:
    """Whether the words of a claim may mean something else here."""
    mention = marked.mentions[position]
    if claim.loose:
        if not mention.upper:
            return True
        if marked.is_last(position) and not mention.closed and marked.follows_sentence(position):
            return True  # it may be cut off
    return claim.rank == Rank.IMPLIED and (mention.text or len(mention.letters) > 1)


def _rank_of(marked: Marked, claim: Claim, match: re.Match[str]) -> Rank | None:
    """The rank of a claim where it is made; None if words around it take it back."""
    position = match.start("letter")
    rank = _weighed(marked.words, claim.rank, _claim_in_sentence(marked, match))
    if rank is None or rank < Rank.ANSWER or not marked.mentions[position].text:
        return rank
    ends_line = marked.words["ends_line"].match(marked.text, position + 1)
    return Rank.FINAL if ends_line else Rank.ANSWER


@dataclass(frozen=True)
class _SentenceOfClaim:
    """A sentence with a claim, in parts: ``before`` the claim, its ``label`` up to the letter, the
    rest of the claim ``behind`` the letter, and what comes ``after`` the claim.

    ``signed``: a sign, such as a colon, is between the label and the letter.
    """

    before: str
    label: str
    behind: str
    after: str
    signed: bool

    @property
    def claim(self) -> str:
        """The claim, with the mark of its letter."""
        return f"{self.label}{MARK}{self.behind}"


def _claim_in_sentence(marked: Marked, match: re.Match[str]) -> _SentenceOfClaim:
    """The parts of the sentence around the match of a claim."""
    text = marked.text
    start, position, end = match.start(), match.start("letter"), match.end()
    before = ""
    sentence_end = marked.words["sentence_ends"].match(text, start)
    if sentence_end:  # the claim begins its sentence
        start = sentence_end.end()
    else:
        before = sentence_before(marked, start)
    return _SentenceOfClaim(
        before=before,
        label=text[start:position],
        behind=text[position + 1 : end],
        after=text[end : end + _REACH_AFTER],
        signed=bool(match.groupdict().get("sign")),
    )


@lru_cache(maxsize=4096)  # a model that loops repeats its claims
def _weighed(words: Vocabulary, rank: Rank, sentence: _SentenceOfClaim) -> Rank | None:
    """The rank of a claim in its sentence, given the ``rank`` of its words.

    None if a condition, a doubt, a question or a negation takes the claim back.
    """
    claim = sentence.claim
    if words["provided"].match(words["forced"].sub("", sentence.after[:100])):
        return None
    before_letter = words["forced"].sub("", sentence.before + sentence.label)
    doubted = words["doubts"].search(before_letter) is not None
    if sentence.signed and not doubted:
        rank_of_label = _rank_of_label(words, sentence)
        if rank_of_label is not None:
            return rank_of_label
    clause = _clause_up_to_letter(words, sentence)
    if doubted or _is_taken_back(words, rank, clause, sentence):
        return None
    guessed = rank <= Rank.STATED and words["guesses"].search(clause + claim)
    if words["final"].match(claim) and not guessed:
        return Rank.FINAL
    if words["concludes"].search(before_letter) and rank >= Rank.SUGGESTED:
        return Rank.CONCLUDED
    return Rank.TENTATIVE if guessed else rank


def _rank_of_label(words: Vocabulary, sentence: _SentenceOfClaim) -> Rank | None:
    """The rank of a label such as ``Answer:`` at the start of a sentence, or of one that says
    *final* anywhere; None for any other claim.
    """
    if words["final"].search(sentence.claim):
        return Rank.FINAL
    only_markup = not sentence.before.strip(" \t*_#>-•\"'({[|")
    if only_markup or words["concludes"].fullmatch(sentence.before.strip(" \t,")):
        return Rank.ANSWER
    return None


def _clause_up_to_letter(words: Vocabulary, sentence: _SentenceOfClaim) -> str:
    """The clause of a claim up to its letter; empty behind a denied letter (``not A but B``)."""
    label = sentence.label
    if label.startswith(DENIED):
        return ""
    if label.startswith((";", ",", "→", "⇒", "=")):
        return label
    return words["clause_ends"].split(sentence.before)[-1] + label


def _is_taken_back(words: Vocabulary, rank: Rank, clause: str, sentence: _SentenceOfClaim) -> bool:
    """Whether words of the sentence discredit, question, weaken or contrast the claim."""
    claim, after = sentence.claim, sentence.after
    behind_letter = sentence.behind + after
    if words["discredits"].search(clause):
        return True
    if words["question"].match(behind_letter) or words["hypothetical"].match(behind_letter):
        return True
    if rank == Rank.IMPLIED:
        up_to_turn = sentence.before + claim + words["turns"].split(after)[0]
        if words["weakens"].search(up_to_turn):
            return True
    is_qualified = rank <= Rank.SUGGESTED or words["qualifies"].search(clause + claim)
    return bool(is_qualified and words["but"].match(after))


def _is_quoted(marked: Marked, start: int, position: int) -> bool:
    """Whether a claim is quoted in a sentence of other words, so that it is somebody else's."""
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
