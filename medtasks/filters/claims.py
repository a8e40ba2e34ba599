"""Places where a text calls an option the answer, how firmly, and whether it goes on to take that back."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from medtasks.filters.cues import CONCLUDES, CUES, FINAL, SENTENCE_ENDS, TICKED, Cue, Rank
from medtasks.filters.mentions import DENIED, MARK, Marked

_RETRACTION = re.compile(
    r"(?:^|[.!?。！？\n,;–—-])[\s*(]{0,4}(?:(?:oh|hmm+|but|no|ah|well|so)[,.…\s]{1,4}){0,3}"
    r"(?:wait|actually|hold\s+on|correction|scratch\s+that|on\s+second\s+thoughts?|sorry|my\s+mistake|no[,.:]"
    r"|(?:edit|update|revis(?:ed|ion))\s{0,2}:"
    r"|I\s+(?:made\s+(?:a\s+mistake|an\s+error)|was\s+wrong|misread|apologi[sz]e|(?:need|must|have)\s+(?:to\s+)?correct)"
    r"|let\s+me\s+(?:correct|fix|re|double)[\w-]*|更正|不对|等等|等一下|重新)",
    re.IGNORECASE,
)
_REASONS_ON = re.compile(
    r"(?:[.!?。！？\n])[\s*]{0,4}(?:(?:oh|hmm+|but|no|ah|so|okay|ok|now)[,.…\s]{1,4}){0,3}"
    r"(?:hmm+|let['’]?s\b|let\s+(?:me|us)\b|however|but\b|alternatively|on\s+the\s+other\s+hand|但是?|不过|然而)",
    re.IGNORECASE,
)
_WITHDRAWN = re.compile(
    r"[.!?。！？\n,;–—-][\s*(]{0,4}(?:(?:oh|hmm+|but|no|ah)[,.…\s]{1,4}){0,3}(?:actually,?\s)?"
    r"(?:wait|hold\s+on|scratch\s+that|on\s+second\s+thoughts?|I\s+(?:made\s+(?:a\s+mistake|an\s+error)|was\s+wrong))\b",
    re.IGNORECASE,
)
_MORE_COMES = re.compile(r"[\"')\]}]{0,3}\s{0,3}(?:[,/&]|(?:or|and|but)\b)[^.!?\n]{0,30}\Z", re.IGNORECASE)
_UNFINISHED = re.compile(
    r"(?:[,，、;:—–→-]|\b(?:the|an?|of|in|on|at|to|and|or|but|is|are|was|were|be|with|from|by|for|as|that|which|this|these"
    r"|not|no|between|because|since|while|where|if|so|than|its|their|has|have|had|can|may|will|would))\Z",
    re.IGNORECASE,
)
_ENDS = ".!?。！？…)\"'”’}]|✓✗`"


def retractions(text: str) -> list[int]:
    """Positions where the text takes back what came before: ``Wait, …``, ``Actually, …``."""
    return [match.end() for match in _RETRACTION.finditer(text)]


def sentence_of(text: str, position: int) -> tuple[int, int]:
    """Start and end of the sentence around ``position``."""
    begin = max((match.end() for match in SENTENCE_ENDS.finditer(text, 0, position)), default=0)
    end = SENTENCE_ENDS.search(text, position)
    return begin, end.start() if end else len(text)


def has_ended(text: str) -> bool:
    """Whether the text ends with a sign that ends sentences."""
    return text.rstrip()[-1:] in _ENDS


def is_unfinished(text: str) -> bool:
    """Whether the text ends with a word or sign that something must follow."""
    return _UNFINISHED.search(text.rstrip()[-20:]) is not None


def is_cut_off(text: str) -> bool:
    """Whether the text ends within a sentence, as far as can be seen: short last lines need no full stop."""
    if is_unfinished(text):
        return True
    if has_ended(text) or text.rstrip()[-1:] in (MARK, DENIED):
        return False
    last = SENTENCE_ENDS.split(text.rstrip())[-1]
    return len(last.split()) >= 4 or (len(last) >= 12 and not last.isascii())


def is_reopened(text: str, position: int) -> bool:
    """Whether the text withdraws the claim at ``position``, or is cut off while it reasons or lists on after it."""
    if _WITHDRAWN.search(text, position):
        return True
    if has_ended(text):
        return False
    more = is_unfinished(text) and _MORE_COMES.match(text, position + 1)
    return bool(more or _REASONS_ON.search(text, position) or _RETRACTION.search(text, position))


def is_last(text: str, position: int) -> bool:
    """Whether nothing but blanks follows the character at ``position``."""
    return len(text) - position < 20 and not text[position + 1 :].strip()


def follows_sentence(text: str, position: int) -> bool:
    """Whether a sentence ends before ``position``: prose that ends there without a full stop is cut off."""
    return SENTENCE_ENDS.search(text, 0, position) is not None


@dataclass(frozen=True)
class Claim:
    """The text at ``position`` calls ``letters`` the answer."""

    letters: frozenset[str]
    rank: Rank
    position: int


_QUESTION = re.compile(rf"[^.!?。！？\n{MARK}]{{0,120}}[?？]")
_CLAUSE_ENDS = re.compile(r"[,;:，；：]")
_ANEW = r"(?!.*\b(?:so|therefore|thus|hence|but|yet|nevertheless)\b|.*(?:故|所以|因此|但|而))"
_DOUBTS = re.compile(  # takes back what follows in the same sentence
    r"(?:\b(?:if|whether|unless|suppos(?:e|ing)|assum(?:e|ing)|imagine|example|format|such\s+as)\b|如果|假如|假设|若|是否|要不要|例如)"
    + _ANEW,
    re.IGNORECASE | re.DOTALL,
)
_DISCREDITS = re.compile(  # takes back what follows in the same clause
    r"(?:\b(?:not|never|cannot|hardly|no\s+(?:longer|one)|nobody|unsure|unclear|uncertain|wrong|incorrect|false|mistaken?|least"
    r"|worst|unlikely|(?<!no\s)(?<!a\s)(?<!out\s)doubt(?:s|ful|ed)?|hesita\w+|tempt\w+|second[ -](?:best|choice|most)"
    r"|runner-up|alternative|another|distractors?|exclude[sd]?|eliminated?|ruled?\s+out|against|before|until)\b|n['’]t\b"
    r"|不(?!明)|并非|无法|错误|排除)"
    r"(?!.*\b(?:and|because|still)\b|.*(?:应|即))" + _ANEW,
    re.IGNORECASE | re.DOTALL,
)
_PROVIDED = re.compile(r"[^.!?\n]{0,60}?(?<!even\s)(?<!as\s)\b(?:if|unless|provided)\b", re.IGNORECASE)
_QUALIFIES = re.compile(r"\b(?:would|seems?|appears?|looks?|at\s+first|initially)\b", re.IGNORECASE)
_TOO = re.compile(r"[^.!?\n]{0,12}\b(?:as\s+well|too|also|equally)\b|也", re.IGNORECASE)
_BUT = re.compile(
    rf"[^.!?\n{MARK}]{{0,80}}\b(?:but|however|although|though|yet)\b|[^。！？\n{MARK}]{{0,40}}(?:但|然而)",
    re.IGNORECASE,
)
_FORCED = re.compile(
    r"\bif\s+(?:I|we|one)?\s*(?:am|were|was|had|have|must|need|absolutely|really)?\s*(?:to|forced\s+to|have\s+to)?\s*"
    r"(?:choose|pick|guess|select|answer|decide|commit|forced|pressed)\b",
    re.IGNORECASE,
)
_GUESSES = re.compile(
    r"\b(?:at\s+first|initial(?:ly)?|first\s+(?:impression|thought|guess|look|glance)|might|may|perhaps|maybe|possibly|could"
    r"|tempting|lean(?:s|ing)?)\b|起初|(?<!最)(?<!最有)可能|也许|或许",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    rf"(?:[^\n{MARK}{DENIED}]{{0,70}}?(?:\bor|\band|[,;]|\(|或者?|和))?\s{{0,3}}"
    r"(?:(?:or|and|so|is|are|does|it|maybe|possibly|perhaps|even|option|choice)\s+){0,4}"
    rf"[(\[]?(?P<letter>{MARK})(?=[\"')\]]{{0,2}}\s{{0,3}}(?:$|[.:,;?)\n(]))",
    re.IGNORECASE,
)
_OR_BEFORE = re.compile(
    rf"(?P<both>\b(?:both|either)\s[^\n{MARK}]{{0,20}})?(?P<letter>{MARK})[^\n{MARK}{DENIED}]{{0,60}}"
    r"\b(?:or|(?(both)and|or))\s[^\n\w]{0,3}\Z",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\b(?:both|either|between)\s{1,3}\Z", re.IGNORECASE)
_OR = re.compile(r"\b(?:or|and|maybe|possibly|perhaps)\b|或|和", re.IGNORECASE)
_CONTRAST = re.compile(r"\b(?:not|than|unlike|instead|neither|nor|except)\b|n['’]t\b|不", re.IGNORECASE)


def claims(marked: Marked) -> list[Claim]:
    """The claims of a text, in order."""
    text = marked.text
    starts = [0, *(match.end() for match in SENTENCE_ENDS.finditer(text))]
    ranks: dict[int, Rank] = {}
    for cue in CUES:
        for match in cue.pattern.finditer(text):
            sentence = starts[bisect_right(starts, match.start()) - 1]
            position = match.start("letter")
            rank = None if cue.loose and _is_loose_end(marked, position) else _rank(text, sentence, match, cue)
            if rank is not None:
                ranks[position] = max(rank, ranks.get(position, rank))
    for match in TICKED.finditer(text):
        ranks[match.start(match.lastgroup or 0)] = Rank.ANSWER
    made = [Claim(_with_others(marked, position, ranks), rank, position) for position, rank in sorted(ranks.items())]
    return [
        claim
        for claim in made
        if len(claim.letters) > 1 or not _BOTH.search(text[max(0, claim.position - 20) : claim.position])
    ]


def _rank(text: str, sentence: int, match: re.Match[str], cue: Cue) -> Rank | None:
    """How firm a claim is in its sentence; None if a condition, a question or a negation takes it back."""
    position, cue_text = match.start("letter"), match[0]
    before = text[max(sentence, match.start() - 200) : match.start()]
    if _PROVIDED.match(_FORCED.sub("", text[match.end() : match.end() + 100])):
        return None
    if "sign" in match.groupdict() and match["sign"]:
        if FINAL.search(cue_text):
            return Rank.FINAL
        if not before.strip(" \t*_#>-•\"'({[|") or CONCLUDES.fullmatch(before.strip(" \t,")):
            return Rank.ANSWER
    label = text[match.start() : position]
    clause = _CLAUSE_ENDS.split(before)[-1] + label
    before = _FORCED.sub("", before + label)
    if _DOUBTS.search(before) or _DISCREDITS.search(clause) or _QUESTION.match(text, position + 1):
        return None
    if (cue.rank <= Rank.SUGGESTED or _QUALIFIES.search(clause + cue_text)) and _BUT.match(text, match.end()):
        return None
    if cue.rank <= Rank.SUGGESTED and _TOO.match(text, match.end()):
        return Rank.TENTATIVE
    if FINAL.match(cue_text):
        return Rank.FINAL
    if CONCLUDES.search(before) and cue.rank >= Rank.SUGGESTED:
        return Rank.CONCLUDED
    return Rank.TENTATIVE if cue.rank <= Rank.STATED and _GUESSES.search(clause + cue_text) else cue.rank


def _is_loose_end(marked: Marked, position: int) -> bool:
    """Whether prose ends with a bare letter: a small one is not an answer, and after sentences it may be cut off."""
    mention = marked.mentions[position]
    return not mention.upper or (
        is_last(marked.text, position) and not mention.closed and follows_sentence(marked.text, position)
    )


def is_discredited(text: str, position: int) -> bool:
    """Whether the clause before ``position`` takes back what follows, or its sentence is a condition."""
    before = SENTENCE_ENDS.split(text[max(0, position - 200) : position])[-1]
    return bool(_DOUBTS.search(before) or _DISCREDITS.search(before))


def _with_others(marked: Marked, position: int, ranks: dict[int, Rank]) -> frozenset[str]:
    """The letters of a claim, with those that "A … or" before or "or C" after it adds."""
    letters = marked.mentions[position].letters
    start = max(0, position - 120)
    earlier = _OR_BEFORE.search(marked.text[start:position])
    if earlier:
        letters |= marked.mentions[start + earlier.start("letter")].letters
    while (beside := _BESIDE.match(marked.text, position + 1)) and beside.start("letter") not in ranks:
        position = beside.start("letter")
        between = beside[0][:-1].strip()
        alone = between in (";", ",") or (not between and marked.mentions[position].bracketed)
        if not alone and (not _OR.search(between) or _CONTRAST.search(between)):
            break
        letters |= marked.mentions[position].letters
    return letters
