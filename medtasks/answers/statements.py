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
    listed = listed_positions(marked, labels)
    lone = lone_letters(marked, listed)
    found: list[Mention] = []
    for at, mention in marked.mentions.items():
        rank = Rank.LABEL if at in labels else Rank.MENTIONED
        if at in listed:
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
        found.append(statement)
    return found


def weakened(marked: Marked, found: Iterable[Mention]) -> list[Mention]:
    """The same statements; those that words around them deny, doubt or compare are ``weak`` and no
    labels.
    """
    weighed: list[Mention] = []
    for statement in found:
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


def left_over(marked: Marked, found: Sequence[Mention], letters: str) -> Mention | None:
    """The letter that is implied to be the answer: no other one is named without a denial, a doubt
    or a comparison.

    If nothing calls it the answer, all others are named, or none and its text is beside it, or it
    ends the response and some are named. Others may be open in earlier sentences if it is in bold
    in the last paragraph, or the last words imply it.
    """
    declared, words, text = frozenset(letters), marked.words, marked.text
    listed = [one for one in found if one.rank in (Rank.REPEATED, Rank.LISTED)]
    weak = marked.denied | letters_of(one for one in found if one.weak and one.upper)
    able = [one for one in found if one.upper and not one.weak and one not in listed]
    if listed and listed[-1] is found[-1] and weak >= declared - listed[-1].letters:
        able.append(listed[-1])
    if not able or marked.cut_off or words["undecided"].search(text):
        return None
    implied = [one for one in able if one.rank == Rank.IMPLIED]
    last = (implied or [one for one in able if not one.text] or able)[-1]
    if (
        len(last.letters) != 1
        or last.rank == Rank.TENTATIVE
        or last.text
        or last.letters & marked.denied
    ):
        return None
    if words["but"].match(text, last.position + 1):
        return None
    others = letters_of(one for one in able if not last.letters <= one.letters) & declared
    alone = weak | others | letters_of(listed) <= last.letters
    if not others and (
        implied or weak | last.letters >= declared or (alone and not weak and last.own)
    ):
        return last
    if (
        last is not able[-1]
        or not last.letters <= declared
        or "\n\n" in text[last.position :].strip()
    ):
        return None
    if not last.bold and (alone or last.letters & weak):
        return None
    alike = any(last.bracketed and one.bracketed and one.letters != last.letters for one in found)
    if words["closes"].match(text, last.position + 1) and not others and not alike:
        return last
    ends = [end.end() for end in words["sentence_ends"].finditer(text, 0, len(text.rstrip()) - 1)]
    start = max((end for end in ends if end <= last.position), default=0)
    if text[:start].endswith("\n"):  # the line above counts, too
        start = text.rfind("\n", 0, start - 1) + 1
    if any(one.position >= start and not last.letters <= one.letters for one in found):
        return None
    closing = last.rank == Rank.IMPLIED and max(ends, default=0) <= last.position
    return last if last.bold or closing else None


def letters_of(found: Iterable[Mention]) -> frozenset[str]:
    """The letters that any of the statements names."""
    return frozenset[str]().union(*(one.letters for one in found))


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
