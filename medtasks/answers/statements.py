"""The statements of a response: each place that calls an option the answer, or names it as a label, with its rank."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from medtasks.answers.vocabulary import DENIED, MARK, OWN, Claim, Rank, Vocabulary
from medtasks.answers.mentions import Marked

SENTENCE_ENDS = re.compile(r"\n+|[.!?][\"')\]]{0,2}(?=\s)|[。！？；।]")
_MORE_COMES = re.compile(r"[\"')\]}]{0,3}\s{0,3}(?:[,/&]|(?:or|and|but)\b)[^.!?\n]{0,30}\Z", re.IGNORECASE)
_ENDS = ".!?。！？…)\"'”’}]|✓✗`"
_CLAUSE_ENDS = re.compile(r"[,;:，；：،]")
_NO_LETTER = rf"\w\n✗{MARK}{DENIED}"
_DECORATION = rf"[^{_NO_LETTER}]{{0,12}}"
_FIRST_LINE = re.compile(
    rf"\A{_DECORATION}(?:\d{{1,2}}[.)][ \t]{{0,2}})?(?P<letter>{MARK})[^{_NO_LETTER}]{{0,8}}(?:\n|\Z)"
)
_FIRST_SENTENCE = re.compile(
    rf"\A{_DECORATION}(?P<letter>{MARK})[^\w\n]{{0,3}}{OWN}(?=[.,;]|\s*\Z|\s(?:because|since|as)\b)"
)
_LAST_LINE = re.compile(rf"(?:\n|[.!?。！？][ \t])[(\[\"'→>]{{0,3}}(?P<letter>{MARK})[^:?{_NO_LETTER}]{{0,8}}\Z")
_LABEL = re.compile(
    rf"^(?P<lead>{_DECORATION}(?:\d{{1,2}}[.)][ \t]{{0,2}})?{_DECORATION})(?P<letter>{MARK})"
    rf"(?:[^\w\n]{{0,3}}{OWN}|(?![^\w\n]{{0,3}}{OWN}))"
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
    rf"(?P<bracketed>{MARK})[ \t]{{0,2}}(?:$|[.!。,](?:\s|$))"
    rf"|(?:(?<=\w[,:;])|(?<=\w [–—→-]))[ \t]{{0,3}}(?P<apart>{MARK})[ \t]{{0,2}}(?P<stop>[.!。]?)[ \t]{{0,2}}$",
    re.MULTILINE,
)
_LINE_ENDS = re.compile(r"[^\w\n]{0,6}$", re.MULTILINE)
_LISTED_BELOW = re.compile(rf"{_DECORATION}\n?{_DECORATION}{MARK}[ \t]{{0,3}}[.:)]")
_DISCUSSED = re.compile(rf"[.)]?[ \t]?(?:{OWN}|[^:\n–—]{{0,60}}?)[)\"]?[ \t]{{0,2}}[:–—-][ \t]{{1,2}}\S+[ \t]\S")
_LABELLED_LINE = re.compile(rf"{_DECORATION}[{MARK}{DENIED}].")
_DENIED_LABEL = re.compile(rf"^{_DECORATION}{DENIED}", re.MULTILINE)
_WORD = re.compile(rf"[\w{MARK}]")
_ROMAN = frozenset("IVX")
_ROMAN_LIST = re.compile(r"^\W{0,6}I{2,3}[.):]", re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """The text at ``position`` names ``letters`` with this rank.

    ``text``: by an option's text, without a letter; ``bare``: a letter that no words call the answer.
    """

    letters: frozenset[str]
    rank: Rank
    position: int
    text: bool = False
    bare: bool = False


def retractions(words: Vocabulary, text: str) -> list[int]:
    """Positions where the text takes back what came before: ``Wait, …``, ``Actually, …``."""
    return [match.end() for match in words["retracts"].finditer(text)]


def sentence_of(text: str, position: int) -> tuple[int, int]:
    """Start and end of the sentence around ``position``."""
    begin = max((match.end() for match in SENTENCE_ENDS.finditer(text, 0, position)), default=0)
    end = SENTENCE_ENDS.search(text, position)
    return begin, end.start() if end else len(text)


def sentence_before(text: str, position: int) -> tuple[int, str]:
    """Start and text of what stands on the line before ``position``: the rest of its sentence, or the one before."""
    line = max(text.rfind("\n", 0, position) + 1, position - 300)
    ends = [line, *(match.end() for match in SENTENCE_ENDS.finditer(text, line, position))]
    while len(ends) > 1 and not _WORD.search(text, ends[-1], position):
        ends.pop()
    return ends[-1], text[ends[-1] : position]


def has_ended(text: str) -> bool:
    """Whether the text ends with a sign that ends sentences."""
    return text.rstrip()[-1:] in _ENDS


def is_unfinished(words: Vocabulary, text: str) -> bool:
    """Whether the text ends with a word or sign that something must follow."""
    return words["unfinished"].search(text.rstrip()[-20:]) is not None


def is_cut_off(words: Vocabulary, text: str) -> bool:
    """Whether the text ends within a sentence, as far as can be seen: short last lines need no full stop."""
    if is_unfinished(words, text):
        return True
    if has_ended(text) or text.rstrip()[-1:] in (MARK, DENIED):
        return False
    last = SENTENCE_ENDS.split(text.rstrip())[-1]
    return len(last.split()) >= 4 or (len(last) >= 12 and not last.isascii())


def is_reopened(words: Vocabulary, text: str, position: int) -> bool:
    """Whether the text withdraws the claim at ``position``, or is cut off while it reasons or lists on after it."""
    if words["withdraws"].search(text, position):
        return True
    if has_ended(text):
        return False
    more = is_unfinished(words, text) and _MORE_COMES.match(text, position + 1)
    return bool(more or words["reasons_on"].search(text, position) or words["retracts"].search(text, position))


def _is_last(text: str, position: int) -> bool:
    return len(text) - position < 20 and not text[position + 1 :].strip()


def _follows_sentence(text: str, position: int) -> bool:
    """Whether a sentence ends before ``position``: prose that ends there without a full stop is cut off."""
    return SENTENCE_ENDS.search(text, 0, position) is not None


def _is_discredited(words: Vocabulary, text: str, position: int) -> bool:
    """Whether the clause before ``position`` takes back what follows, or its sentence is a condition."""
    before = SENTENCE_ENDS.split(text[max(0, position - 200) : position])[-1]
    return bool(words["doubts"].search(before) or words["discredits"].search(before))


def claims(marked: Marked) -> list[Statement]:
    """The places that call an option the answer, and lone letters, in order."""
    text, words = marked.text, marked.words
    starts = [0, *(match.end() for match in SENTENCE_ENDS.finditer(text))]
    ranks: dict[int, Rank] = {}
    for claim in words.claims:
        for match in claim.pattern.finditer(text):
            sentence = starts[bisect_right(starts, match.start()) - 1]
            position = match.start("letter")
            rank = None if claim.loose and _is_loose_end(marked, position) else _rank(words, text, sentence, match, claim)
            if rank is not None:
                ranks[position] = max(rank, ranks.get(position, rank))
    for match in words["ticked"].finditer(text):
        ranks[match.start(match.lastgroup or 0)] = Rank.ANSWER
    made = []
    for position, rank in sorted(ranks.items()):
        by_text = marked.mentions[position].text
        if by_text and not _LINE_ENDS.match(text, position + 1):
            rank = min(rank, Rank.STATED)  # the text is only a part of what is called the answer
        made.append(Statement(_with_others(marked, position, ranks), rank, position, by_text))
    claimed = [
        claim
        for claim in made
        if len(claim.letters) > 1 or not words["both"].search(text[max(0, claim.position - 20) : claim.position])
    ]
    return sorted([*claimed, *_lone_claims(marked)], key=lambda claim: claim.position)


def _rank(words: Vocabulary, text: str, sentence: int, match: re.Match[str], claim: Claim) -> Rank | None:
    """How firm a claim is in its sentence; None if a condition, a question or a negation takes it back."""
    position = match.start("letter")
    before = text[max(sentence, match.start() - 200) : match.start()]
    label, behind = text[match.start() : position], text[position + 1 : match.end()]
    after = text[match.end() : match.end() + 160]
    return _weighed(words, claim.rank, before, label, behind, after, is_label=bool(match.groupdict().get("sign")))


@lru_cache(maxsize=4096)  # a model that loops repeats its claims
def _weighed(
    words: Vocabulary, rank: Rank, before: str, label: str, behind: str, after: str, *, is_label: bool
) -> Rank | None:
    """The rank of a claim that consists of ``label``, the letter and ``behind``, between two parts of its sentence."""
    claim = f"{label}{MARK}{behind}"
    if words["provided"].match(words["forced"].sub("", after[:100])):
        return None
    if is_label:
        if words["final"].search(claim):
            return Rank.FINAL
        if not before.strip(" \t*_#>-•\"'({[|") or words["concludes"].fullmatch(before.strip(" \t,")):
            return Rank.ANSWER
    clause = _CLAUSE_ENDS.split(before)[-1] + label
    before = words["forced"].sub("", before + label)
    if words["doubts"].search(before) or words["discredits"].search(clause) or words["question"].match(behind + after):
        return None
    if (rank <= Rank.SUGGESTED or words["qualifies"].search(clause + claim)) and words["but"].match(after):
        return None
    if rank <= Rank.SUGGESTED and words["too"].match(after):
        return Rank.TENTATIVE
    if words["final"].match(claim):
        return Rank.FINAL
    if words["concludes"].search(before) and rank >= Rank.SUGGESTED:
        return Rank.CONCLUDED
    return Rank.TENTATIVE if rank <= Rank.STATED and words["guesses"].search(clause + claim) else rank


def _is_loose_end(marked: Marked, position: int) -> bool:
    """Whether prose ends with a bare letter: a small one is not an answer, and after sentences it may be cut off."""
    mention = marked.mentions[position]
    return not mention.upper or (
        _is_last(marked.text, position) and not mention.closed and _follows_sentence(marked.text, position)
    )


def _with_others(marked: Marked, position: int, ranks: dict[int, Rank]) -> frozenset[str]:
    """The letters of a claim, with those that "A … or" before or "or C" after it adds."""
    letters, words = marked.mentions[position].letters, marked.words
    start = max(0, position - 120)
    earlier = words["or_before"].search(marked.text[start:position])
    if earlier:
        letters |= marked.mentions[start + earlier.start("letter")].letters
    while (beside := words["beside"].match(marked.text, position + 1)) and beside.start("letter") not in ranks:
        position = beside.start("letter")
        between = beside[0][:-1].strip()
        alone = between in (";", ",") or (not between and marked.mentions[position].bracketed)
        if not alone and (not words["or"].search(between) or words["contrast"].search(between)):
            break
        letters |= marked.mentions[position].letters
    return letters


def _lone_claims(marked: Marked) -> Iterator[Statement]:
    """A letter, alone or with its text, that is the whole first line, last line or last sentence; not in a list."""
    text, words, listed = marked.text, marked.words, _enumerating_labels(marked)
    found: dict[int, Rank] = {}
    last = _LAST_LINE.search(text)
    if last:
        at = last.start("letter")
        own_line = last[0].startswith("\n")
        mention = marked.mentions[at]
        if not _begins_list(marked, at) if own_line else has_ended(text) or (mention.bracketed and not mention.named):
            found[at] = Rank.CONCLUDED
    first = _FIRST_LINE.search(text)
    if not first and (sentence := _FIRST_SENTENCE.search(text)) and marked.mentions[sentence.start("letter")].own:
        first = sentence
    if first and not _LISTED_BELOW.match(text, first.end()):
        found[first.start("letter")] = Rank.ANSWER
    for at, rank in found.items():
        if at not in listed and not _is_discredited(words, text, at):
            mention = marked.mentions[at]
            yield Statement(mention.letters, rank, at, mention.text, bare=True)


def _begins_list(marked: Marked, position: int) -> bool:
    """Whether the letter at the end only begins a list, or the next line of one."""
    text, mention = marked.text, marked.mentions[position]
    before = text[:position].rstrip(" \t([\"'→>")
    opened = [match.end() for match in marked.words["opener"].finditer(before)]
    if opened and MARK not in before[opened[-1] :] and DENIED not in before[opened[-1] :]:
        between = before[opened[-1] :]
        apart = before.endswith("\n\n") and (mention.bracketed or bool(between.strip(" .:*\n")))
        return not apart
    line = before.rstrip("\n").rpartition("\n")[2]
    if marked.words["opener"].search(SENTENCE_ENDS.split(line)[-1].lstrip()):  # "The answer is B. Options to consider:"
        return True
    if before.endswith("\n\n"):
        return False
    return line.endswith("?") or _LABELLED_LINE.match(line) is not None


def labels(marked: Marked, letters: str) -> tuple[dict[int, frozenset[str]], frozenset[str]]:
    """Letters that are only labels or in brackets, by position, and letters named elsewhere that contradict them."""
    text, words, listed = marked.text, marked.words, _enumerating_labels(marked)
    found = dict(_labels(marked, letters))
    found |= {at: marked.mentions[at].letters for at in _at_ends(marked)}
    if not is_cut_off(words, text):
        found |= {at: one.letters for at, one in marked.mentions.items() if len(one.letters) > 1 and one.upper}
    chosen = {at: one for at, one in found.items() if at not in listed and len(one) < max(4, len(letters))}
    repeated = _alphabet(marked) - chosen.keys()
    others = {at: one for at, one in marked.mentions.items() if at not in listed | repeated and one.upper}
    if is_unfinished(words, text):  # what the reply began with may still be its answer
        first = len(text) - len(text.lstrip()) + len(text.strip().partition("\n")[0])
        chosen = {at: one for at, one in chosen.items() if at < first and not marked.mentions[at].named}
    elif not chosen:
        chosen = found
    opened = words["opener"].search(text)
    if opened:
        before = {at: one for at, one in chosen.items() if at < opened.start()}
        if before or len(frozenset[str]().union(*chosen.values())) == 1:
            chosen = before
            others = {at: one for at, one in others.items() if at < opened.start()}
    inside = {at: one for at, one in chosen.items() if one <= frozenset(letters)}
    return inside or chosen, frozenset[str]().union(*(one.letters for one in others.values()))


def _labels(marked: Marked, letters: str = "") -> Iterator[tuple[int, frozenset[str]]]:
    """Labels at the start of a line with their letters, up to a line that denies an option: there options are weighed.

    Roman numerals are labels only if they are among ``letters`` and not in a list of numerals.
    """
    roman = _ROMAN if _ROMAN_LIST.search(marked.text) else _ROMAN - frozenset(letters)
    denied = _DENIED_LABEL.search(marked.text)
    for match in _LABEL.finditer(marked.text, 0, denied.start() if denied else len(marked.text)):
        at = match.start("letter")
        mention = marked.mentions[at]
        if _DISCUSSED.match(marked.text, at + 1) and not _LABELLED_LINE.match(marked.text) and at > 12:
            continue
        if mention.text or (match["lead"].strip("\n") and at > 12 and _is_last(marked.text, at) and not mention.own):
            continue  # "1. A" at the end is the beginning of a line
        if match["sign"] is None and (mention.named or mention.own or not mention.closed):
            continue
        if not mention.letters <= roman:
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
            if not marked.mentions[place].text:
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
        if mention.text or MARK in line or (DENIED in line and not match["apart"]):
            continue
        if match["bracketed"]:
            if mention.bracketed:
                yield at
        elif mention.upper and not _is_discredited(marked.words, text, match.start()):
            if match["stop"] or mention.closed or not _follows_sentence(text, at):
                apart = True
                yield at
            else:
                doubtful.append(at)
    if apart:  # "T1 to T2: A", and on the next line "T2 to T3: B": if one counts, all do
        yield from doubtful


def _alphabet(marked: Marked) -> frozenset[int]:
    """Positions of mentions that name A, B, C, … one after the other, as where the question is repeated."""
    run: list[int] = []
    longest: list[int] = []
    for at, mention in sorted(marked.mentions.items()):
        follows = mention.letters == {chr(ord("A") + len(run))}
        run = [*run, at] if follows else [at] if mention.letters == {"A"} else []
        longest = max(longest, run, key=len)
    return frozenset(longest if len(longest) > 2 else ())


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
