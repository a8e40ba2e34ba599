"""The log of a task for Inspect, as plain data, which Inspect's own model checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from medtasks.core.files import short_hash
from medtasks.core.redaction import shown_facts
from medtasks.metrics.registry import get_metric
from medtasks.runs.samples import Sample
from medtasks.runs.training_record import FACT
from medtasks.scoring.scores import MetricScore

from ..verify.model_identity import model_name
from ..verify.scored_run import ScoredRun

Pictures: TypeAlias = Mapping[str, Sequence[str]]
"""Pictures by sample id, as data URLs."""


def log_content(run: ScoredRun, task: str, digest: str, pictures: Pictures) -> dict[str, Any]:
    """The log of a task; ``digest`` is the hash of the run's files."""
    manifest = run.manifest
    epochs = _epochs(run, task, digest, pictures)
    scores = run.record.tasks[task].metrics
    return {
        "status": "success",
        "eval": _evaluation_facts(run, task, digest),
        "results": {
            "total_samples": len(epochs),
            "completed_samples": sum(epoch["error"] is None for epoch in epochs),
            "scores": [_total(metric, score) for metric, score in scores.items()],
        },
        "stats": {"started_at": manifest.created, "completed_at": manifest.created},
        "samples": epochs,
    }


def _epochs(run: ScoredRun, task: str, digest: str, pictures: Pictures) -> list[dict[str, Any]]:
    """An epoch for each response of each sample of a task."""
    model = model_name(run.manifest)
    epochs = []
    for sample in run.samples[task]:
        doubts = run.verification[task].doubts(sample.sample_id)
        sample_pictures = pictures.get(sample.sample_id, ())
        for number in range(len(sample.responses)):
            # the run too: tools such as Inspect Scout keep one sample of each identity
            identity = short_hash(f"{digest}\0{task}\0{sample.sample_id}\0{number}")
            epochs.append(_epoch(sample, number, identity, model, sample_pictures, doubts))
    return epochs


def _evaluation_facts(run: ScoredRun, task: str, digest: str) -> dict[str, Any]:
    """The facts on a task, its data, model and software that open a log."""
    manifest = run.manifest
    facts = manifest.tasks[task]
    samples = run.samples[task]
    identity = short_hash(f"{digest}\0{task}")
    ids = [sample.sample_id for sample in samples]
    model = {name: fact for name, fact in manifest.model.items() if name != FACT}
    most_responses = max((len(sample.responses) for sample in samples), default=1)
    return {
        "eval_id": identity,
        "run_id": digest[:16],
        "task_id": identity,
        "created": manifest.created,
        "task": task,
        "task_version": str(facts.version),
        "model": model_name(manifest),
        "model_args": shown_facts(model),
        "dataset": {"name": facts.benchmark, "samples": len(ids), "sample_ids": ids},
        "config": {"epochs": most_responses},
        "packages": dict(manifest.versions),
        "metadata": {
            "protocol_hash": facts.protocol_hash,
            "prompt_hash": facts.prompt_hash,
            "data": {name: data.fingerprint for name, data in manifest.data.items()},
            "generation": facts.generation,
            "trained_on": run.public.trained_on,
        },
    }


def _total(metric: str, score: MetricScore) -> dict[str, Any]:
    """A score of the task, with its interval and signature; without a value, why there is none."""
    low, high = score.interval or (None, None)
    metrics = {}
    for name, value in (("score", score.value), ("ci95_low", low), ("ci95_high", high)):
        if value is not None:
            metrics[name] = {"name": name, "value": value}
    metadata = {"signature": score.signature}
    if score.reason:
        metadata["reason"] = score.reason
    return {
        "name": metric,
        "scorer": metric,
        "scored_samples": score.samples,
        "metrics": metrics,
        "metadata": metadata,
    }


def _epoch(
    sample: Sample,
    number: int,
    identity: str,
    model: str,
    pictures: Sequence[str],
    doubts: str,
) -> dict[str, Any]:
    """A response of a sample as an epoch of Inspect.

    Args:
        sample: the sample.
        number: that of the response, from 0.
        identity: what distinguishes this response from all others, also from those of other runs.
        model: the model's name.
        pictures: the pictures in the prompt, as data URLs.
        doubts: what of the sample could not be verified; empty if all of it was.
    """
    question = _question_message(sample, identity, pictures)
    reply = {
        "role": "assistant",
        "id": f"{identity}-model",
        "content": sample.responses[number],
        "model": model,
        "source": "generate",
    }
    return {
        "id": sample.sample_id,
        "epoch": number + 1,
        "uuid": identity,
        "input": [question],
        "messages": [question, reply],
        "choices": _option_texts(sample),
        "target": sample.target,
        "output": {"model": model, "choices": [{"message": reply, "stop_reason": "stop"}]},
        "scores": _sample_scores(sample, number),
        "error": _failure(sample, number),
        "metadata": _sample_metadata(sample, number, doubts),
    }


def _question_message(sample: Sample, identity: str, pictures: Sequence[str]) -> dict[str, Any]:
    """The pictures and the prompt of a sample, as the message of a user."""
    content = [{"type": "image", "image": picture} for picture in pictures]
    content.append({"type": "text", "text": sample.prompt})
    return {"role": "user", "id": f"{identity}-user", "content": content}


def _option_texts(sample: Sample) -> list[str] | None:
    """The texts of the options; None for an open question."""
    choices = sample.document.get("choices")
    if not isinstance(choices, Mapping):
        return None
    return [str(text) for text in choices.values()]


def _failure(sample: Sample, number: int) -> dict[str, str] | None:
    """Why there is no response, as an error of Inspect; None if there is one."""
    reason = sample.failed[number] if sample.failed else None
    if reason is None:
        return None
    return {"message": reason, "traceback": "", "traceback_ansi": ""}


def _sample_scores(sample: Sample, number: int) -> dict[str, dict[str, Any]]:
    """The scores of a response; metrics without a value are left out, as Inspect does with what is
    not scored.
    """
    answer = sample.filtered
    values: dict[str, float | None] = dict(sample.scores)
    if sample.repeats:
        repeat = sample.repeats[number]
        answer = repeat.filtered
        values = {}
        for metric, statistics in repeat.statistics.items():
            if len(statistics) != 2 or statistics[1]:  # otherwise the metric does not apply
                row = np.array(statistics, dtype=np.float64)
                values[metric] = float(get_metric(metric).score(row))
    explanation = _verdicts_text(sample, number) or None
    scores = {}
    for metric, value in values.items():
        if value is not None:
            scores[metric] = {"value": value, "answer": answer, "explanation": explanation}
    return scores


def _verdicts_text(sample: Sample, number: int) -> str:
    """What the judges wrote about a response, a line for each aspect."""
    lines = []
    for responses in sample.verdicts.values():
        for response in responses[number : number + 1]:
            for judge, verdict in response.judges.items():
                for aspect, score in (verdict.scores or {}).items():
                    reason = verdict.reasons.get(aspect, "")
                    lines.append(f"{judge}, {aspect}: {score} {reason}".rstrip())
    return "\n".join(lines)


def _sample_metadata(sample: Sample, number: int, doubts: str) -> dict[str, Any]:
    """What Inspect has no field for: task, cluster, status, media and document."""
    status = sample.repeats[number].status if sample.repeats else sample.status
    metadata: dict[str, Any] = {
        "sample_id": sample.sample_id,
        "task": sample.task,
        "cluster": sample.cluster,
        "status": status,
        "media": list(sample.media),
        "document": sample.document,
    }
    if doubts:
        metadata["unverified"] = doubts
    return metadata
