"""Reproducibility signatures: one line with all that affects a score but the model; equal lines are
comparable.

Modelled on sacrebleu's: ``key:value`` parts separated by bars, the metric's own first.
"""

from __future__ import annotations

import functools
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
from medtasks.runs.manifest import RunManifest, filter_versions
from medtasks.runs.samples import UNKNOWN_PROMPT

PROTOCOL_PARTS = (
    "task", "group", "version", "filters", "prompt", "protocol", "data", "items", "subset", "blind", "harness", "judge",
    "confidence-of", "timing",
)  # fmt: skip
"""The parts of a signature that do not come from its metric."""
_NAMES = {
    "version": "task version",
    "protocol": "protocol (task file, metrics, generation settings, frames)",
    "data": "data",
    "harness": "harness options",
    "timing": "timing of streams (law, scale, default tolerance)",
    "split": "sentence splitter of METEOR (NLTK's punkt_tab, or none)",
}
_HASH = re.compile(rf"[0-9a-f]{{{HASH_LENGTH}}}")
_HARNESS_OPTIONS: dict[str, tuple[Any, ...]] = {
    "num_fewshot": (None, 0),
    "repeats": (None, 1),
    "system_instruction": (None, ""),
    "apply_chat_template": (None, False),
    "fewshot_as_multiturn": (None, False),
}
"""Harness options that change what the model is asked, regardless of the task file, with their
defaults.
"""
_OVERALL = ("content", "overall", "overall_stream_length", "overall_table4", "overall_table4_eq10")
_MADE_OF = {
    **dict.fromkeys(_OVERALL, ("content_open",)),
    "content_fallback": ("content_open", "content_closed_fallback"),
}
"""Metrics that include judged ones (`medtasks.metrics.stream_values`). If all open answers of a model
are decided by rule, its score includes no verdict, but it was judged like the others.
"""


def signatures(
    manifest: RunManifest,
    name: str,
    scored: Mapping[str, str],
    sample_ids: Iterable[str],
    elsewhere: Collection[str],
) -> dict[str, str]:
    """The signatures by metric of the scores over all items of the task or group ``name`` of a run.

    ``scored`` has `medtasks.scoring.scores.MetricScore.signature` by metric. The metrics in
    ``elsewhere`` were computed elsewhere, by the package versions in the manifest.
    """
    members = manifest.groups.get(name, (name,))
    protocol = _protocol_parts(manifest, name, members, sorted(sample_ids))
    packages = {**manifest.versions, **(manifest.scored or {})}
    texts = {}
    for metric, own_text in scored.items():
        own, judges = _own_parts(own_text, packages if metric in elsewhere else {})
        declared = _declared(members, metric)
        judged = _judge(manifest, name, metric, judges)
        texts[metric] = format_signature({**own, **protocol, **declared, **judged})
    return texts


def _protocol_parts(
    manifest: RunManifest, name: str, members: Sequence[str], sample_ids: Sequence[str]
) -> dict[str, str]:
    """The parts that do not depend on the metric."""
    is_group = name in manifest.groups
    facts = {task: manifest.tasks[task] for task in members}
    protocols: dict[str, str] = {}
    prompts: dict[str, str] = {}
    data: dict[str, str] = {}
    for task, task_facts in facts.items():
        protocols[task] = task_facts.protocol_hash
        prompts[task] = task_facts.prompt_hash or UNKNOWN_PROMPT
        benchmark = task_facts.benchmark
        data[benchmark] = manifest.data[benchmark].fingerprint[:HASH_LENGTH]
    parts = {
        "group" if is_group else "task": name,
        **_versions({task: (one.version, one.filters) for task, one in facts.items()}),
        "prompt": _combined(prompts),
        "protocol": _hash(protocols) if is_group else protocols[name],
        "data": _combined(dict(sorted(data.items()))),
        "items": f"{len(sample_ids)}-{_hash(sample_ids)}",
    }
    if any(task_facts.subset for task_facts in facts.values()):
        parts["subset"] = _combined({task: one.subset for task, one in facts.items()})
    if any(task_facts.blind for task_facts in facts.values()):
        parts["blind"] = "yes"
    changed = changed_options(manifest.settings)
    if changed:
        parts["harness"] = _hash(changed)
    return parts


def _own_parts(text: str, versions: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """The parts of a metric's own signature, and the judges that it names.

    ``versions`` replace those in the text.
    """
    first, *words = text.split("|")
    parts = {"metric": first}
    judges: set[str] = set()
    for word in words:
        key, _, value = word.partition(":")
        if key == "judge":
            judges.add(value)
            continue
        # metrics of other packages may use any key
        while key in parts or key in PROTOCOL_PARTS or not key:
            key = f"metric.{key}"
        parts[key] = versions.get(key, value)
    return parts, judges


def _versions(tasks: Mapping[str, tuple[float, Mapping[str, str]]]) -> dict[str, str]:
    """The parts of a signature for versions of task files, and of their filters by name."""
    # sorted, as in a manifest that was read; their order of use is part of the protocol hash
    filters = {task: filters_text(names) for task, (_, names) in tasks.items()}
    return {
        "version": _combined({task: f"{version:g}" for task, (version, _) in tasks.items()}),
        "filters": _combined(filters),
    }


def filters_text(versions: Mapping[str, str]) -> str:
    """Filters with their versions, as signatures have those of a task."""
    return ",".join(map("=".join, sorted(versions.items())))


def versions_today(tasks: Iterable[str]) -> dict[str, str]:
    """The parts of a signature for the versions of task files and filters that are installed
    here.
    """
    specs = {task: load_spec(task) for task in tasks}
    return _versions(
        {task: (one.metadata.version, filter_versions(one)) for task, one in specs.items()}
    )


def _declared(tasks: Iterable[str], metric: str) -> dict[str, str]:
    """What the tasks declare about confidences and times of streams, if the metric depends on
    it.
    """
    fields: tuple[str, ...] = getattr(get_metric(metric), "timing", ())
    confidences, timings = {}, {}
    for task in tasks if fields or metric in CONFIDENCE_NAMES else ():
        declared = load_spec(task).metadata
        if metric in CONFIDENCE_NAMES and (one := declared.confidence) is not None:
            read_by = f";filter={StatedConfidenceFilter.version}" * (one.of == "stated")
            confidences[task] = f"{one.of};right={one.correct}{read_by}"
        if fields and declared.timing is not None:
            timings[task] = ",".join(
                f"{field.replace('_', '-')}={getattr(declared.timing, field)}" for field in fields
            )
    parts = {"confidence-of": confidences, "timing": timings}
    return {key: _combined(texts) for key, texts in parts.items() if texts}


def _judge(manifest: RunManifest, name: str, metric: str, judges: set[str]) -> dict[str, str]:
    """The panels by task from the manifest, with those that only the score names."""
    metrics = {metric, *_MADE_OF.get(metric, ())}
    by_task: dict[str, str] = {}
    panels: set[str] = set()
    for task in manifest.groups.get(name, (name,)):
        hashes = set()
        for facts in manifest.judge.values():
            if task in facts.tasks and not metrics.isdisjoint(facts.rubric.metrics):
                hashes.add(facts.judge_hash)
        if hashes:
            by_task[task] = ",".join(sorted(hashes))
            panels |= hashes
    parts = sorted(judges - panels)
    if by_task:
        parts.insert(0, _combined(by_task))
        if name in manifest.groups:
            # judging fewer tasks covers a different share of the items
            parts.append(f"{len(by_task)}-tasks")
    return {"judge": ",".join(parts)} if parts else {}


def _combined(values: Mapping[str, str]) -> str:
    """The value common to several tasks, or a hash of all if they differ."""
    distinct = set(values.values())
    return distinct.pop() if len(distinct) == 1 else _hash(values)


def _hash(value: Any) -> str:
    return short_hash(canonical_json(value))


def changed_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The harness options in a run's settings that change what the model is asked, without those at
    their default.
    """
    options = {key: settings.get(key) for key in _HARNESS_OPTIONS}
    return {key: value for key, value in options.items() if value not in _HARNESS_OPTIONS[key]}


def format_signature(parts: Mapping[str, str]) -> str:
    """The parts as one line: the value of ``metric``, then the others as ``key:value``, or only the
    key if it is empty; percent-encoded as in URLs.
    """
    words = [_quoted(parts.get("metric", ""))]
    for key, value in parts.items():
        if key != "metric":
            words.append(f"{_quoted(key)}:{_quoted(value)}" if value else _quoted(key))
    return "|".join(words)


def parse_signature(text: str) -> dict[str, str]:
    """The parts in a line by :func:`format_signature`, in their order.

    Raises:
        UsageError: a key is duplicated, or a part has none.
    """
    first, *words = text.split("|")
    parts = {"metric": _plain(first)}
    for word in words:
        key, _, value = word.partition(":")
        if not key or _plain(key) in parts:
            raise UsageError(
                f"signature {text[:200]!r}: part {word!r} has no key; restore the signature."
            )
        parts[_plain(key)] = _plain(value)
    return parts


def changed_signature(signature: str, **parts: str) -> str:
    """The signature with other ``parts``, or with further ones at its end."""
    return format_signature({**parse_signature(signature), **parts})


_quoted = functools.partial(quote, safe=",;=+()/@*", errors="surrogatepass")
_plain = functools.partial(unquote, errors="surrogatepass")


def has_unknown_prompts(signature: str) -> bool:
    """Whether nobody knows what the model was asked: the responses were made elsewhere. Such scores
    are comparable with each other alone, and only if their models were in fact asked the same.
    """
    return parse_signature(signature).get("prompt") == UNKNOWN_PROMPT


def differences(one: str, other: str) -> list[str]:
    """How ``one`` differs from ``other``, a short sentence for each part; empty if they are
    equal.
    """
    here, there = parse_signature(one), parse_signature(other)
    differing = [key for key in dict.fromkeys((*here, *there)) if here.get(key) != there.get(key)]
    sentences = []
    for key in differing:
        first, second, name = here.get(key), there.get(key), _NAMES.get(key, key)
        if key == "items" and "subset" in differing:
            continue  # other subsets have other samples
        if key == "blind":
            text = (
                "blind: prompts without media" if first else "prompts with media instead of blind"
            )
        elif key == "items" and first and second:
            count, others = first.partition("-")[0], second.partition("-")[0]
            samples = "sample" if count == "1" else "samples"
            text = (
                f"other samples ({count} in both)"
                if count == others
                else f"{count} {samples} instead of {others}"
            )
        else:
            before = f"no {name}" if first is None else f"{name} {_short_value(first)}"
            text = f"{before} instead of {'none' if second is None else _short_value(second)}"
        sentences.append(text)
    return sentences


def _short_value(value: str) -> str:
    return _HASH.sub(lambda found: found[0][:8] + "…", value) or "set"
