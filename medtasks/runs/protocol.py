"""The protocol of a task: everything that can affect a score, except the model and the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtasks.answers.base import LONGEST_SCORED
from medtasks.benchmarks.documents import task_rows
from medtasks.catalog.registry import get_filter
from medtasks.catalog.spec import TaskSpec
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.settings import current_settings
from medtasks.data.media.windows import STEP
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import TaskFacts
from medtasks.runs.samples import UNKNOWN_PROMPT


def protocol_hash(
    spec: TaskSpec,
    generation: dict[str, Any],
    *,
    prompt_hash: str | None = None,
    frames: dict[str, Any] | None = None,
    blind: bool = False,
    pace: str = "",
    presentation: Mapping[str, str] | None = None,
) -> str:
    """Hash of everything that can affect a score, except the model and the data.

    ``generation`` are the settings in force, ``presentation`` is how the back-end deviates from the
    task (order of text and media, a system prompt), ``pace`` is that at which rounds of streams are
    sent; empty if each waits for nothing.
    """
    if frames is None:
        frames = frame_settings(spec)
    parts: dict[str, Any] = {
        "yaml": spec.yaml_hash,
        "prompt": spec.prompt_hash if prompt_hash is None else prompt_hash,
        "filters": filter_versions(spec),
        "options": list(spec.benchmark.options),
        "metrics": {name: get_metric(name).signature for name in spec.scores},
        "generation": generation,
        "longest_scored": LONGEST_SCORED,
    }
    if blind:
        parts["blind"] = True
    if pace:
        parts["pace"] = pace
    if presentation:
        parts["presentation"] = dict(presentation)
    if frames:
        parts["frames"] = {"step": frames["step"], "cap": frames["cap"]}
    return short_hash(canonical_json(parts))


def filter_versions(spec: TaskSpec) -> dict[str, str]:
    """The versions installed here of the task's filters, by name."""
    return {name: get_filter(name).version for name in spec.filters}


def frame_settings(spec: TaskSpec) -> dict[str, Any]:
    """How frames were chosen and decoded, for tasks that show frames sampled from windows; empty
    for others.
    """
    if not spec.benchmark.stream.sampled_frames:
        return {}
    return {"step": STEP, "cap": current_settings().max_frames, "decoder": "pyav"}


def task_facts(
    spec: TaskSpec,
    generation: dict[str, Any],
    asked: int,
    *,
    blind: bool = False,
    pace: str = "",
    presentation: Mapping[str, str] | None = None,
    prompt_hash: str | None = None,
) -> TaskFacts:
    """Facts of one task that has ``asked`` documents, before any is answered. ``prompt_hash`` is
    that of the task's own prompt by default; `UNKNOWN_PROMPT` for responses that were made
    elsewhere.
    """
    if prompt_hash is None:
        prompt_hash = spec.prompt_hash or ""
    protocol = protocol_hash(
        spec,
        generation,
        prompt_hash=prompt_hash,
        blind=blind,
        pace=pace,
        presentation=presentation,
    )
    is_unknown = prompt_hash == UNKNOWN_PROMPT
    return TaskFacts(
        version=spec.metadata.version,
        benchmark=spec.metadata.benchmark,
        template="" if is_unknown else spec.template or "",
        prompt_hash=prompt_hash,
        yaml_hash=spec.yaml_hash,
        protocol_hash=protocol,
        blind=blind,
        pace=pace,
        subset=str(current_settings().subset or ""),
        presentation=dict(presentation or {}),
        filters=filter_versions(spec),
        generation=generation,
        frames=frame_settings(spec),
        excluded=task_rows(spec.name).excluded(),
        asked=asked,
        answered=0,
        status={},
    )
