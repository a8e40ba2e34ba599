"""The letters that a reply selects, from its claims and labels (rules in ``option_letter``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from medtasks.filters.claims import Claim, claims, has_ended, is_cut_off, is_reopened, retractions, sentence_of
from medtasks.filters.cues import Rank
from medtasks.filters.labels import label_letters, lone_claims
from medtasks.filters.mentions import letters_alone, mark_letters
from medtasks.filters.plain_text import own_turn, plain_text

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\ufe0f\ufeff]")
_SIGNS = str.maketrans(dict.fromkeys("✔✅☑√", "✓") | dict.fromkeys("✘❌✕✖☒🚫❎", "✗") | {"\r": "\n", "\u2028": "\n"})
_BOX = re.compile(r"^(?P<lead>[ \t]{0,8}(?:[-*+]|\d{1,2}[.)])?[ \t]{0,4})\[(?P<tick>[ xX])\](?=[ \t])", re.MULTILINE)
_ANSWER_TAG = re.compile(
    r"<\s{0,3}(?P<close>/)?\s{0,3}(?:conclusion|solution|response|output|choice|prediction|option)\s{0,3}>"
    r"|<\|(?P<side>begin|end)_of_(?:box|solution)\|>",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(?P<tag>s|del|strike)>[^<\n]{1,200}</(?P=tag)>", re.IGNORECASE)
_BREAK = re.compile(r"<br\s{0,2}/?>|</?(?:p|div|li|ul|ol|td|tr)>", re.IGNORECASE)
_KEY = re.compile(
    r"(?:(?<=[{,\[])|^)\s{0,20}(?P<quote>[\"'])(?P<key>[^\W\d_][\w .-]{0,40})(?P=quote)\s{0,4}:\s{0,4}", re.MULTILINE
)
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|[_-]")
_Q = re.compile(r"\W{0,8}Q\d{0,2}[ \t]?[:.]")
_A = re.compile(r"(?<![A-Za-z0-9])A\d{0,2}(?=[ \t]?:)")
_NEXT_TURN = re.compile(r"^[^\w\n]{0,6}(?:user|human|question|q|instruction)\s{0,2}\d{0,3}[ \t]?:", re.I | re.M)
_SECTION = re.compile(
    r"^[^\w\n]{0,6}(?:\d{1,2}[.)][ \t]?)?(?:(?:the|my)[ \t])?"
    r"(?:final[ \t](?:response|answer|verdict|decision|conclusion|diagnosis|choice|selection)"
    r"|conclusion|answer|(?:最终)?(?:结论|答案)|回答)[^\w\n]{0,6}\n",
    re.IGNORECASE | re.MULTILINE,
)


def selected_letters(reply: str, letters: str) -> frozenset[str] | None:
    """The letters that a reply without thinking selects, options or not; None if it is empty."""
    plain = _normalised(reply)
    if not plain:
        return None
    next_turn = _NEXT_TURN.search(plain, 1)
    if next_turn:  # the model went on to write the next question
        found = _under_headings(plain[: next_turn.start()], letters)
        if found:
            return found
    return _under_headings(plain, letters)


def _normalised(reply: str) -> str:
    """The model's own turn as plain text, in which JSON keys, answer tags and checked boxes are words and signs."""
    text = _INVISIBLE.sub("", own_turn(reply)).translate(_SIGNS)
    text = _ANSWER_TAG.sub(lambda tag: "\n" if tag["close"] or tag["side"] == "end" else "\nfinal answer: ", text)
    text = _A.sub("Answer", _STRUCK.sub("", text), count=1) if _Q.match(text) else _STRUCK.sub("", text)
    text = _BOX.sub(lambda box: f"{box['lead']}{'✗' if box['tick'] == ' ' else '✓'}", text)
    text = _KEY.sub(lambda key: f"\n{_WORDS.sub(' ', key['key'])}: ", _BREAK.sub("\n", text))
    return plain_text(text)


def _under_headings(plain: str, letters: str) -> frozenset[str]:
    """The letters selected in ``plain``, under its last heading with *answer* if there are any."""
    alone = letters_alone(plain)
    if alone:
        return alone
    for section in reversed(list(_SECTION.finditer(plain))[-3:]):
        found = _claimed(plain[section.end() :], letters)
        if found:
            return found
    return _claimed(plain, letters)


def _claimed(plain: str, letters: str) -> frozenset[str]:
    marked = mark_letters(plain)
    found = sorted([*claims(marked), *lone_claims(marked)], key=lambda claim: claim.position)
    firm = [claim for claim in found if claim.rank >= Rank.STATED]
    if firm:
        taken_back = retractions(marked.text)
        firm = _upheld(firm, taken_back)
        last = firm[-1].position
        if is_reopened(marked.text, last):
            return frozenset()
        doubts = [claim for claim in found if claim.rank == Rank.TENTATIVE and claim.position > last]
        unclear = [one.letters for at, one in marked.mentions.items() if taken_back and at > taken_back[-1] > last]
        return _deciding([*firm, *doubts]).union(*unclear)
    if found and (is_cut_off(marked.text) or is_reopened(marked.text, found[-1].position)):
        return frozenset()
    if found:
        start, end = sentence_of(marked.text, found[-1].position)
        whole = found[-1].rank == Rank.TENTATIVE
        beside = [one.letters for at, one in marked.mentions.items() if whole or start <= at < end]
        return _deciding(found).union(*beside)
    if retractions(marked.text) and not has_ended(marked.text):
        return frozenset()
    return label_letters(marked, letters)


def _upheld(firm: Sequence[Claim], taken_back: Sequence[int]) -> list[Claim]:
    """The claims that are not taken back: those after the last retraction that a claim follows."""
    for position in reversed(taken_back):
        behind = [claim for claim in firm if claim.position > position]
        if behind:
            return behind
    return list(firm)


def _deciding(found: Sequence[Claim]) -> frozenset[str]:
    last = found[-1]
    others = [claim for claim in found if claim.letters != last.letters]
    if all(one.rank < last.rank or (one.rank == last.rank and last.letters < one.letters) for one in others):
        return last.letters
    return frozenset[str]().union(*(claim.letters for claim in found))
