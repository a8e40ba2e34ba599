"""How a text continues and ends: whether it takes something back, reasons on, or is cut off within a sentence."""

from __future__ import annotations

import re

from medtasks.filters.cues import SENTENCE_ENDS
from medtasks.filters.mentions import DENIED, MARK

_RETRACTION = re.compile(
    r"(?:^|[.!?。！？\n,;–—-])[\s*(]{0,4}(?:(?:oh|hmm+|but|no|ah|well|so)[,.…\s]{1,4}){0,3}"
    r"(?:wait|actually|hold\s+on|correction|scratch\s+that|on\s+second\s+thoughts?|sorry|my\s+mistake|no[,.:]"
    r"|(?:edit|update|revis(?:ed|ion))\s{0,2}:"
    r"|I\s+(?:made\s+(?:a\s+mistake|an\s+error)|was\s+wrong|misread|apologi[sz]e|(?:need|must|have)\s+(?:to\s+)?correct)"
    r"|let\s+me\s+(?:correct|re|double)[\w-]*|更正|不对|等等|等一下|重新)",
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
