r"""Words and patterns of claims, denials and corrections, in the languages that a response is written in.

The words are data: one table a language in ``words/``. The patterns here are the same for all languages; a pattern is
compiled with the words of English and of each language whose ``signs`` the response contains. Abbreviations: ``{name}``
is a part or a list of words, a blank is white space, ``~`` optional white space, ``§`` the letter, ``¶`` any letter,
``¬`` a denied one, ``°`` the option's text behind its letter. All repetitions are bounded: reading takes linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import yaml

MARK = "\ue000"
"""Replaces a letter or an option's text that may be the answer (a private-use character)."""

OWN = "\ue002"
"""Replaces an option's text right behind its letter."""

DENIED = "\ue001"
"""Replaces letters and option texts that the response names only to deny that they are the answer."""


class Rank(IntEnum):
    """How firmly an option is called the answer: the table by which statements are weighed."""

    LABEL = 0
    """A letter before a text or in brackets, without any claim: ``B. Pneumothorax``."""
    TENTATIVE = 1
    """``It may be B.``"""
    SUGGESTED = 2
    """``The findings point to B.``"""
    STATED = 3
    """``The answer is B.`` ``B is correct.``"""
    CONCLUDED = 4
    """``Therefore B.``"""
    ANSWER = 5
    """``Answer: B`` at the start of a line, a tick, a letter alone on the first line."""
    FINAL = 6
    """``Final answer: B``, a box, an answer tag."""


_PARTS = {
    "start": r"^[^\w\n]{0,12}",
    "open": r"[(\[{\"'“‘]{0,2}[^\S\n]?",
    "blank": r"[^\S\n]{1,4}",
    "end": r"(?=~(?:$|[.!,;:)\]\"”'’。、✓(\[–—→°-]|{because}))",
    "stop": r"(?=~(?:$|[.!,;|]))",
    # between a label and its letter
    "sign": r"(?:[:=|#]|-{1,2}>?|=>|[–—→⇒…]|\.{3})",
    "be": "(?:['’]s|{is}|{maybe}|{mustbe})",
    "says": r"[\"')\]]{0,2}~\.?(?:{be}~{sign}?|{chinesebe}~:?|(?P<sign>{sign}))\s{0,6}",
    "again_": "(?:final )?(?:option|choice|letter|answer|interval)s?~{sign}~|{again}",
    "lead": "(?:{open}(?:{filler} |{filler}(?=[^\\w\\s])|{again_})){0,5}{open}",
    # what a label is called: an answer by itself, an option where it is said to be right, or begins a line
    "further": (
        r"(?:[^\S\n]{1,3}(?!{clause}|(?:options|choices)~[:=|])[^\W_][\w'’/-]{0,30}){0,12}?"
        r"(?:[^\S\n]?\([^()\n]{0,60}\))?"
    ),
    "chinese": "(?:{answer_zh}|(?:最终的?|最終的?|最后的?)?(?:{start}|{best_zh}){option_zh})",
    "said": r"(?:{start}|{qualifier}(?:[^\S\n]|[_-]){1,3})",
    "label": (
        r"(?:{chinese}[^\n。,;!?¶]{0,8}?|(?:{qualifier}(?:[^\S\n]|[_-]){1,3}){0,4}{answer}{further}"
        r"|(?:{said}{option}|{option}{blank}{qualifier}|{qualifier} one){further})"
    ),
    "itis": "(?<![A-Za-z0-9])(?:it|that|this|which)~{be}",
    "aside": (
        r"(?:[.:,)\]–—-]{0,2}°)?(?:\s{0,3}[(\[][^()\[\]\n]{0,80}[)\]])?"
        r"(?:[.:,]?\s{0,3}T\d(?:\s?(?:→|->|–|-|to|and|,|&)\s?T\d)?(?:\s?\([^()\n]{0,40}\))?,?)?"
    ),
    "seen": r"[^\S\n]{0,4}(?:{be}|{seems})~(?:{adverb} ){0,5}",
    "fully": (
        r"(?!-)(?! (?:for T\d|if|when|that|only|with (?:respect|regard)|regarding|about|in (?:terms|that|so)|at first))"
    ),
    "wrongly": r"(?:{wrong}|n['’]t(?![A-Za-z]))",
    "turn": r"[\s*(]{0,4}(?:{ah}[,.…\s]{1,4}){0,3}",
    "sentence": r"(?:^|[.!?。！？\n,;–—…-])",
    "verdict": r"(?:[.:,)\]–—-]{0,2}°)?[\"')\]]{0,2}[^\S\n]{0,3}[:–—|-][^\S\n]{0,3}",
    "item": r"^[^\w\n]{0,12}(?:\d{1,2}[.)][^\S\n]{0,2})?",
}

_CLAIMS: tuple[tuple[Rank, str], ...] = (
    # Answer: B; the correct option is B; final: B; most likely: B
    (Rank.STATED, "{label}{says}{lead}§"),
    (Rank.STATED, "{option}(?:{blank}{qualifier}){1,3}{says}{lead}§"),
    (Rank.STATED, "(?:(?<![A-Za-z])final(?:ly)?|{final})~(?P<sign>[:=])~{lead}§"),
    (Rank.STATED, r"(?:{start}|[.,;:(]~|{qualifier}\s){answer}\.?[\])]? {open}§(?:{end})"),
    (Rank.STATED, r"(?:{start}|[.!?] ){surely}~(?P<sign>:)~{lead}§"),
    (Rank.STATED, r"{most}{blank}(?:[\w-]{2,20}{blank}){0,3}?{be} {lead}§{end}"),
    (Rank.STATED, "{answer_bare}~{lead}§"),
    # I'm going with B; choosing B; let me revise: B; wait, B
    (Rank.STATED, r"{I}(?: {will}){0,4} {pick} (?:for |with )?:?~{lead}§"),
    (Rank.STATED, r"(?:{start}|[.,;:!?]\s|{therefore}\s){pick} :?~{lead}§{end}"),
    (Rank.STATED, r"{sentence}{turn}{retracts}(?:[^\n.!?¶¬]{0,24}[:,–—]|[^\n.!?¶¬]{0,120}:) ?{lead}§{end}"),
    (Rank.STATED, r"{forced}[^\n.!?¶¬]{0,20}[:,–—]~{lead}§{end}"),
    # therefore B; I think it's B; leaving B; not A but B
    (Rank.CONCLUDED, "{therefore},?:?~(?:(?:{itis}|we(?:['’]re| get| have)(?: left with)?) )?{lead}§{end}"),
    (Rank.STATED, "{I}(?: {will}){0,2} {believe}(?: that)?(?: it~{be})? {lead}§{end}"),
    (Rank.STATED, "(?:{itis}|{leaving},?|{thatis},?) {lead}§{end}"),
    (Rank.STATED, r"{leaving}[^\n.!?¶¬]{1,60}[,:(–—]~{lead}§{end}"),
    (Rank.STATED, r"(?:{start}|[.!?;,]\s)(?:{qualifier} )?{right} {is} {lead}§{end}"),
    (Rank.STATED, "¬[^\n.!?¶¬]{0,12}[.,;]?~{but} {lead}§{end}"),
    (Rank.STATED, "(?:{start}|[.!?] ){surely},? {lead}§{end}"),
    (Rank.STATED, r"\bi\.e\.,?~{lead}§{end}"),
    # points to B; makes B more likely; perhaps B
    (Rank.SUGGESTED, "{suggests} {lead}§(?:{end}|{aside} {better})"),
    (Rank.STATED, "{thus_is} {lead}§"),
    (Rank.STATED, "§{aside} (?:{be} )(?:left|the remaining (?:one|option)){stop}"),
    (Rank.STATED, "{only} {lead}§{aside} (?:{be} )?{tells}"),
    (Rank.STATED, "ma(?:k|d)(?:e|es|ing) {lead}§{aside}{blank}(?:the )?(?:more|most|best|only) {supported}"),
    (Rank.TENTATIVE, "(?:(?:it|this|that|there) {maybe}|{perhaps}),?~{lead}§{end}"),
    # 故选B; 应该是B; 符合B
    (Rank.STATED, "{pick_zh}~:?~{open}§"),
    (Rank.STATED, "{stated_zh}~§"),
    (Rank.CONCLUDED, "{concluded_zh}~§"),
    (Rank.SUGGESTED, "{suggests_zh}~§"),
    # B is correct; B best describes it; B it is; B: correct
    (Rank.STATED, "§{aside}{seen}(?:{right}{fully}|{likely} (?:correct )?{kind})"),
    (Rank.STATED, "§{aside}{blank}(?:{bestfits}|the answer|{thebest} {kind})"),
    (Rank.STATED, "§{aside}{blank}(?:it (?:is|must be)|wins|correct|true){stop}"),
    (Rank.STATED, "§{aside}{verdict}(?:this is )?(?:the )?(?:(?:correct|true)\\b|right{stop})"),
    (Rank.STATED, r"{item}§[^\n¶¬]{0,200}[.;:?–—|-]\s{0,2}(?:this (?:\w{1,12} )?is )?{affirms}[^\w\n]{0,4}$"),
    (
        Rank.STATED,
        r"{item}§(?:{verdict}{affirms}|[.)]?[^\S\n](?:this is )?(?:correct|true|yes))(?=[^\S\n]{0,3}(?:$|[.,;:–—|(-]))",
    ),
    (Rank.STATED, "§{aside}{right_zh}"),
    (Rank.STATED, "§{aside}~{right_after}"),
    (Rank.STATED, "§{aside}~{pick_after}"),
    (Rank.STATED, "§{aside}{blank}(?:is|remains) the only (?:{option}|{kind})(?: (?:that|which))?(?: {be})? {tells}"),
    (Rank.STATED, "(?:{option}|one) (?:that|which) {be} {right} {be}~:?~{lead}§"),
    (Rank.SUGGESTED, "§{aside}{seen}{supported}"),
    (Rank.SUGGESTED, "§{aside}{blank}(?:(?:clearly|correctly|perfectly|would) )?{fits}"),
    (Rank.TENTATIVE, "§{aside}{blank}(?:{maybe}|{possible})"),
)

_PATTERNS = {
    "concludes": "{therefore}",
    "final": r"(?:(?:the|my|our)\s+)?(?<![A-Za-z0-9])final(?:ly|ised|ized)?\b|最[終终后]",
    "ticked": (r"^[^\w\n¶]{0,8}✓[^\w\n✗¶]{0,8}(?P<letter>¶)|(?P<before>¶)(?=[^\n✗¶]{0,160}✓)"),
    # denial
    "denied_before": (r"(?:(?:{not}|n['’]t):? (?:{denied_filler} ){0,5}{open}|{not_zh}\s?{open})\Z"),
    "denied_after": (
        r"{aside}[^\S\n]{0,4}(?:"
        r"[.:–-]?\s{0,4}(?:is|are|was|were|seems?|looks?|appears?|(?:can|would|could|must) (?:all |both )?be) "
        r"(?:[a-z]{2,12} ){0,2}?{wrongly}"
        r"|[:–—→|-]?\s{0,4}(?:in\s?correct|wrong|false|not (?:correct|right|true))\b"
        r"|\s{0,3}[:–—-]\s{0,3}not\b|[:–—|-]?[^\S\n]{0,4}✗"
        r"|{verdict}{rejects}(?=[^\S\n]{0,3}(?:$|[.,;:–—|(-]))"
        r"|\s{0,3}[:–—|-]\s{0,4}(?:this|that|it)(?: (?:{kind}|choice))? is (?:[a-z]{2,12} )?{wrongly}"
        r"|{cannot}|(?:can|is|are|does|do|did|would|was)n['’]t\b"
        r"|{wrong_zh}|{denied_after})"
    ),
    "denied_line": (  # "A. T1 → T2: no change. Not correct."
        r"(?:(?!(?<![A-Za-z0-9])[A-Z](?![A-Za-z0-9]))[^\n]){0,200}?(?:✗|[.;:?–—|,-]\s{0,2}(?:so )?"
        r"(?:this\s(?:\w{1,12}\s)?is\s)?(?:{rejects}))[^\w\n✓]{0,4}$"
    ),
    "denied_set": (  # "A and B, which lie outside the lung, do not fit"
        r",[^\n.!?]{0,80}?,?[^\S\n]{1,2}(?:do|does|did|are|is|can|would)(?:n['’]t| not|not)\b"
    ),
    "denies_clause": r"{denies_clause}",
    "clause_turns": r"[.!?;。！？；।،\n]|{although}|{but}|{anew}|, (?:and|which|with|while|whereas)\b",
    # conditions and doubts
    "doubts": "(?:{doubts}|{doubts_zh})(?!.*(?:{anew}|{but}))",
    "discredits": (
        r"(?:(?:{discredits}|n['’]t\b)(?!.*{still})(?!.*(?:{anew}|{but}))"
        r"|{discredits_zh}(?!.*{still_zh})(?!.*{anew}))"
    ),
    "provided": r"[^.!?\n]{0,60}?{provided}",
    "qualifies": "{qualifies}",
    "too": r"[^.!?\n]{0,12}{too}",
    "but": r"[^.!?。！？\n¶]{0,80}{although}",
    "forced": "{forced}",
    "guesses": "{guesses}",
    "question": r"[^.!?。！？\n¶]{0,120}[?？]",
    "beside": (
        r"(?:[^\n¶¬]{0,70}?(?:{or}|[,;]|\())?\s{0,3}"
        r"(?:(?:or|and|so|is|are|does|it|maybe|possibly|perhaps|even|option|choice)\s+){0,4}"
        r"[(\[]?(?P<letter>¶)(?=[\"')\]]{0,2}\s{0,3}(?:$|[.:,;?)\n(]))"
    ),
    "or_before": (
        r"(?P<both>\b(?:both|either)\s[^\n¶]{0,20})?(?P<letter>¶)[^\n¶¬]{0,60}"
        r"\b(?:or|(?(both)and|or))\s[^\n\w]{0,3}\Z"
    ),
    "both": r"{both}\s{1,3}\Z",
    "or": "{or}|maybe|possibly|perhaps",
    "contrast": r"{contrast}|n['’]t\b",
    # corrections
    "retracts": "{sentence}{turn}{retracts}",
    "withdraws": r"[.!?。！？\n,;–—-]{turn}(?:actually,?\s)?{withdraws}",
    "reasons_on": r"(?:[.!?。！？\n])[\s*]{0,4}(?:{ah}[,.…\s]{1,4}){0,3}{reasons_on}",
    "answer_label": r"\A[^\w\n]{0,8}(?:{therefore},?~)?(?:{label}{says}|{surely}~:~){open}",
    "answer_line": r"^[^\w\n]{0,8}{label}[\"')\]]{0,2}~{sign}~{open}",
    "unfinished": r"(?:[,，、;:—–→-]|{unfinished})\Z",
    # headings
    "opener": (
        r"^(?![^\n]{0,200}{decides})[^\n]{0,160}{opens}[^\n]{0,60}:[^\w\n]{0,4}$"
        r"|{weighs}\s(?:\w{1,12}\s){0,3}{weighed}|{opens_zh}"
        r"|^[^\n]{0,120}\b(?:options?|choices?|letters?)\b[^\n]{0,120}\n(?:[^\S\n]|[:|-]){0,40}-{3,}(?:[^\S\n]|[:|-]){0,80}$"
    ),
    "heading": (
        r"^[^\w\n]{0,8}(?:\w[\w'’-]{0,20}[^\S\n]{1,2}){0,4}{headed}"
        r"(?:[^\n]{0,50}[:?？]|[^\S\n]?\w{0,12})[^\w\n]{0,4}$"
    ),
}

SENTENCE_ENDS = re.compile(r"\n+|[.!?][\"')\]]{0,2}(?=\s)|[。！？；।]")


@dataclass(frozen=True)
class Cue:
    """A pattern whose group ``letter`` is a MARK; a group ``sign`` is what separates a label from its letter.

    ``loose``: the words are those of prose, and the letter must end its clause.
    """

    pattern: re.Pattern[str]
    rank: Rank
    loose: bool


class Vocabulary:
    """The words of some languages, and every pattern with these words."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        self.languages = languages
        self._made: dict[str, re.Pattern[str]] = {}

    def words(self, name: str) -> str:
        """A regular expression of the words called ``name``; it matches nothing if no language has any."""
        entries = []
        for language in self.languages:
            table = _tables()[language]
            if found := table["words"].get(name):
                edge = table["boundary"]
                before, after = (f"(?<!{edge})", f"(?!{edge})") if edge else ("", "")
                entries.append(f"{before}(?:{'|'.join(found)}){after}")
        return f"(?:{'|'.join(entries)})" if entries else "(?!)"

    def compiled(self, pattern: str) -> re.Pattern[str]:
        """The regular expression that ``pattern`` abbreviates."""
        while (spelt := _NAME.sub(lambda part: _PARTS.get(part[1]) or self.words(part[1]), pattern)) != pattern:
            pattern = spelt
        for sign, meaning in (
            (" ", r"\s{1,4}"),
            ("~", r"\s{0,4}"),
            ("§", f"(?P<letter>{MARK})"),
            ("¶", MARK),
            ("¬", DENIED),
            ("°", OWN),
        ):
            pattern = pattern.replace(sign, meaning)
        return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

    def __getitem__(self, name: str) -> re.Pattern[str]:
        if name not in self._made:
            self._made[name] = self.compiled(_PATTERNS[name])
        return self._made[name]

    @cached_property
    def claims(self) -> tuple[Cue, ...]:
        """Every pattern of a claim."""
        return tuple(Cue(self.compiled(cue), rank, cue.endswith("{end}")) for rank, cue in _CLAIMS)


_FOLDER = files(__package__) / "words"
_NAME = re.compile(r"\{([A-Za-z]\w*)\}")


def _table(name: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 20 times as fast
    table: dict[str, Any] = yaml.load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), loader)
    return table


@cache
def _tables() -> dict[str, dict[str, Any]]:
    languages = sorted(one.name.removesuffix(".yaml") for one in _FOLDER.iterdir() if one.name.endswith(".yaml"))
    return {name: _table(name) for name in languages if name not in ("names", "abstentions")}


@cache
def names() -> dict[str, str]:
    """What makes a letter part of a name (``words/names.yaml``), as regular expressions."""
    return {name: "|".join(entries) for name, entries in _table("names").items()}


@cache
def abstentions() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """How replies begin that say a question cannot be answered, and the words by which they answer it nevertheless."""
    says, answers = ("|".join(_table("abstentions")[name]).replace(" ", r"\s{1,4}") for name in ("says", "answers"))
    says, answers = says.replace(r"\s{1,4}?", r"\s{0,4}"), rf"(?<!\w)(?:{answers})(?!\w)"
    return re.compile(rf"[^\w\n]{{0,8}}(?:(?:I['’]m |I am )?sorry,?(?: but)? )?(?:{says})", re.IGNORECASE), re.compile(
        answers, re.IGNORECASE
    )


@cache
def _vocabulary(languages: tuple[str, ...]) -> Vocabulary:
    return Vocabulary(languages)


def vocabulary_of(text: str) -> Vocabulary:
    """The words of the languages that ``text`` may be written in, by their ``signs``; English always is one.

    Of the others in Latin letters, whose words are easily confused, it is the one with the most signs.
    """
    folded = text.casefold()
    counts = {name: sum(sign in folded for sign in one["signs"]) for name, one in _tables().items()}
    latin = {name: counts[name] for name, one in _tables().items() if one.get("script") == "Latin"}
    most = max(latin.values())
    return _vocabulary(tuple(name for name, count in counts.items() if count and latin.get(name, most) == most))
