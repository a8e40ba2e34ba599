"""Reproducibility signatures: one line with all that affects a score but the model; equal lines are comparable.

Modelled on sacrebleu's: ``key:value`` parts separated by bars, the metric's own first (``metrics/base.py`` there).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from medtasks.answers import StatedConfidenceFilter
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.core.files import HASH_LENGTH, canonical_json, short_hash
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import UNKNOWN_PROMPT, RunManifest, filter_versions

_OURS = (
    "task",
    "group",
    "version",
    "filters",
    "prompt",
    "protocol",
    "data",
    "items",
    "subset",
    "blind",
    "harness",
    "judge",
    "confidence-of",
    "timing",
)
_NAMES = {
    "version": "task version",
    "protocol": "protocol (task file, metrics, generation settings, frames)",
    "data": "data",
    "harness": "harness options",
    "timing": "timing of streams (law, scale, default tolerance)",
    "split": "sentence splitter of METEOR (NLTK's punkt_tab, or none)",
}
_HASH = re.compile(rf"[0-9a-f]{{{HASH_LENGTH}}}")
_SAFE = ",;=+()/@*"
_HARNESS_OPTIONS: dict[str, tuple[Any, ...]] = {
    "num_fewshot": (None, 0),
    "repeats": (None, 1),
    "system_instruction": (None, ""),
    "apply_chat_template": (None, False),
    "fewshot_as_multiturn": (None, False),
}
"""Harness options that change what the model is asked, regardless of the task file, with their defaults."""
_JUDGED = "content_open"
_MADE_OF = {
    "content": (_JUDGED,),
    "content_fallback": (_JUDGED, "content_closed_fallback"),
    "overall": (_JUDGED,),
    "overall_stream_length": (_JUDGED,),
    "overall_table4": (_JUDGED,),
    "overall_table4_eq10": (_JUDGED,),
}
"""Metrics that include judged ones (`medtasks.benchmarks.streams`). If all open answers of a model are decided by
rule, its score includes no verdict, but it was judged like the others."""


def signatures(
    manifest: RunManifest, name: str, scored: Mapping[str, str], sample_ids: Iterable[str], elsewhere: Collection[str]
) -> dict[str, str]:
    """The signatures by metric of the scores over all items of a task or group.

    Args:
        manifest: of the run.
        name: of a task, or of a group in the run.
        scored: `medtasks.runs.scores.MetricScore.signature` by metric.
        sample_ids: of all samples in the scores, in any order.
        elsewhere: the metrics that were computed elsewhere, by the package versions in the manifest.

    Raises:
        UsageError: the run has no such task or group.
    """
    protocol = _protocol_parts(manifest, name, sample_ids)
    versions = {**manifest.versions, **(manifest.scored or {})}
    found = {}
    for metric, text in scored.items():
        own, judges = _own_parts(text, versions if metric in elsewhere else {})
        further = {**_confidence(manifest, name, metric), **_timing(manifest, name, metric)}
        found[metric] = format_signature({**own, **protocol, **further, **_judge(manifest, name, metric, judges)})
    return found


def changed_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The harness options in a run's settings that change what the model is asked, without those at their default."""
    options = {key: settings.get(key) for key in _HARNESS_OPTIONS}
    return {key: value for key, value in options.items() if value not in _HARNESS_OPTIONS[key]}


def format_signature(parts: Mapping[str, str]) -> str:
    """The parts as one line: the value of ``metric``, then the others as ``key:value``, or only the key if it is empty.

    ``|``, ``:``, ``%``, blanks and all other than plain ASCII are percent-encoded as in URLs (``%7C``).
    """
    others = [(key, value) for key, value in parts.items() if key != "metric"]
    words = [f"{_quoted(key)}:{_quoted(value)}" if value else _quoted(key) for key, value in others]
    return "|".join([_quoted(parts.get("metric", "")), *words])


def parse_signature(text: str) -> dict[str, str]:
    """The parts in a line by :func:`format_signature`, in their order.

    Raises:
        UsageError: a key is duplicated, or a part is empty.
    """
    first, *words = text.split("|")
    parts = {"metric": _plain(first)}
    for word in words:
        key, _, value = word.partition(":")
        if not key or _plain(key) in parts:
            raise UsageError(f"signature {text[:200]!r}: part {word!r} has no key; restore the signature.")
        parts[_plain(key)] = _plain(value)
    return parts


def differences(one: str, other: str) -> list[str]:
    """How ``one`` differs from ``other``, a short sentence for each part; empty if they are equal.

    Sample differences are omitted when the subsets differ.

    Raises:
        UsageError: as :func:`parse_signature`.
    """
    here, there = parse_signature(one), parse_signature(other)
    differing = [key for key in dict.fromkeys((*here, *there)) if here.get(key) != there.get(key)]
    return [
        _sentence(key, here.get(key), there.get(key))
        for key in differing
        if key != "items" or "subset" not in differing
    ]


def _sentence(key: str, here: str | None, there: str | None) -> str:
    name = _NAMES.get(key, key)
    if key == "items" and here and there:
        first, second = (value.partition("-")[0] for value in (here, there))
        return (
            f"other samples ({first} in both)"
            if first == second
            else f"{first} {'sample' if first == '1' else 'samples'} instead of {second}"
        )
    if key == "blind":
        return "blind: prompts without media" if here else "prompts with media instead of blind"
    if here is None:
        return f"no {name} instead of {_short_value(there)}"
    return f"{name} {_short_value(here)} instead of {'none' if there is None else _short_value(there)}"


def _short_value(value: str | None) -> str:
    """A value as shown in a sentence, with hashes shortened."""
    if not value:
        return "set"
    if value.startswith(f"{UNKNOWN_PROMPT};"):
        return UNKNOWN_PROMPT
    return _HASH.sub(lambda found: found[0][:8] + "…", value)


def _quoted(text: str) -> str:
    return quote(text, safe=_SAFE, errors="surrogatepass")


def _plain(text: str) -> str:
    return unquote(text, errors="surrogatepass")


def _own_parts(scored: str, in_manifest: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """The metric's own settings, and the judges that contributed to the score."""
    first, *words = scored.split("|")
    parts = {"metric": first}
    judges: set[str] = set()
    for word in words:
        key, _, value = word.partition(":")
        if key == "judge":
            judges.add(value)
            continue
        while key in parts or key in _OURS or not key:  # metrics of other packages may use any key
            key = f"metric.{key}"
        parts[key] = in_manifest.get(key, value)
    return parts, judges


def _protocol_parts(manifest: RunManifest, name: str, sample_ids: Iterable[str]) -> dict[str, str]:
    members = _members(manifest, name)
    facts = {task: manifest.tasks[task] for task in members}
    protocols = {task: one.protocol_hash for task, one in facts.items()}
    ids = sorted(sample_ids)
    asked = changed_options(manifest.settings)
    benchmarks = sorted({one.benchmark for one in facts.values()})
    parts = {
        "task" if name in manifest.tasks else "group": name,
        **_versions({task: (one.version, one.filters) for task, one in facts.items()}),
        "prompt": _combined({task: _prompt(manifest, one.prompt_hash) for task, one in facts.items()}),
        "protocol": protocols[name] if name in manifest.tasks else _hash(protocols),
        "data": _combined({one: _fingerprint(manifest, one) for one in benchmarks}),
        "items": f"{len(ids)}-{_hash(ids)}",
    }
    if any(one.subset for one in facts.values()):
        parts["subset"] = _combined({task: one.subset for task, one in facts.items()})
    if any(one.blind for one in facts.values()):
        parts["blind"] = "yes"
    if asked:
        parts["harness"] = _hash(asked)
    return parts


def versions_today(tasks: Iterable[str]) -> dict[str, str]:
    """The parts of a signature for the versions of task files and filters that are installed here."""
    specs = {task: load_spec(task) for task in tasks}
    return _versions({task: (one.metadata.version, filter_versions(one)) for task, one in specs.items()})


def _versions(tasks: Mapping[str, tuple[float, Mapping[str, str]]]) -> dict[str, str]:
    """The parts of a signature for versions of task files, and of their filters by name."""
    # sorted, as in a manifest that was read; their order of use is part of the protocol hash
    filters = {task: ",".join(map("=".join, sorted(names.items()))) for task, (_, names) in tasks.items()}
    return {
        "version": _combined({task: f"{version:g}" for task, (version, _) in tasks.items()}),
        "filters": _combined(filters),
    }


def _members(manifest: RunManifest, name: str) -> Sequence[str]:
    members = (name,) if name in manifest.tasks else manifest.groups.get(name, ())
    lacking = [task for task in members if task not in manifest.tasks]
    if lacking or not members:
        problem = (
            f"the run's manifest has no task {lacking[0]!r} of group" if lacking else "the run has no task or group"
        )
        raise UsageError(f"{problem} {name!r}; name one of {', '.join((*manifest.tasks, *manifest.groups))}.")
    return members


def _prompt(manifest: RunManifest, prompt_hash: str) -> str:
    """The prompt hash; an unknown prompt equals no other, so it is identified by what made the responses."""
    return f"{UNKNOWN_PROMPT};{_hash(manifest.model)}" if prompt_hash in (UNKNOWN_PROMPT, "") else prompt_hash


def _fingerprint(manifest: RunManifest, benchmark: str) -> str:
    facts = manifest.data.get(benchmark)
    if facts is None:
        raise UsageError(f"the run's manifest has no `data` of {benchmark}; restore it.")
    return facts.fingerprint[:HASH_LENGTH]


def _confidence(manifest: RunManifest, name: str, metric: str) -> dict[str, str]:
    """What the tasks declare to be the confidence of an answer, and to be right."""
    texts = {}
    for task in _members(manifest, name) if metric in CONFIDENCE_NAMES else ():
        if (one := load_spec(task).metadata.confidence) is not None:
            read_by = f";filter={StatedConfidenceFilter.version}" * (one.of == "stated")
            texts[task] = f"{one.of};right={one.correct}{read_by}"
    return {"confidence-of": _combined(texts)} if texts else {}


def _timing(manifest: RunManifest, name: str, metric: str) -> dict[str, str]:
    """What the tasks declare about times, as far as the metric depends on it."""
    fields: tuple[str, ...] = getattr(get_metric(metric), "timing", ())
    texts = {}
    for task in _members(manifest, name) if fields else ():
        if (one := load_spec(task).metadata.timing) is not None:
            texts[task] = ",".join(f"{field.replace('_', '-')}={getattr(one, field)}" for field in fields)
    return {"timing": _combined(texts)} if texts else {}


def _judge(manifest: RunManifest, name: str, metric: str, judges: set[str]) -> dict[str, str]:
    """The panels by task from the manifest, with those that only the score names."""
    judged = {metric, *_MADE_OF.get(metric, ())}
    rubrics = [one for one in manifest.judge.values() if judged & set(one.rubric.metrics)]
    by_task = {
        task: ",".join(sorted({one.judge_hash for one in rubrics if task in one.tasks}))
        for task in _members(manifest, name)
    }
    by_task = {task: found for task, found in by_task.items() if found}
    combined = {judge for found in by_task.values() for judge in found.split(",")}
    parts = [*([_combined(by_task)] if by_task else []), *sorted(judges - combined)]
    if by_task and name not in manifest.tasks:
        parts.append(f"{len(by_task)}-tasks")  # judging fewer tasks covers a different share of the items
    return {"judge": ",".join(parts)} if parts else {}


def _combined(values: Mapping[str, str]) -> str:
    """The value common to several tasks, or a hash of all if they differ."""
    return next(iter(values.values())) if len(set(values.values())) == 1 else _hash(values)


def _hash(value: Any) -> str:
    return short_hash(canonical_json(value))
