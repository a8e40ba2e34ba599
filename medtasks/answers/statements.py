"""The statements of a response: every mention with the rank that the words and signs around it
give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    """The statements, of which those that words around them deny, doubt or compare are ``weak``.

    A weak statement of one letter is no longer a label or implied, only a mention.
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
    """The letter that is left as the answer although no words call it that; None without one.

    No other letter may be named without a denial, a doubt or a comparison. In addition, words must
    imply the letter, or all others must be named, or none of them and its text is beside it, or it
    ends the response and some are named. Others may be open in earlier sentences if the letter is
    in bold in the last paragraph, or the last words imply it.
    """
    if marked.cut_off or marked.words["undecided"].search(marked.text):
        return None
    declared = frozenset(letters)
    contest = _contest(marked, mentions, declared)
    if contest is None or not _may_be_answer(marked, contest.last):
        return None
    if _wins_by_exclusion(contest, declared) or _wins_at_end(marked, mentions, contest, declared):
        return contest.last
    return None


@dataclass(frozen=True)
class _Contest:
    """The ``last`` letter that may be the answer, and what else a response names.

    ``rivals``: other letters that may be the answer; ``weak``: letters that are denied, doubted or
    compared; ``alone``: no other letter is named, not even in a list; ``ends``: no letter that may
    be the answer follows.
    """

    last: Mention
    rivals: frozenset[str]
    weak: frozenset[str]
    alone: bool
    ends: bool


def _contest(
    marked: Marked, mentions: Sequence[Mention], declared: frozenset[str]
) -> _Contest | None:
    """The contest for the answer; None if no letter may be it.

    An implied letter goes before the others, and a letter before an option's text.
    """
    in_list = [
        statement for statement in mentions if statement.rank in (Rank.REPEATED, Rank.LISTED)
    ]
    weak = marked.denied | letters_of(
        mention for mention in mentions if mention.weak and mention.upper
    )
    contenders = _contenders(mentions, in_list, weak, declared)
    if not contenders:
        return None
    implied = [statement for statement in contenders if statement.rank == Rank.IMPLIED]
    by_letter = [statement for statement in contenders if not statement.text]
    last = (implied or by_letter or contenders)[-1]
    differing = [statement for statement in contenders if not last.letters <= statement.letters]
    rivals = declared & letters_of(differing)
    named = weak | rivals | letters_of(in_list)
    return _Contest(last, rivals, weak, alone=named <= last.letters, ends=last is contenders[-1])


def _wins_by_exclusion(contest: _Contest, declared: frozenset[str]) -> bool:
    """Whether a letter without rivals is implied, or all others are weak, or it is named alone with
    its text.
    """
    last, weak = contest.last, contest.weak
    if contest.rivals:
        return False
    if last.rank == Rank.IMPLIED or weak | last.letters >= declared:
        return True
    return contest.alone and not weak and last.own


def _wins_at_end(
    marked: Marked, mentions: Sequence[Mention], contest: _Contest, declared: frozenset[str]
) -> bool:
    """Whether a letter in the last paragraph closes the response or is its last word."""
    last = contest.last
    in_last_paragraph = "\n\n" not in marked.text[last.position :].strip()
    if not contest.ends or not last.letters <= declared or not in_last_paragraph:
        return False
    if not last.bold and (contest.alone or last.letters & contest.weak):
        return False
    if not contest.rivals and _closes(marked, last, mentions):
        return True
    return _is_last_word(marked, last, mentions)


def _contenders(
    mentions: Sequence[Mention],
    in_list: Sequence[Mention],
    weak: frozenset[str],
    declared: frozenset[str],
) -> list[Mention]:
    """The statements that may name the answer.

    They are capitals that are neither weak nor in a list; and the end of a list with which the
    response ends, if all other letters are weak.
    """
    contenders: list[Mention] = []
    for statement in mentions:
        if statement.upper and not statement.weak and statement not in in_list:
            contenders.append(statement)
    if in_list:
        end_of_list = in_list[-1]
        others_are_weak = declared - end_of_list.letters <= weak
        if end_of_list is mentions[-1] and others_are_weak:
            contenders.append(end_of_list)
    return contenders


def _may_be_answer(marked: Marked, statement: Mention) -> bool:
    """Whether a statement names one letter, undenied and without a doubt or a *but* after it."""
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
    """Whether the letter is in bold, or implied in the last sentence, and no other letter is named
    from the beginning of its sentence on.
    """
    text = marked.text
    sentence_ends = marked.words["sentence_ends"].finditer(text, 0, len(text.rstrip()) - 1)
    starts = [0, *(sentence_end.end() for sentence_end in sentence_ends)]
    start = max(start for start in starts if start <= last.position)
    if text[:start].endswith("\n"):  # the line above counts, too
        start = text.rfind("\n", 0, start - 1) + 1
    for mention in mentions:
        if mention.position >= start and not last.letters <= mention.letters:
            return False
    in_last_sentence = starts[-1] <= last.position
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
    is_label = words["line_start"].search(before[-20:])
    turn = words["line_turns" if is_label else "turns"].search(after)
    clause_after = after[: turn.start() + 1] if turn else after
    if clause_after.endswith(DENIED):  # "D rather than A"
        clause_after = words["denied_before"].sub("", clause_after[:-1])
    clause_before = words["turns"].split(before)[-1]
    weakens = words["weakens"].search
    return bool(weakens(clause_before) or weakens(clause_after))
