"""The models of a board: the organiser's facts about them, and names that tell them apart."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator

from medtasks.core.errors import DataError
from medtasks.core.schema import first_problem
from medtasks.core.yaml_files import MarkedLoader, read_yaml
from medtasks.judge.families import family_of

from ..schema.board import BoardModel, BoardRun
from ..schema.published_figures import Trained
from ..verify.model_identity import CHECKPOINT_NAMES, NO_IDENTITY

_FIRST = ("model", "presentation", "revision", "peft", "dtype")
"""The most informative facts, which come first in a name; all others follow by name."""
_LAST = ("fingerprint",)
_DIGITS = 8
"""Of a hash in a name."""
_MOST = 3
"""The most facts that are combined before the slug's hash is used."""
Facts = Mapping[str, str]
M = TypeVar("M", bound=BaseModel)

Text = Annotated[str, Field(min_length=1, max_length=500)]


class Described(BaseModel, frozen=True, extra="forbid"):
    """An organiser's facts about a model; the others come from its runs."""

    name: Text | None = None
    family: Text | None = None
    size: Text | None = None
    type: Literal["closed", "general", "medical"] | None = None
    link: Text | None = None
    trained: dict[str, Trained] = {}
    notes: tuple[Text, ...] = ()

    @field_validator("link")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        """The link, which must be a web address without credentials."""
        if value is None:
            return None
        parts = urlsplit(value)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
        has_credentials = bool(parts.username or parts.password)
        if not is_web or has_credentials or not value.isprintable() or " " in value:
            raise ValueError(
                "expected a web address such as https://example.org/model, without credentials"
            )
        return value


Models = Mapping[str, Described]
"""A file of models: facts by slug, name or glob, in the order of the file."""


class _ModelsLoader(MarkedLoader):
    """Reads ``0.530`` and ``no`` as texts; only ``null`` is special."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # PyYAML's own attribute

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a YAML node.

        Raises:
            ConstructorError: a key is duplicated; PyYAML itself would use its last value.
        """
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        duplicated = sorted(str(key) for key in keys if keys.count(key) > 1)
        if duplicated:
            problem = f"key {duplicated[0]!r} is duplicated"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        content: dict[Any, Any] = super().construct_mapping(node, deep)
        return content


_ModelsLoader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile("(~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)


def read_by_model(path: Path, kind: type[M]) -> dict[str, M]:
    """The entries of a YAML file of slugs, names or globs of names, each read as ``kind``.

    Raises:
        DataError: the file cannot be read; names file, model and field of what is wrong.
    """
    loaded = read_yaml(path, DataError, _ModelsLoader)
    if not isinstance(loaded, dict) or not loaded:
        raise DataError(
            f"{path}: has no models, expected a mapping of names to facts; fix the file."
        )
    entries = {}
    for name, facts in loaded.items():
        place = f"{path}: model {str(name)[:80]!r}"
        if not isinstance(facts, dict):
            expected = ", ".join(kind.model_fields)
            raise DataError(
                f"{place} is {str(facts)[:80]!r}, expected fields from {expected}; fix it."
            )
        try:
            entries[str(name)] = kind.model_validate(facts)
        except ValidationError as error:
            raise DataError(f"{place}, {first_problem(error, kind)}; fix it.") from error
    return entries


def model_facts(run: BoardRun, models: Models | None = None) -> BoardModel:
    """The model of a run as the board shows it: the organiser's facts, or what its name reveals."""
    name = str(run.model_facts.get("name", run.model))
    described = find(models or {}, run.model, name) or Described()
    if "policy" in run.model_facts:
        family, kind = "baseline", "baseline"
    else:
        architecture = str(run.model_facts.get("architecture", ""))
        family = ", ".join(family_of(name) or family_of(architecture))
        kind = "unknown"
    recorded: dict[str, Trained] = dict.fromkeys(run.trained_on, "yes")
    return BoardModel(
        slug=run.model,
        name=described.name or name,
        family=described.family or family or "unknown",
        type=described.type or kind,
        trained={**dict.fromkeys(run.data, "unknown"), **described.trained, **recorded},
        trained_on=run.trained_on,
        size=described.size,
        link=described.link,
        notes=described.notes,
    )


def find(entries: Mapping[str, M], slug: str, name: str) -> M | None:
    """The entry for a model: by its slug, its name, or the first glob that matches the name."""
    if slug in entries:
        return entries[slug]
    names = (name.casefold(), name.rpartition("/")[2].casefold())
    for key, entry in entries.items():
        if key.casefold() in names:
            return entry
    for key, entry in entries.items():
        glob = key.casefold()
        if any(fnmatch.fnmatchcase(spelling, glob) for spelling in names):
            return entry
    return None


def distinct_names(names: Mapping[str, str], facts: Mapping[str, Facts]) -> dict[str, str]:
    """The names by slug, of which equal ones are followed by what tells their models apart.

    That is the smallest set of facts (`BoardRun.model_facts`) in which these models all differ; if
    `_MOST` facts are not enough, the slug's hash is added.
    """
    same_name: dict[str, list[str]] = defaultdict(list)
    for slug, name in sorted(names.items()):
        same_name[name.casefold()].append(slug)
    distinct = dict(names)
    for slugs in same_name.values():
        if len(slugs) == 1:
            continue
        remarks = _distinguishing_facts(slugs, facts)
        for slug, remark in zip(slugs, remarks, strict=True):
            if remark:
                distinct[slug] = f"{names[slug]} ({remark})"
    return distinct


def _distinguishing_facts(slugs: Sequence[str], facts: Mapping[str, Facts]) -> list[str]:
    """For each of the models, the facts in words that none of the others shares."""
    models = [facts.get(slug, {}) for slug in slugs]
    differing = _differing_keys(models)
    for number in range(1, _MOST + 1):
        for keys in combinations(differing, number):
            remarks = [_in_words(model, keys) for model in models]
            if len(set(remarks)) == len(remarks):
                return remarks
    remarks = []
    for slug, model in zip(slugs, models, strict=True):
        parts = (_in_words(model, differing[:_MOST]), slug[-_DIGITS:])
        remarks.append(", ".join(filter(None, parts)))
    return remarks


def _differing_keys(models: Sequence[Facts]) -> list[str]:
    """The facts that may tell models apart and differ between these, most informative first."""
    stated = set().union(*models)
    usable = stated - NO_IDENTITY - {"name", "seed", *CHECKPOINT_NAMES}
    if "model" in stated:
        usable.add("model")
    middle = sorted(usable.difference(_FIRST, _LAST))
    differing = []
    for key in (*_FIRST, *middle, *_LAST):
        values = {model.get(key) for model in models}
        if key in usable and len(values) > 1:
            differing.append(key)
    return differing


def _in_words(model: Facts, keys: Iterable[str]) -> str:
    """The model's facts with these keys, such as ``dtype float16, adapter 1a2b3c4d``."""
    words = [_fact_in_words(key, model[key]) for key in keys if key in model]
    return ", ".join(filter(None, words))


def _fact_in_words(key: str, value: str) -> str:
    """A fact about a model in a few words, with long hashes shortened."""
    if key == "model":
        return value
    if key == "presentation":
        return "simple interface" if '"simple"' in value else "own system prompt"
    if key == "peft":
        match = re.search(r'"fingerprint": "(\w+)"', value)
        return f"adapter {match[1][:_DIGITS] if match else value}"
    if key == "fingerprint":
        value = value[:_DIGITS]
    return f"{key.replace('_', ' ')} {value}"
