"""The statements of a response: every mention with the rank that the words and signs around it
give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from medtasks.answers.mentions import Marked, Mention
from medtasks.answers.vocabulary import DENIED, MARK, Rank, Vocabulary

_REACH = 200


def statements(marked: Marked, letters: str) -> list[Mention]:
    """Every mention as a statement, in order."""
    claims, labels = _claims(marked), _labels(marked, letters)
    listed = _lists(marked, labels)
    lone = _lone(marked, listed)
    found: list[Mention] = []
    for at, mention in marked.mentions.items():
        rank = Rank.LABEL if at in labels else Rank.MENTIONED
        if at in listed:
            rank = Rank.LISTED if at in labels else Rank.REPEATED
        rank, named = claims.get(at, (rank, mention.letters))
        rank = max(rank, lone.get(at, rank))
        bare, heads = at not in claims, labels.get(at, False)
        found.append(
            replace(mention, letters=named, position=at, rank=rank, bare=bare, heads=heads)
        )
    return found


def weakened(marked: Marked, found: Iterable[Mention]) -> list[Mention]:
    """The same statements; those that words around them deny, doubt or compare are ``weak`` and no
    labels.
    """
    weighed: list[Mention] = []
    text, joined = marked.text, marked.words["joined"]
    for one in found:
        if one.bare and not one.heads:
            at, last = one.position, weighed[-1] if weighed else one
            joins = last.weak and joined.fullmatch(
                text, last.position + 1, at
            )  # only a conjunction is between them
            if joins or _clause_weakens(
                marked.words, text[max(0, at - _REACH) : at], text[at + 1 : at + _REACH]
            ):
                loose = (
                    one.rank in (Rank.LISTED, Rank.LABEL, Rank.IMPLIED) and len(one.letters) == 1
                )
                one = replace(one, weak=True, rank=Rank.MENTIONED if loose else one.rank)
        weighed.append(one)
    return weighed


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


def _sentence_before(marked: Marked, position: int) -> str:
    return marked.words["sentence_ends"].split(marked.text[max(0, position - _REACH) : position])[
        -1
    ]


def _claims(marked: Marked) -> dict[int, tuple[Rank, frozenset[str]]]:
    """Rank and letters of each mention that words or a tick call the answer."""
    text, words = marked.text, marked.words
    ranks: dict[int, Rank] = {}
    beside: dict[int, frozenset[str]] = {}
    for claim in words.claims:
        for match in claim.pattern.finditer(text):
            at = match.start("letter")
            mention = marked.mentions[at]
            if words["enumerated"].match(text, at + 1) or words["in_row"].search(
                text, max(0, at - 12), at
            ):
                continue  # "Choose one: A. Polyp B. Adenoma"
            if _is_quoted(marked, match.start(), at):
                continue
            pair = words["paired"].search(text, max(0, match.start() - _REACH), match.start())
            if pair and not words["copula"].search(
                text, match.start(), at
            ):  # "between answer A and answer D"
                beside[at] = marked.mentions[pair.start()].letters
            if claim.loose and not mention.upper:
                continue
            if (
                claim.loose
                and marked.is_last(at)
                and not mention.closed
                and marked.follows_sentence(at)
            ):
                continue  # it may be cut off
            if claim.rank == Rank.IMPLIED and (mention.text or len(mention.letters) > 1):
                continue
            stop = words["sentence_ends"].match(text, match.start())
            before = "" if stop else _sentence_before(marked, match.start())
            label, behind = (
                text[stop.end() if stop else match.start() : at],
                text[at + 1 : match.end()],
            )
            after = text[match.end() : match.end() + 160]
            rank = _weighed(
                words, claim.rank, before, label, behind, after, bool(match.groupdict().get("sign"))
            )
            if rank is not None and mention.text and rank >= Rank.ANSWER:
                rank = Rank.FINAL if words["ends_line"].match(text, at + 1) else Rank.ANSWER
            if rank is not None:
                ranks[at] = max(rank, ranks.get(at, rank))
    for match in words["ticked"].finditer(text):
        at = match.start(match.lastgroup or 0)
        if marked.mentions[at].upper:
            ranks[at] = Rank.ANSWER
    return {
        at: (rank, _with_others(marked, at, ranks) | beside.get(at, frozenset()))
        for at, rank in ranks.items()
    }


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
    clause = (
        label
        if label.startswith((";", ",", "→", "⇒", "="))
        else words["clause_ends"].split(before)[-1] + label
    )
    if label.startswith(DENIED):  # "not A but B"
        clause = ""
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
    while (beside := words["beside"].match(marked.text, position + 1)) and beside.start(
        "letter"
    ) not in ranks:
        position = beside.start("letter")
        between = beside[0][:-1].strip()
        alone = between in (";", ",") or (not between and marked.mentions[position].bracketed)
        if not alone and not words["or"].search(between):
            break
        letters |= marked.mentions[position].letters
    return letters


def _lone(marked: Marked, listed: frozenset[int]) -> dict[int, Rank]:
    """The ranks of a letter that is the whole first line, last line or last sentence."""
    text, words, found = marked.text, marked.words, {}
    if last := words["last_line"].search(text):
        at = last.start("letter")
        mention = marked.mentions[at]
        closed = marked.ended or mention.own or (mention.bracketed and not mention.named)
        if (not _begins_list(marked, at)) if last[0].startswith("\n") else closed:
            found[at] = Rank.CONCLUDED
    if first := words["first_line"].search(text):
        mention, *below = marked.mentions.values()
        apart = not mention.own and mention.letters not in [one.letters for one in below]
        if apart or not words["listed_below"].match(text, first.end()):
            found[first.start("letter")] = Rank.ANSWER
    return {at: rank for at, rank in found.items() if at not in listed}


def _begins_list(marked: Marked, position: int) -> bool:
    """Whether the letter at the end only begins a list, or the next line of one."""
    words = marked.words
    before = marked.text[:position].rstrip(" \t([\"'→>")
    apart = before.endswith("\n\n")
    *_, since = words["opener"].split(before)
    if since not in ("", before) and MARK not in since and DENIED not in since:
        return not (apart and (marked.mentions[position].bracketed or since.strip(" .:*\n")))
    line = before.rstrip("\n").rpartition("\n")[2]
    if words["opener"].search(
        words["sentence_ends"].split(line)[-1].lstrip()
    ):  # "The answer is B. Options:"
        return True
    return not apart and (line.endswith("?") or words["labelled_line"].match(line) is not None)


def _labels(marked: Marked, letters: str) -> dict[int, bool]:
    """Positions of letters that are only labels, at the start of a line (True) or elsewhere.

    Elsewhere they are joined, or end a sentence in brackets, after a sign or with their text, alone
    on the line. A line that denies an option ends the labels of lines: below it options are
    weighed. Roman numerals are labels only if they are among ``letters`` and not in a list of
    numerals.
    """
    text, words = marked.text, marked.words
    labels: dict[int, bool] = {}
    for match in words["at_end"].finditer(text):
        at = match.start("bracketed" if match["bracketed"] else "apart")
        start = max(text.rfind("\n", 0, at) + 1, at - 300)
        line, mention = text[start:at], marked.mentions[at]
        beside = [
            marked.mentions[start + place].letters
            for place, sign in enumerate(line)
            if sign == MARK
        ]
        others = [one for one in beside if one != mention.letters and one & set(letters)]
        if mention.text or others or (DENIED in line and not match["apart"]):
            continue
        sentence = _sentence_before(marked, match.start())
        taken_back = words["doubts"].search(sentence) or words["discredits"].search(sentence)
        closed = match["stop"] or mention.closed or not marked.follows_sentence(at)
        apart = mention.upper and closed and not taken_back
        if mention.bracketed or mention.own if match["bracketed"] else apart:
            labels[at] = False
    if not marked.cut_off:
        labels |= {
            at: False for at, one in marked.mentions.items() if len(one.letters) > 1 and one.upper
        }
    roman = (
        frozenset("IVX")
        if words["roman_list"].search(text)
        else frozenset("IVX") - frozenset(letters)
    )
    denied = words["denied_label"].search(text)
    for match in words["label"].finditer(text, 0, denied.start() if denied else len(text)):
        at = match.start("letter")
        mention = marked.mentions[at]
        if words["discussed"].match(text, at + 1) and not words["labelled_line"].match(text):
            continue
        if match["lead"].strip("\n") and at > 12 and marked.is_last(at):
            continue  # "1. A" at the end is the beginning of a line
        signed = match["sign"] is not None or (
            mention.closed and not mention.named and not mention.own
        )
        if signed and not mention.text and not mention.letters <= roman:
            labels[at] = True
    return labels


def _lists(marked: Marked, labels: dict[int, bool]) -> frozenset[int]:
    """Positions of mentions that name A, B, C, … one after the other: two labels of lines, or three
    in any manner.

    Not if the text begins with the only label, and prose compares the others: ``A. …; B would be …,
    and C …``.
    """

    def is_signed(at: int) -> bool:
        mention = marked.mentions[at]
        return (
            labels.get(at, False)
            or (mention.closed and not mention.bold)
            or marked.text.startswith((".", ":", ")"), at + 1)
        )

    listed: set[int] = set()
    for places, least in (
        (sorted(at for at in labels if labels[at]), 2),
        (sorted(marked.mentions), 3),
    ):
        run: list[int] = []
        for at in places:
            letters = marked.mentions[at].letters
            run = (
                [*run, at]
                if letters == {chr(ord("A") + len(run))}
                else [at]
                if letters == {"A"}
                else []
            )
            begins = run and run[0] < 4 and labels.get(run[0])
            if len(run) >= (2 if listed else least) and not (
                begins and not any(map(is_signed, run[1:]))
            ):
                listed.update(run)  # the last repetition may be cut off
    return frozenset(listed)
