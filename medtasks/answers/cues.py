r"""Words and patterns of claims, denials, corrections and other cues: data in ``words/``, compiled when first used.

A file with a two-letter name is a table of words of one language; any other has patterns for one kind of answer. A
pattern of ``letters`` is compiled with the words of English and of each language whose ``signs`` the response contains.
Abbreviations: ``{name}`` is a part, another pattern or a list of words, a blank is white space, ``~`` optional white
space, ``§`` the letter, ``¶`` any letter, ``¬`` a denied one, ``°`` the option's text behind its letter. A list is an
alternative. All repetitions are bounded: reading takes linear time.
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


class Cues:
    """The patterns of a file in ``words/`` with the words of some languages (None: all), compiled when first used."""

    def __init__(self, name: str, languages: tuple[str, ...] | None = None) -> None:
        self._name, self._languages = name, languages
        self._compiled: dict[str, re.Pattern[str]] = {}

    def __getitem__(self, name: str) -> re.Pattern[str]:
        if name not in self._compiled:
            self._compiled[name] = self._compile(_table(self._name)["patterns"][name])
        return self._compiled[name]

    @cached_property
    def claims(self) -> tuple[Cue, ...]:
        """Every pattern of a claim."""
        claims: list[tuple[str, str]] = _table(self._name)["claims"]
        return tuple(Cue(self._compile(cue), Rank[rank.upper()], cue.endswith("{end}")) for rank, cue in claims)

    def _compile(self, pattern: str | list[str]) -> re.Pattern[str]:
        """The regular expression that ``pattern`` abbreviates."""
        spelt = _alternatives(pattern)
        while (longer := _NAME.sub(lambda part: self.part(part[1]), spelt)) != spelt:
            spelt = longer
        for sign, meaning in _SIGNS.items():
            spelt = spelt.replace(sign, meaning)
        return re.compile(spelt, re.IGNORECASE | re.MULTILINE)

    def part(self, name: str) -> str:
        """A part of patterns, or the words called ``name``; it matches nothing if no language has any."""
        if part := _table(self._name).get("parts", {}).get(name):
            return _alternatives(part)
        entries = []
        for language in _languages() if self._languages is None else self._languages:
            table = _table(language)
            if words := table["words"].get(name):
                edge = table["boundary"]
                before, after = (f"(?<!{edge})", f"(?!{edge})") if edge else ("", "")
                entries.append(before + _alternatives(words) + after)
        return _alternatives(entries or ["(?!)"])


_SIGNS = {" ": r"\s{1,4}", "~": r"\s{0,4}", "§": f"(?P<letter>{MARK})", "¶": MARK, "¬": DENIED, "°": OWN}
_NAME = re.compile(r"\{([A-Za-z]\w*)\}")


def _alternatives(pattern: str | list[str]) -> str:
    return pattern if isinstance(pattern, str) else f"(?:{'|'.join(pattern)})"


@cache
def _table(name: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 20 times as fast
    text = files(__package__).joinpath(f"words/{name}.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, loader)
    return table


@cache
def _languages() -> dict[str, dict[str, Any]]:
    tables = [file.name.removesuffix(".yaml") for file in files(__package__).joinpath("words").iterdir()]
    return {name: _table(name) for name in sorted(tables) if len(name) == 2}


@cache
def names() -> dict[str, str]:
    """What makes a letter part of a name (``words/names.yaml``), as regular expressions."""
    return {name: "|".join(entries) for name, entries in _table("names").items()}


@cache
def _letters(languages: tuple[str, ...]) -> Cues:
    return Cues("letters", languages)


def cues_of(text: str) -> Cues:
    """The cues of the languages that ``text`` may be written in, by their ``signs``; English always is one.

    Of the others in Latin letters, whose words are easily confused, it is the one with the most signs.
    """
    folded = text.casefold()
    counts = {name: sum(sign in folded for sign in table["signs"]) for name, table in _languages().items()}
    latin = {name: counts[name] for name, table in _languages().items() if table.get("script") == "Latin"}
    most = max(latin.values())
    return _letters(tuple(name for name, count in counts.items() if count and latin.get(name, most) == most))
