"""Distinct names for models that share one, from the facts in their runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from .models import CHECKPOINT_NAMES, NO_IDENTITY

_FIRST = ("model", "presentation", "revision", "peft", "dtype")
"""The most telling facts come first; then all others, by name."""
_LAST = ("fingerprint",)
_DIGITS = 8
_MOST = 3
"""The most facts that are combined before the slug's hash is used."""
Facts = Mapping[str, str]


def told_apart(names: Mapping[str, str], facts: Mapping[str, Facts]) -> dict[str, str]:
    """The names by slug; equal ones are followed by the facts in which their models differ.

    Args:
        names: by slug.
        facts: `RunFacts.model_facts` of a run of each model, by slug.

    >>> told_apart({"a-1": "m", "b-2": "m", "c-3": "n"}, {"a-1": {"model": "vllm"}, "b-2": {"model": "openai"}})
    {'a-1': 'm (vllm)', 'b-2': 'm (openai)', 'c-3': 'n'}
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for slug, name in names.items():
        alike[name.casefold()].append(slug)
    found = dict(names)
    for slugs in alike.values():
        if len(slugs) > 1:
            words = _words({slug: facts.get(slug, {}) for slug in sorted(slugs)})
            found.update({slug: f"{names[slug]} ({said})" for slug, said in words.items() if said})
    return found


def _words(facts: Mapping[str, Facts]) -> dict[str, str]:
    """By slug the fewest facts in which all differ; if a few are not enough, with the slug's hash."""
    differing = [key for key in _ordered(facts) if len({one.get(key) for one in facts.values()}) > 1]
    for number in range(1, _MOST + 1):
        for keys in combinations(differing, number):
            words = {slug: _said(one, keys) for slug, one in facts.items()}
            if len(set(words.values())) == len(words):
                return words
    keys = tuple(differing[:_MOST])
    return {slug: ", ".join(filter(None, (_said(one, keys), slug[-_DIGITS:]))) for slug, one in facts.items()}


def _ordered(facts: Mapping[str, Facts]) -> list[str]:
    known = {key for one in facts.values() for key in one} - NO_IDENTITY - {"name", "seed", *CHECKPOINT_NAMES}
    known |= {"model"} & {key for one in facts.values() for key in one}
    others = sorted(known - {*_FIRST, *_LAST})
    return [key for key in (*_FIRST, *others, *_LAST) if key in known]


def _said(facts: Facts, keys: Sequence[str]) -> str:
    return ", ".join(word for key in keys if (word := _word(key, facts.get(key))))


def _word(key: str, value: str | None) -> str:
    if value is None:
        return ""
    if key == "model":
        return value
    if key == "presentation":
        return "simple interface" if '"simple"' in value else "own system prompt"
    if key == "peft":
        found = re.search(r'"fingerprint": "(\w+)"', value)
        return f"adapter {found[1][:_DIGITS] if found else value}"
    return f"{key.replace('_', ' ')} {value[:_DIGITS] if key == 'fingerprint' else value}"
