"""The statements of a response: every mention with the rank that the words and signs around it
give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from medtasks.answers.claims import REACH, claimed
from medtasks.answers.labels import label_positions, listed_positions, lone_letters
from medtasks.answers.mentions import Marked, Mention
from medtasks.answers.vocabulary import DENIED, Rank, Vocabulary


def statements(marked: Marked, letters: str) -> list[Mention]:
    """Every mention as a statement, in order."""
    claims = claimed(marked)
    labels = label_positions(marked, letters)
    listed_places = listed_positions(marked, labels)
    lone = lone_letters(marked, listed_places)
    mentions: list[Mention] = []
    for at, mention in marked.mentions.items():
        rank = Rank.LABEL if at in labels else Rank.MENTIONED
        if at in listed_places:
            rank = Rank.LISTED if at in labels else Rank.REPEATED
        named = mention.letters
        if at in claims:
            rank, named = claims[at].rank, claims[at].letters
        statement = replace(
            mention,
            letters=named,
            position=at,
            rank=max(rank, lone.get(at, rank)),
            bare=at not in claims,
            heads=labels.get(at, False),
        )
        mentions.append(statement)
    return mentions


def weakened(marked: Marked, mentions: Iterable[Mention]) -> list[Mention]:
    """The same statements; those that words around them deny, doubt or compare are ``weak`` and no
    labels.
    """
    weighed: list[Mention] = []
    for statement in mentions:
        previous = weighed[-1] if weighed else None
        if _is_weakened(marked, statement, previous):
            rank = statement.rank
            if rank in (Rank.LISTED, Rank.LABEL, Rank.IMPLIED) and len(statement.letters) == 1:
                rank = Rank.MENTIONED
            statement = replace(statement, weak=True, rank=rank)
        weighed.append(statement)
    return weighed


def _is_weakened(marked: Marked, statement: Mention, previous: Mention | None) -> bool:
    """Whether words around a statement without a claim deny, doubt or compare it, or it is joined
    with the ``previous`` one, which is weak.
    """
    if not statement.bare or statement.heads:
        return False
    text, words, at = marked.text, marked.words, statement.position
    if previous is not None and previous.weak:
        only_conjunction = words["joined"].fullmatch(text, previous.position + 1, at)
        if only_conjunction:
            return True
    return _clause_weakens(words, text[max(0, at - REACH) : at], text[at + 1 : at + REACH])


def left_over(marked: Marked, mentions: Sequence[Mention], letters: str) -> Mention | None:
    """The letter that is implied to be the answer: no other one is named without a denial, a doubt
    or a comparison.

    If nothing calls it the answer, all others are named, or none and its text is beside it, or it
    ends the response and some are named. Others may be open in earlier sentences if it is in bold
    in the last paragraph, or the last words imply it.
    """
    declared = frozenset(letters)
    listed_mentions = [
        statement for statement in mentions if statement.rank in (Rank.REPEATED, Rank.LISTED)
    ]
    weak = marked.denied | letters_of(
        mention for mention in mentions if mention.weak and mention.upper
    )
    able = _able(mentions, listed_mentions, weak, declared)
    if not able or marked.cut_off or marked.words["undecided"].search(marked.text):
        return None
    implied = [statement for statement in able if statement.rank == Rank.IMPLIED]
    by_letter = [statement for statement in able if not statement.text]
    last = (implied or by_letter or able)[-1]
    if not _may_be_answer(marked, last):
        return None
    other_letters = (
        letters_of(mention for mention in able if not last.letters <= mention.letters) & declared
    )
    alone = weak | other_letters | letters_of(listed_mentions) <= last.letters
    if not other_letters:
        all_others_weak = weak | last.letters >= declared
        named_with_text = alone and not weak and last.own
        if implied or all_others_weak or named_with_text:
            return last
    in_last_paragraph = "\n\n" not in marked.text[last.position :].strip()
    if last is not able[-1] or not last.letters <= declared or not in_last_paragraph:
        return None
    if not last.bold and (alone or last.letters & weak):
        return None
    if not other_letters and _closes(marked, last, mentions):
        return last
    return last if _is_last_word(marked, last, mentions) else None


def _able(
    mentions: Sequence[Mention],
    listed_mentions: Sequence[Mention],
    weak: frozenset[str],
    declared: frozenset[str],
) -> list[Mention]:
    """The statements that may name the answer; of a list, only its end if all else is weak."""
    able: list[Mention] = []
    for statement in mentions:
        if statement.upper and not statement.weak and statement not in listed_mentions:
            able.append(statement)
    if (
        listed_mentions
        and listed_mentions[-1] is mentions[-1]
        and weak >= declared - listed_mentions[-1].letters
    ):
        able.append(listed_mentions[-1])
    return able


def _may_be_answer(marked: Marked, statement: Mention) -> bool:
    """Whether it names one letter, undenied and without a doubt or a *but* after it."""
    if len(statement.letters) != 1 or statement.text or statement.rank == Rank.TENTATIVE:
        return False
    if statement.letters & marked.denied:
        return False
    return marked.words["but"].match(marked.text, statement.position + 1) is None


def _closes(marked: Marked, last: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether the text ends right after the letter, which is written unlike all others."""
    if not marked.words["closes"].match(marked.text, last.position + 1):
        return False
    bracketed = [statement for statement in mentions if statement.bracketed]
    return not last.bracketed or all(mention.letters == last.letters for mention in bracketed)


def _is_last_word(marked: Marked, last: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether the letter is in bold, or implied in the last sentence, with no other one beside
    it.
    """
    text = marked.text
    sentence_ends = marked.words["sentence_ends"].finditer(text, 0, len(text.rstrip()) - 1)
    ends = [end.end() for end in sentence_ends]
    start = max((end for end in ends if end <= last.position), default=0)
    if text[:start].endswith("\n"):  # the line above counts, too
        start = text.rfind("\n", 0, start - 1) + 1
    beside = [mention for mention in mentions if mention.position >= start]
    if not all(last.letters <= mention.letters for mention in beside):
        return False
    in_last_sentence = max(ends, default=0) <= last.position
    return last.bold or (last.rank == Rank.IMPLIED and in_last_sentence)


def letters_of(mentions: Iterable[Mention]) -> frozenset[str]:
    """The letters that any of the statements names."""
    letters: set[str] = set()
    for statement in mentions:
        letters |= statement.letters
    return frozenset(letters)


@lru_cache(maxsize=4096)
def _clause_weakens(words: Vocabulary, before: str, after: str) -> bool:
    """Whether the clause around a letter denies, doubts or compares something; after a label its
    whole line does.
    """
    turn = words["line_turns" if words["line_start"].search(before[-20:]) else "turns"].search(
        after
    )
    clause = after[: turn.start() + 1] if turn else after
    if clause.endswith(DENIED):  # "D rather than A"
        clause = words["denied_before"].sub("", clause[:-1])
    return any(map(words["weakens"].search, (words["turns"].split(before)[-1], clause)))
