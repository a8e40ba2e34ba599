"""Letters without a claim in the place of an answer: alone on a line, before an option's text, in a hedge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from medtasks.filters.claims import (
    Claim,
    follows_sentence,
    has_ended,
    is_cut_off,
    is_discredited,
    is_last,
    is_unfinished,
)
from medtasks.filters.cues import Rank
from medtasks.filters.mentions import DENIED, MARK, Marked

_NO_LETTER = rf"\w\n✗{MARK}{DENIED}"
_DECORATION = rf"[^{_NO_LETTER}]{{0,12}}"
_FIRST_LINE = re.compile(rf"\A{_DECORATION}(?:\d{{1,2}}[.)][ \t]{{0,2}})?{MARK}[^{_NO_LETTER}]{{0,8}}(?:\n|\Z)")
_LAST_LINE = re.compile(rf"(?:\n|[.!?。！？][ \t])[(\[\"'→>]{{0,3}}{MARK}[^:?{_NO_LETTER}]{{0,8}}\Z")
_LABEL = re.compile(
    rf"^(?P<lead>{_DECORATION}(?:\d{{1,2}}[.)][ \t]{{0,2}})?{_DECORATION})(?P<letter>{MARK})"
    r"(?P<sign>[ \t]{0,3}(?:$|[.:,;)\]|、。=>!?✓]|/[ \t]|[-–—→]|because|since|T\d"
    r"|\([^()\n]{0,80}\)[ \t]{0,3}(?:$|[.,:;!–—-])))?",
    re.MULTILINE,
)
_INLINE = re.compile(
    rf"(?:[,;|/(]|T\d)[^\S\n]{{0,2}}(?P<letter>{MARK})(?=[:.)=]|\s?[(→])|;[^\S\n](?P<second>{MARK})(?=,)"
    rf"|[.;,][^\S\n](?P<bracketed>{MARK})"
)
_LISTED_ON = re.compile(rf"(?<=\S)[^\S\n]{{1,3}}(?P<letter>{MARK})(?P<sign>[.:])?")
_AT_END = re.compile(
    rf"(?P<bracketed>{MARK})[ \t]{{0,2}}(?:$|[.!。](?:\s|$))"
    rf"|(?:(?<=\w[,:;])|(?<=\w [–—-]))[ \t]{{0,3}}(?P<apart>{MARK})[ \t]{{0,2}}(?P<stop>[.!。]?)[ \t]{{0,2}}$",
    re.MULTILINE,
)
_OPENER = re.compile(
    r"^(?![^\n]{0,200}\b(?:correct|best|answer|right|final|chosen|select\w*)\b)[^\n]{0,160}"
    r"\b(?:options?|choices?|each|one\s+by\s+one|step\s+by\s+step|candidates?)\b[^\n]{0,60}:[^\w\n]{0,4}$"
    r"|\b(?:analy[sz](?:e|ing)|evaluat(?:e|ing)|consider(?:ing)?|check(?:ing)?|examin(?:e|ing)|assess(?:ing)?"
    r"|compar(?:e|ing)|review(?:ing)?|through|at)\s(?:\w{1,12}\s){0,3}(?:options?|choices?|intervals?|candidates?)\b"
    r"|逐(?:一|个|项)分析|分析(?:各|每)?个?选项"
    r"|^[^\n]{0,120}\b(?:options?|choices?|letters?)\b[^\n]{0,120}\n[ \t:|-]{0,40}-{3,}[ \t:|-]{0,80}$",
    re.IGNORECASE | re.MULTILINE,
)
_HEADED = re.compile(
    r"\b(?:wrong|incorrect|excluded|eliminated|ruled\s+out|to\s+consider)\b[^\n]{0,40}:\s{0,4}[^\w\n]{0,8}$", re.I
)
_LABELLED_LINE = re.compile(rf"{_DECORATION}[{MARK}{DENIED}].")
_DENIED_LABEL = re.compile(rf"^{_DECORATION}{DENIED}", re.MULTILINE)
_ROMAN = frozenset("IVX")
_ROMAN_LIST = re.compile(r"^\W{0,6}I{2,3}[.):]", re.MULTILINE)


def lone_claims(marked: Marked) -> list[Claim]:
    """A letter that is the whole first line, last line or last sentence, and not part of a list."""
    text, listed = marked.text, _enumerating_labels(marked)
    found: dict[int, Rank] = {}
    last = _LAST_LINE.search(text)
    if last:
        at = text.index(MARK, last.start())
        own_line = last[0].startswith("\n")
        mention = marked.mentions[at]
        if not _begins_list(text, at) if own_line else has_ended(text) or (mention.bracketed and not mention.named):
            found[at] = Rank.CONCLUDED
    first = _FIRST_LINE.search(text)
    if first:
        found[text.index(MARK)] = Rank.ANSWER
    return [
        Claim(marked.mentions[at].letters, rank, at)
        for at, rank in found.items()
        if at not in listed and not is_discredited(text, at) and not _HEADED.search(text[max(0, at - 200) : at])
    ]


def _begins_list(text: str, position: int) -> bool:
    """Whether the letter at the end only begins a list, or the next line of one."""
    before = text[:position].rstrip(" \t([\"'→>")
    opened = [match.end() for match in _OPENER.finditer(before)]
    if opened and MARK not in before[opened[-1] :] and DENIED not in before[opened[-1] :]:
        return True
    if before.endswith("\n\n"):
        return False
    line = before.rstrip("\n").rpartition("\n")[2]
    return line.endswith("?") or _LABELLED_LINE.match(line) is not None


def label_letters(marked: Marked, letters: str) -> frozenset[str]:
    """The letters of all labels and hedges; if one of ``letters`` is among them, others do not count."""
    text, listed = marked.text, _enumerating_labels(marked)
    found = dict(_labels(marked, letters))
    found |= {at: marked.mentions[at].letters for at in _at_ends(marked)}
    if not is_cut_off(text):
        found |= {at: one.letters for at, one in marked.mentions.items() if len(one.letters) > 1 and one.upper}
    chosen = {at: one for at, one in found.items() if at not in listed and len(one) < max(4, len(letters))}
    if is_unfinished(text):  # what the reply began with may still be its answer
        first = len(text) - len(text.lstrip()) + len(text.strip().partition("\n")[0])
        chosen = {at: one for at, one in chosen.items() if at < first and not marked.mentions[at].named}
    elif not chosen:
        chosen = found
    opened = _OPENER.search(text)
    if opened:
        before = [one for at, one in chosen.items() if at < opened.start()]
        if before or len(_union(chosen.values(), letters)) == 1:
            return _union(before, letters)
    return _union(chosen.values(), letters)


def _union(found: Iterable[frozenset[str]], letters: str) -> frozenset[str]:
    sets = list(found)
    return frozenset[str]().union(*([one for one in sets if one <= frozenset(letters)] or sets))


def _labels(marked: Marked, letters: str = "") -> Iterator[tuple[int, frozenset[str]]]:
    """Labels at the start of a line with their letters, up to a line that denies an option: there options are weighed.

    Roman numerals are labels only if they are among ``letters`` and not in a list of numerals.
    """
    roman = _ROMAN if _ROMAN_LIST.search(marked.text) else _ROMAN - frozenset(letters)
    denied = _DENIED_LABEL.search(marked.text)
    for match in _LABEL.finditer(marked.text, 0, denied.start() if denied else len(marked.text)):
        at = match.start("letter")
        mention = marked.mentions[at]
        if match["lead"].strip("\n") and at > 12 and is_last(marked.text, at):
            continue  # "1. A" at the end is the beginning of a line
        if match["sign"] is None and (mention.named or not mention.closed):
            continue
        if not mention.letters <= roman and not _HEADED.search(marked.text[max(0, at - 200) : at]):
            yield at, mention.letters
        line = marked.text[at + 1 : at + 300].partition("\n")[0]
        beside = {  # "A. T1 → T2, B. T2 → T3" is a list
            at + further.end()
            for further in _INLINE.finditer(line)
            if not further["bracketed"] or marked.mentions[at + further.end()].bracketed
        }
        if mention.letters == {"A"}:
            beside |= set(_listed_on(marked, at, line))
        for place in sorted(beside):
            yield place, marked.mentions[place].letters


def _listed_on(marked: Marked, position: int, line: str) -> Iterator[int]:
    """Positions of the labels B, C, … that follow the label A on its line with no sign between: ``A. none B. one``."""
    expected = "B"
    for match in _LISTED_ON.finditer(line):
        at = position + 1 + match.start("letter")
        mention = marked.mentions.get(at)
        if mention is not None and mention.letters == {expected} and (match["sign"] or mention.closed):
            yield at
            expected = chr(ord(expected) + 1)


def _at_ends(marked: Marked) -> Iterator[int]:
    """Positions of letters at the end of a sentence, in brackets or after a sign, with no other letter on the line."""
    text = marked.text
    doubtful: list[int] = []
    apart = False
    for match in _AT_END.finditer(text):
        at = match.start("bracketed" if match["bracketed"] else "apart")
        line = text[max(text.rfind("\n", 0, at) + 1, at - 300) : at]
        mention = marked.mentions[at]
        if MARK in line or DENIED in line:
            continue
        if match["bracketed"]:
            if mention.bracketed:
                yield at
        elif mention.upper and not is_discredited(text, match.start()):
            if match["stop"] or mention.closed or not follows_sentence(text, at):
                apart = True
                yield at
            else:
                doubtful.append(at)
    if apart:  # "T1 to T2: A", and on the next line "T2 to T3: B": if one counts, all do
        yield from doubtful


def _enumerating_labels(marked: Marked) -> frozenset[int]:
    """Positions of labels that list options: A, B, … in a row."""
    listed: set[int] = set()
    run: list[int] = []
    for at, letters in _labels(marked, "IVX"):
        letter = min(letters)
        if letters == {"A"}:
            run = [at]
        elif run and len(letters) == 1 and ord(letter) == ord("A") + len(run):
            run.append(at)
            listed.update(run)
        else:
            run = []
    return frozenset(listed)
