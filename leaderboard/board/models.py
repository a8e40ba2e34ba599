"""The model of a run: its slug, its name on a board, and the organiser's facts about it."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator

from medtasks.core.errors import DataError
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.redaction import is_secret, shown
from medtasks.core.schema import first_problem
from medtasks.core.yaml_files import MarkedLoader, read_yaml
from medtasks.judge.families import family_of
from medtasks.runs.manifest import RunManifest

from .board import BoardModel, BoardRun, Trained

_SELF_DESCRIBED = ("medtasks_vlm", "medtasks_baseline", "medtasks_replay")
CHECKPOINT_NAMES = (
    "checkpoint",
    "pretrained",
    "model_name",
    "model_id",
    "model_version",
    "model",
    "path",
    "engine",
)
"""Facts that name the model itself; beside ``checkpoint``, ``model`` is the back-end."""
NO_IDENTITY = frozenset(
    {
        # where and how fast it ran
        "processes", "num_processes", "cluster", "device",
        "device_map", "batch_size", "max_batch_size", "num_concurrent",
        "concurrency", "timeout", "max_retries", "retries", "tensor_parallel_size", "data_parallel_size", "threads",
        "gpu_memory_utilization", "max_num_seqs", "nproc_per_node", "use_cache", "attn_implementation", "base_url",
        "api_key_env", "predictions", "layout", "epoch",
        # counted or derived while it ran
        "ignored_generation_settings", "fingerprint_method", "generation_defaults", "parameters",
        "architecture", "torch", "transformers", "rows", "identical_repeats", "unmatched", "answered", "missing",
        # the same model, run without media
        "blind",
    }
)  # fmt: skip
LONGEST = 48
_FIRST = ("model", "presentation", "revision", "peft", "dtype")
"""The most informative facts come first, then all others by name."""
_LAST = ("fingerprint",)
_DIGITS = 8
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
        if value is None:
            return None
        parts = urlsplit(value)
        plain = (
            value.isprintable() and " " not in value and not parts.username and not parts.password
        )
        if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
            raise ValueError(
                "expected a web address such as https://example.org/model, without credentials"
            )
        return value


Models = Mapping[str, Described]
"""A file of models: facts by slug, name or glob, in the order of the file."""


def model_name(manifest: RunManifest) -> str:
    """The model's name: a hub id or the last part of a path; for a baseline its policy with the
    settings, for predictions without a name that of their file.
    """
    facts = model_arguments(manifest)
    if facts.get("policy"):
        settings = [
            f"{key} {facts[key]}"
            for key in ("accuracy", "answer", "seed")
            if facts.get(key) is not None
        ]
        return f"{facts['policy']} ({', '.join(settings)})" if settings else str(facts["policy"])
    if manifest.model.get("model") == "medtasks_replay" and facts.get("file"):
        return Path(shown(facts["file"])).stem
    if manifest.is_imported and facts.get("model") == "unknown" and facts["layout"] != "python":
        return Path(shown(facts["predictions"])).stem
    names = [facts.get(key) for key in CHECKPOINT_NAMES]
    name = next((one for one in names if isinstance(one, str) and one.strip()), "unknown")
    adapter = facts.get("peft")
    adapter = adapter.get("path") if isinstance(adapter, Mapping) else adapter
    return shown(name) + (f" + {shown(adapter)}" if adapter else "")


def model_key(manifest: RunManifest) -> str:
    """The model's slug: the end of its name and a hash of all that identifies it; safe in addresses
    and file names.

    Neither `NO_IDENTITY` nor seeds (except a baseline's) identify a model; of local paths only the
    last part does.
    """
    facts = model_arguments(manifest)
    kept = {  # adapters, like weights, are identified by their fingerprint if they have one
        key: shown(
            value["fingerprint"]
            if isinstance(value, Mapping) and value.get("fingerprint")
            else value
        )
        for key, value in facts.items()
        if value not in (None, "") and key not in NO_IDENTITY and not is_secret(key)
    }
    if not facts.get("policy"):
        kept.pop("seed", None)
    if "fingerprint" in kept:  # weights in another directory are the same weights
        kept.pop("pretrained", None)
        kept.pop("checkpoint", None)
    if manifest.model.get("layout") and manifest.model.get("model") != "unknown":
        kept.pop("sha256", None)  # the model of these predictions is identified by its name
    word = model_name(manifest).rpartition("/")[2].casefold()
    word = re.sub(r"[^a-z0-9.]+|\.(?![a-z0-9])|(?<![a-z0-9])\.", "-", word)
    word = re.sub(r"-+", "-", word)[:LONGEST].strip("-.")
    return f"{word or 'model'}-{short_hash(canonical_json(kept))[:8]}"


def model_arguments(manifest: RunManifest) -> dict[str, Any]:
    """The manifest's facts about the model; if these are only the back-end's name, also its
    arguments.
    """
    facts = dict(manifest.model)
    if "layout" not in facts and (facts.get("model") in _SELF_DESCRIBED or "checkpoint" in facts):
        return facts
    given = manifest.settings.get("model_args")
    if not isinstance(given, Mapping):
        pairs = (entry.partition("=") for entry in str(given or "").split(","))
        given = {key.strip(): value for key, _, value in pairs if key.strip()}
    return {**facts, **given, **({"backend": facts.get("model")} if "model" in given else {})}


class _Loader(MarkedLoader):
    """``0.530`` keeps its digits and ``no`` is not a boolean; only ``null`` is special."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # PyYAML's own attribute

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if repeated := sorted(str(key) for key in keys if keys.count(key) > 1):
            mark = node.start_mark
            raise yaml.constructor.ConstructorError(
                None, None, f"key {repeated[0]!r} is duplicated", mark
            )
        content: dict[Any, Any] = super().construct_mapping(node, deep)
        return content


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile("(~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)


def read_by_model(path: Path, kind: type[M]) -> dict[str, M]:
    """The entries of a YAML file of slugs, names or globs of names, each read as ``kind``;
    `DataError` names file, model and field of what is wrong.
    """
    loaded = read_yaml(path, DataError, _Loader)
    if not isinstance(loaded, dict) or not loaded:
        raise DataError(
            f"{path}: has no models, expected a mapping of names to facts; fix the file."
        )
    entries = {}
    for name, facts in loaded.items():
        place = f"{path}: model {str(name)[:80]!r}"
        if not isinstance(facts, dict):
            known = ", ".join(kind.model_fields)
            raise DataError(
                f"{place} is {str(facts)[:80]!r}, expected fields from {known}; fix it."
            )
        try:
            entries[str(name)] = kind.model_validate(facts)
        except ValidationError as error:
            raise DataError(f"{place}, {first_problem(error, kind)}; fix it.") from error
    return entries


def model_facts(run: BoardRun, models: Models | None = None) -> BoardModel:
    """The model of a run as the board shows it: the organiser's facts, or what its name reveals."""
    name = str(run.model_facts.get("name", run.model))
    given = find(models or {}, run.model, name) or Described()
    families = family_of(name) or family_of(str(run.model_facts.get("architecture", "")))
    family, kind = (
        ("baseline", "baseline")
        if "policy" in run.model_facts
        else (", ".join(families), "unknown")
    )
    return BoardModel(
        slug=run.model,
        name=given.name or name,
        family=given.family or family or "unknown",
        type=given.type or kind,
        trained={**dict.fromkeys(run.data, "unknown"), **given.trained},
        **given.model_dump(include={"size", "link", "notes"}),
    )


def find(entries: Mapping[str, M], slug: str, name: str) -> M | None:
    """The entry for a model: by its slug, else by its name, else by the first glob that matches the
    name.
    """
    names = (name.casefold(), name.rpartition("/")[2].casefold())
    named = [entry for key, entry in entries.items() if key.casefold() in names]
    globs = [
        entry
        for key, entry in entries.items()
        if any(fnmatch.fnmatchcase(one, key.casefold()) for one in names)
    ]
    return entries.get(slug) or next(iter((*named, *globs)), None)


def distinct_names(names: Mapping[str, str], facts: Mapping[str, Facts]) -> dict[str, str]:
    """The names by slug; equal ones are followed by the smallest set of facts
    (`BoardRun.model_facts`) in which their models all differ; if `_MOST` are not enough, the slug's
    hash is added.
    """
    same_name: dict[str, list[str]] = defaultdict(list)
    for slug, name in sorted(names.items()):
        same_name[name.casefold()].append(slug)
    found = dict(names)
    for slugs in same_name.values():
        if len(slugs) == 1:
            continue
        of = [facts.get(slug, {}) for slug in slugs]
        stated = {key for one in of for key in one}
        known = (stated - NO_IDENTITY - {"name", "seed", *CHECKPOINT_NAMES}) | (stated & {"model"})
        ordered = [*_FIRST, *sorted(known - {*_FIRST, *_LAST}), *_LAST]
        differing = [
            key for key in ordered if key in known and len({one.get(key) for one in of}) > 1
        ]
        sets = (
            _described(of, keys)
            for number in range(1, _MOST + 1)
            for keys in combinations(differing, number)
        )
        words = next((one for one in sets if len(set(one)) == len(one)), [])
        if not words:
            some = zip(_described(of, differing[:_MOST]), slugs, strict=True)
            words = [", ".join(filter(None, (text, slug[-_DIGITS:]))) for text, slug in some]
        found.update(
            {
                slug: f"{names[slug]} ({text})"
                for slug, text in zip(slugs, words, strict=True)
                if text
            }
        )
    return found


def _described(several: Iterable[Facts], keys: Iterable[str]) -> list[str]:
    return [
        ", ".join(filter(None, (_in_words(key, one[key]) for key in keys if key in one)))
        for one in several
    ]


def _in_words(key: str, value: str) -> str:
    if key == "model":
        return value
    if key == "presentation":
        return "simple interface" if '"simple"' in value else "own system prompt"
    if key == "peft":
        found = re.search(r'"fingerprint": "(\w+)"', value)
        return f"adapter {found[1][:_DIGITS] if found else value}"
    return f"{key.replace('_', ' ')} {value[:_DIGITS] if key == 'fingerprint' else value}"
