"""From a document and what a back-end replied to the sample line that is scored: filter, then the task's metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from medtasks.filters import filter_class, status_of
from medtasks.results.replies import Reply
from medtasks.results.samples import FAILED, Limits, Repeat, Sample
from medtasks.spec import TaskSpec

__all__ = ["ideal_response", "scored_again", "scored_sample"]

Values = Mapping[str, Mapping[str, Any]]
"""What a task's ``process_results`` makes of a response: an entry by metric."""


def scored_sample(
    spec: TaskSpec, document: Mapping[str, Any], replies: Sequence[Reply], *, prompt: str, prompt_hash: str
) -> Sample:
    """The sample that ``replies`` (one, or one for each repeat) to ``document`` make under the task's rules.

    Where a reply failed, the sample has the status ``failed`` and no statistics, only the limits between which they
    would lie: those of a blank response and of the gold answer.

    Args:
        spec: of the task.
        document: whole: sample id, cluster, media and target are in it.
        replies: at least one.
        prompt: the text that was sent.
        prompt_hash: of its template.
    """
    replies = [reply.checked() for reply in replies]
    failed = any(reply.failed is not None for reply in replies)
    process = _process(spec)
    limits: dict[str, Limits] = {}
    if failed:
        filtered = [f"[{FAILED}]"]
        ideal = ideal_response(document)
        values, best = (process(document, _filtered(spec, document, [text] * len(replies))) for text in ("", ideal))
        limits = _limits(values, best)
    else:
        filtered = _filtered(spec, document, [reply.text for reply in replies])
        values = process(document, filtered)
    fields = dict(document)
    return Sample(
        sample_id=fields.pop("sample_id"),
        task=spec.name,
        cluster=fields.pop("cluster"),
        media=tuple(fields.pop("media")),
        prompt_hash=prompt_hash,
        prompt=prompt,
        target=fields.pop("target"),
        responses=tuple(reply.text for reply in replies),
        failed=tuple(reply.failed for reply in replies) if failed else (),
        filtered=filtered[0],
        status=FAILED if failed else status_of(spec.filters[-1], filtered[0]),
        scores={metric: None if failed else value.get("score") for metric, value in values.items()},
        statistics={} if failed else _statistics(values),
        limits=limits,
        repeats=() if failed else _repeats(spec, filtered, values),
        pending=tuple(metric for metric, value in values.items() if value.get("pending")),
        document=fields,
    )


def scored_again(spec: TaskSpec, sample: Sample) -> Sample:
    """The sample that its responses make under today's rules; its verdicts stay."""
    document = {
        **sample.document,
        "sample_id": sample.sample_id,
        "cluster": sample.cluster,
        "media": list(sample.media),
        "target": sample.target,
    }
    failed = sample.failed or (None,) * len(sample.responses)
    replies = [Reply(text, reason) for text, reason in zip(sample.responses, failed, strict=True)]
    scored = scored_sample(spec, document, replies, prompt=sample.prompt, prompt_hash=sample.prompt_hash)
    return scored.model_copy(update={"verdicts": sample.verdicts})


def ideal_response(document: Mapping[str, Any]) -> str:
    """The response that scores best: the document's own, or the gold answer."""
    return str(document.get("ideal_response") or document["target"])


def _filtered(spec: TaskSpec, document: Mapping[str, Any], texts: list[str]) -> list[str]:
    (filtered,) = filter_class(spec.filters[-1])().apply([texts], [document])
    return [text.strip() for text in ([filtered] if isinstance(filtered, str) else filtered)]


def _process(spec: TaskSpec) -> Callable[[Mapping[str, Any], Sequence[str]], Values]:
    module, _, name = spec.resolved["process_results"].rpartition(".")
    function: Callable[[Mapping[str, Any], Sequence[str]], Values] = getattr(import_module(module), name)
    return function


def _statistics(values: Values) -> dict[str, tuple[float, ...]]:
    return {metric: tuple(value["statistics"]) for metric, value in values.items() if "statistics" in value}


def _limits(worst: Values, best: Values) -> dict[str, Limits]:
    low, high = _statistics(worst), _statistics(best)
    return {metric: (low[metric], high[metric]) for metric in low if metric in high}


def _repeats(spec: TaskSpec, said: Sequence[str], values: Values) -> tuple[Repeat, ...]:
    """Each response's part in the sample, where there are several."""
    if len(said) < 2:
        return ()
    return tuple(
        Repeat(
            filtered=filtered,
            status=status_of(spec.filters[-1], filtered),
            statistics={name: tuple(value["repeats"][number]) for name, value in values.items() if "repeats" in value},
        )
        for number, filtered in enumerate(said)
    )
