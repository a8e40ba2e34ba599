r"""Words and patterns of claims, denials, corrections and other signs: data in ``words/``, compiled
when first used.

A file with a two-letter name is a table of words of one language; any other has patterns for one
kind of answer. A pattern of ``letters`` is compiled with the words of English and of each language
whose ``signs`` the response contains.
Abbreviations: ``{name}`` is a part, another pattern or a list of words, a blank is white space,
``~`` optional white space, ``§`` the letter, ``¶`` any letter, ``¬`` a denied one, ``°`` the
option's text behind its letter. A list is an alternative. All repetitions are bounded: reading
takes linear time.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

MARK, DENIED, OWN = "\ue000", "\ue001", "\ue002"
"""Private-use characters: a letter or an option's text that may be the answer, one that is only
denied, and an option's text right behind its letter.
"""


class Rank(IntEnum):
    """How firmly an option is called the answer: the table by which statements are weighed."""

    REPEATED = 0  # one of A, B, C, … in a row, as where the question is repeated
    MENTIONED = (
        1  # a letter or an option's text anywhere: it cannot be the answer, but contradicts a label
    )
    LISTED = 2  # a label in a list of options: "A. Pneumonia", "B. Pneumothorax", …
    LABEL = 3  # a letter before a text or in brackets, without any claim: "B. Pneumothorax"
    TENTATIVE = 4  # "It may be B."
    IMPLIED = (
        5  # "My vote goes to B": words of any kind around a letter, if no other option is left
    )
    SUGGESTED = 6  # "The findings point to B."
    STATED = 7  # "The answer is B." "B is correct."
    CONCLUDED = 8  # "Therefore B."
    ANSWER = 9  # "Answer: B" at the start of a line, a tick, a letter alone on the first line
    FINAL = 10  # "Final answer: B", a box, an answer tag


class Claim(NamedTuple):
    """A pattern whose group ``letter`` is a MARK; a group ``sign`` is what separates a label from
    its letter.

    ``loose``: the words are those of prose, and the letter must end its clause.
    """

    pattern: re.Pattern[str]
    rank: Rank
    loose: bool


class Vocabulary:
    """The patterns of a file in ``words/`` with the words of some languages (None: all), compiled
    when first used.
    """

    def __init__(self, name: str, languages: tuple[str, ...] | None = None) -> None:
        self._name, self._languages = name, languages
        self._compiled: dict[str, re.Pattern[str]] = {}
        self._rewriting: dict[str, list[tuple[re.Pattern[str], str]]] = {}

    def __getitem__(self, name: str) -> re.Pattern[str]:
        if name not in self._compiled:
            self._compiled[name] = self._compile(self.table["patterns"][name])
        return self._compiled[name]

    def rewrite(self, stage: str, text: str) -> str:
        """``text`` after the substitutions of one stage, in their order."""
        if stage not in self._rewriting:
            substitutions = self.table["substitutions"][stage]
            self._rewriting[stage] = [(self._compile(old), new) for old, new in substitutions]
        for pattern, replacement in self._rewriting[stage]:
            text = pattern.sub(replacement, text)
        return text

    @property
    def table(self) -> dict[str, Any]:
        """The file as it is."""
        return _table(self._name)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """Every pattern of a claim."""
        claims: list[tuple[str, str]] = self.table["claims"]
        return tuple(
            Claim(self._compile(text), Rank[rank.upper()], text.endswith("{end}"))
            for rank, text in claims
        )

    def _compile(self, pattern: str | list[str]) -> re.Pattern[str]:
        spelt = _alternatives(pattern)
        while (longer := _NAME.sub(lambda part: self.part(part[1]), spelt)) != spelt:
            spelt = longer
        for sign, meaning in _SIGNS.items():
            spelt = spelt.replace(sign, meaning)
        return re.compile(spelt, re.IGNORECASE | re.MULTILINE)

    def part(self, name: str) -> str:
        """A part of patterns, or the words called ``name``; it matches nothing if no language has
        any.
        """
        if part := self.table.get("parts", {}).get(name):
            return _alternatives(part)
        if column := [row[name] for row in self.table.get("formats", ()) if name in row]:
            return _alternatives(column)
        entries = []
        for language in _languages() if self._languages is None else self._languages:
            table = _table(language)
            if words := table["words"].get(name):
                edge = table["boundary"]
                before, after = (f"(?<!{edge})", f"(?!{edge})") if edge else ("", "")
                entries.append(before + _alternatives(words) + after)
        return _alternatives(entries or ["(?!)"])


_SIGNS = {
    " ": r"\s{1,4}",
    "~": r"\s{0,4}",
    "§": f"(?P<letter>{MARK})",
    "¶": MARK,
    "¬": DENIED,
    "°": OWN,
}
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
    tables = [
        file.name.removesuffix(".yaml") for file in files(__package__).joinpath("words").iterdir()
    ]
    return {name: _table(name) for name in sorted(tables) if len(name) == 2}


@cache
def _letters(languages: tuple[str, ...]) -> Vocabulary:
    return Vocabulary("letters", languages)


@lru_cache(maxsize=16)  # several steps ask for a reply's
def vocabulary_of(text: str) -> Vocabulary:
    """The patterns of ``letters`` for the languages that ``text`` may be written in, by their
    ``signs``, and English.

    Of the others in Latin letters, whose words are easily confused, it is the one with the most
    signs.
    """
    folded = f" {text.casefold()}"
    counts = {
        name: sum(sign in folded for sign in table["signs"]) for name, table in _languages().items()
    }
    latin = {
        name: counts[name] for name, table in _languages().items() if table.get("script") == "Latin"
    }
    most = max(latin.values())
    return _letters(
        tuple(name for name, count in counts.items() if count and latin.get(name, most) == most)
    )
