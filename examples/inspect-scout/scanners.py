"""Four scanners for exported runs that need no model: each looks for patterns in the answer.

``scout scan scanners.py -T logs`` scans the directory that ``medtasks export inspect`` writes. The
patterns are made for English questions, and miss what is put in other words.
"""

from __future__ import annotations

from inspect_scout import Result, Scanner, Transcript, grep_scanner, scanner

_UNABLE = r"can't|cannot|can not|won't|will not|(?:un|not )able to|not (?:allow|permitt)ed to"
_UNWILLING = r"rather not|prefer not to"
_HELPING = r"help|assist|provide|give|offer|interpret|diagnose|speculate|advise|comment|estimate"
_ANSWERING = r"comply|answer"
REFUSAL = [
    rf"\b(?:{_UNABLE}|{_UNWILLING})(?: \w+){{0,2}} (?:{_HELPING}|{_ANSWERING})\b",
    r"\bmust (?:decline|refuse)\b",
    r"\b(?:outside|beyond) what I\b|\bnot something I can\b",
]

_PICTURE = r"(?:image|picture|photo|frame|attachment|file)s?"
_IN_PROMPT = r"attached|provided|visible|uploaded|included|in (?:our|this)"
_NOT_THERE = r"missing|not attached|not provided|failed to load|not load"
PICTURE_NOT_SEEN = [
    rf"\b(?:no|without an?|see an?|see any) {_PICTURE} (?:\w+ ){{0,2}}(?:{_IN_PROMPT})\b",
    rf"\bwithout an? {_PICTURE}\b(?! artefact)|\breceived[^.]* no {_PICTURE}\b",
    rf"\b(?:{_UNABLE}) (?:see|view|open|access) (?:the |any |your )?{_PICTURE}\b",
    rf"\b{_PICTURE}\b[^.]{{0,30}} (?:{_NOT_THERE})\b",
    rf"\bplease (?:send|share|upload|attach|provide) [^.]*{_PICTURE}\b",
    r"\bnothing (?:is )?attached\b|\btext-(?:only|based)\b",
]

_SCRIPTS = {
    "Greek": r"\u0370-\u03ff",
    "Cyrillic": r"\u0400-\u052f",
    "Hebrew and Arabic": r"\u0590-\u06ff",
    "Indian": r"\u0900-\u0dff",
    "kana": r"\u3040-\u30ff",
    "Chinese": r"\u4e00-\u9fff",
    "Korean": r"\uac00-\ud7af",
}
LANGUAGE_CHANGE = [
    rf"[{''.join(_SCRIPTS.values())}]{{2,}}",  # one letter may be a symbol, such as α
    r"\b(?:und|ist|nicht|keine?|auf|eine?[nmrs]?|sich|wird)\b",  # German
    r"\b(?:une|est|dans|avec|sans|mais|cette|pas|je|les|des)\b",  # French
    r"\b(?:el|las|una|entre|observa|está|pero|muy)\b",  # Spanish
    r"\b(?:nessun[oa]?|sono|della|nella|não|seja|uma|nenhum[a]?)\b",  # Italian, Portuguese
]

_SOME = r"an?|one|two|three|several|the|a single"
_UNLIMITED = r"(?:(?!\bbut\b|\bexcept\b|\bother\b)[\s\S])*"
"""Text without a word that limits what comes before it."""
CONTRADICTION = [
    rf"\bno ([\w-]{{3,}}?)s?\b{_UNLIMITED}\b(?:{_SOME}) \1s? (?:is|are|can|shows?)\b",
    rf"\b(?:{_SOME}) ([\w-]{{3,}}?)s? (?:is|are|can)\b{_UNLIMITED}\bno \1s?\b",
    rf"\bis an? colonoscopy\b{_UNLIMITED}\bis an? gastroscopy\b",
    rf"\bis an? gastroscopy\b{_UNLIMITED}\bis an? colonoscopy\b",
]


def found_in_answer(patterns: list[str]) -> Scanner[Transcript]:
    """A scanner whose value is whether one of the patterns matches; its explanation quotes what
    matches.
    """
    search = grep_scanner(patterns, regex=True)

    async def scan(transcript: Transcript) -> Result:
        matches = await search(transcript)
        assert isinstance(matches, Result)  # a list only for labelled patterns
        return matches.model_copy(update={"value": bool(matches.value)})

    return scan


@scanner(messages=["assistant"])
def refusal() -> Scanner[Transcript]:
    """Whether the answer declines to answer."""
    return found_in_answer(REFUSAL)


@scanner(messages=["assistant"])
def picture_not_seen() -> Scanner[Transcript]:
    """Whether the answer says that there is no picture."""
    return found_in_answer(PICTURE_NOT_SEEN)


@scanner(messages=["assistant"])
def language_change() -> Scanner[Transcript]:
    """Whether the answer, or a part of it, is in another language than English."""
    return found_in_answer(LANGUAGE_CHANGE)


@scanner(messages=["assistant"])
def contradiction() -> Scanner[Transcript]:
    """Whether the answer both states and denies something in the same words."""
    return found_in_answer(CONTRADICTION)
