"""The signatures of a run's scores, made from its manifest (`medtasks.runs.signature`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from medtasks.answers import StatedConfidenceFilter
from medtasks.catalog.spec import load_spec
from medtasks.catalog.task_model import Confidence, Timing
from medtasks.core.files import HASH_LENGTH, canonical_json, short_hash
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import RunManifest, TaskFacts
from medtasks.runs.protocol import filter_versions
from medtasks.runs.samples import UNKNOWN_PROMPT
from medtasks.runs.signature import PROTOCOL_PARTS, format_signature

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
"""Metrics that include judged ones (`medtasks.metrics.stream_values`). If all open answers of a
model are decided by rule, its score includes no verdict, but it was judged like the others.
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
        declared = _declared_parts(members, metric)
        judged = _judge_part(manifest, name, metric, judges)
        texts[metric] = format_signature({**own, **protocol, **declared, **judged})
    return texts


def _protocol_parts(
    manifest: RunManifest, name: str, members: Sequence[str], sample_ids: Sequence[str]
) -> dict[str, str]:
    """The parts that do not depend on the metric."""
    is_group = name in manifest.groups
    tasks = {task: manifest.tasks[task] for task in members}
    versions: dict[str, TaskVersions] = {}
    protocols: dict[str, str] = {}
    prompts: dict[str, str] = {}
    data: dict[str, str] = {}
    for task, facts in tasks.items():
        versions[task] = TaskVersions(facts.version, facts.filters)
        protocols[task] = facts.protocol_hash
        prompts[task] = facts.prompt_hash or UNKNOWN_PROMPT
        data[facts.benchmark] = manifest.data[facts.benchmark].fingerprint[:HASH_LENGTH]
    return {
        "group" if is_group else "task": name,
        **_version_parts(versions),
        "prompt": _common_value(prompts),
        "protocol": _hash(protocols) if is_group else protocols[name],
        "data": _common_value(dict(sorted(data.items()))),
        "items": f"{len(sample_ids)}-{_hash(sample_ids)}",
        **_deviation_parts(tasks, manifest.settings),
    }


def _deviation_parts(tasks: Mapping[str, TaskFacts], settings: Mapping[str, Any]) -> dict[str, str]:
    """The parts that only runs of a subset, blind and paced runs, and runs with changed options
    have.
    """
    parts: dict[str, str] = {}
    subsets = {name: facts.subset for name, facts in tasks.items()}
    if any(subsets.values()):
        parts["subset"] = _common_value(subsets)
    if any(facts.blind for facts in tasks.values()):
        parts["blind"] = "yes"
    paces = {name: facts.pace for name, facts in tasks.items() if facts.pace}
    if paces:
        parts["pace"] = _common_value(paces)
    changed = changed_options(settings)
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


class TaskVersions(NamedTuple):
    """The versions of a task file and, by name, of its filters."""

    file: float
    filters: Mapping[str, str]


def _version_parts(tasks: Mapping[str, TaskVersions]) -> dict[str, str]:
    """The parts of a signature for versions of task files, and of their filters by name."""
    files: dict[str, str] = {}
    filters: dict[str, str] = {}
    for name, versions in tasks.items():
        files[name] = f"{versions.file:g}"
        filters[name] = filters_text(versions.filters)
    return {"version": _common_value(files), "filters": _common_value(filters)}


def filters_text(versions: Mapping[str, str]) -> str:
    """Filters with their versions, as signatures have those of a task.

    They are sorted, as in a manifest that was read; the protocol hash covers their order of use.
    """
    return ",".join(map("=".join, sorted(versions.items())))


def versions_today(tasks: Iterable[str]) -> dict[str, str]:
    """The parts of a signature for the versions of task files and filters that are installed
    here.
    """
    versions: dict[str, TaskVersions] = {}
    for task in tasks:
        spec = load_spec(task)
        versions[task] = TaskVersions(spec.metadata.version, filter_versions(spec))
    return _version_parts(versions)


def _declared_parts(tasks: Iterable[str], metric: str) -> dict[str, str]:
    """What the tasks declare about confidences and times of streams, if the metric depends on
    it.
    """
    timing_fields: tuple[str, ...] = getattr(get_metric(metric), "timing", ())
    has_confidence = metric in CONFIDENCE_NAMES
    if not timing_fields and not has_confidence:
        return {}
    confidences: dict[str, str] = {}
    timings: dict[str, str] = {}
    for task in tasks:
        metadata = load_spec(task).metadata
        if has_confidence and metadata.confidence is not None:
            confidences[task] = _confidence_text(metadata.confidence)
        if timing_fields and metadata.timing is not None:
            timings[task] = _timing_text(metadata.timing, timing_fields)
    parts = {}
    if confidences:
        parts["confidence-of"] = _common_value(confidences)
    if timings:
        parts["timing"] = _common_value(timings)
    return parts


def _confidence_text(confidence: Confidence) -> str:
    """How a task defines confidence, with the version of the filter that reads it."""
    text = f"{confidence.of};right={confidence.correct}"
    if confidence.of == "stated":
        text += f";filter={StatedConfidenceFilter.version}"
    return text


def _timing_text(timing: Timing, fields: Iterable[str]) -> str:
    """A task's times of streams, ``key=value`` with commas between them."""
    words = []
    for field in fields:
        words.append(f"{field.replace('_', '-')}={getattr(timing, field)}")
    return ",".join(words)


def _judge_part(manifest: RunManifest, name: str, metric: str, judges: set[str]) -> dict[str, str]:
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
        parts.insert(0, _common_value(by_task))
        if name in manifest.groups:
            # judging fewer tasks covers a different share of the items
            parts.append(f"{len(by_task)}-tasks")
    if not parts:
        return {}
    return {"judge": ",".join(parts)}


def _common_value(values: Mapping[str, str]) -> str:
    """The value common to several tasks, or a hash of all if they differ."""
    distinct = set(values.values())
    if len(distinct) == 1:
        return distinct.pop()
    return _hash(values)


def _hash(value: Any) -> str:
    return short_hash(canonical_json(value))


def changed_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The harness options in a run's settings that change what the model is asked, without those at
    their default.
    """
    changed = {}
    for option, defaults in _HARNESS_OPTIONS.items():
        value = settings.get(option)
        if value not in defaults:
            changed[option] = value
    return changed
