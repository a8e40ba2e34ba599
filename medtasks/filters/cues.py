r"""Words and patterns of claims, denials and corrections, in the languages that a response is written in.

Both are data: a table of words for each language in ``words/``, and the patterns of all languages in
``words/patterns.yaml``, where each claim has its rank. A pattern is compiled with the words of English and of each
language whose ``signs`` the response contains. Abbreviations: ``{name}`` is a part or a list of words, a blank is white
space, ``~`` optional white space, ``§`` the letter, ``¶`` any letter, ``¬`` a denied one, ``°`` the option's text
behind its letter. All repetitions are bounded: reading takes linear time.
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
        while (
            spelt := _NAME.sub(lambda part: _grammar()["parts"].get(part[1]) or self.words(part[1]), pattern)
        ) != pattern:
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
            self._made[name] = self.compiled(_grammar()["patterns"][name])
        return self._made[name]

    @cached_property
    def claims(self) -> tuple[Cue, ...]:
        """Every pattern of a claim."""
        claims: list[tuple[str, str]] = _grammar()["claims"]
        return tuple(Cue(self.compiled(cue), Rank[rank.upper()], cue.endswith("{end}")) for rank, cue in claims)


_FOLDER = files(__package__) / "words"
_NAME = re.compile(r"\{([A-Za-z]\w*)\}")


def _table(name: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 20 times as fast
    table: dict[str, Any] = yaml.load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), loader)
    return table


@cache
def _tables() -> dict[str, dict[str, Any]]:
    languages = sorted(one.name.removesuffix(".yaml") for one in _FOLDER.iterdir() if one.name.endswith(".yaml"))
    return {name: _table(name) for name in languages if name not in ("names", "abstentions", "patterns")}


@cache
def _grammar() -> dict[str, Any]:
    """Parts, claims and other patterns (``words/patterns.yaml``)."""
    return _table("patterns")


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
