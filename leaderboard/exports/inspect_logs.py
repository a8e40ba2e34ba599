"""Runs as logs of Inspect (``inspect view``), written with its own package: one ``.eval`` file per run and task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.core.errors import UsageError, first_line
from medtasks.core.files import short_hash
from medtasks.core.redaction import shown_facts
from medtasks.metrics.registry import get_metric
from medtasks.runs.find import no_run
from medtasks.runs.record import RunRecord, read_run
from medtasks.runs.samples import Sample

from ..board.models import model_name
from ..board.numbers import safe_name
from ..intake.collect import find_everything

INSTALL = 'pip install "medtasks[inspect]"'


def write_inspect_logs(results: Sequence[Path], out: Path) -> list[Path]:
    """Write the logs of all runs in ``results``, without pictures, to the new directory ``out``; return their files."""
    try:
        from inspect_ai.log import EvalLog, write_eval_log
    except ImportError as error:
        raise UsageError(f"inspect_ai cannot be imported ({first_line(error)}); install it: {INSTALL}") from error
    if out.exists():
        raise UsageError(f"{out}: exists already; logs are never overwritten, choose another directory.")
    folders = find_everything(results).runs
    if not folders:
        raise no_run(results[0])
    written = []
    for folder in folders:
        run, digest = RunRecord.scored(*read_run(folder.directory)), folder.content
        out.mkdir(parents=True, exist_ok=True)
        for task in run.samples:
            written.append(out / f"{digest[:12]}_{safe_name(model_name(run.manifest))}_{safe_name(task)}.eval")
            write_eval_log(EvalLog.model_validate(_log(run, task, digest)), written[-1], format="eval")
    return written


def _log(run: RunRecord, task: str, digest: str) -> dict[str, Any]:
    """The log of a task as plain data, which Inspect's own model checks."""
    manifest, samples, facts = run.manifest, run.samples[task], run.manifest.tasks[task]
    name, identity = model_name(manifest), short_hash(f"{digest}\0{task}")
    made = [_sample(sample, place, name) for sample in samples for place in range(len(sample.responses))]
    totals = []
    for metric, score in run.tasks[task].metrics.items():
        low, high = score.interval or (None, None)
        values = {"score": score.value, "ci95_low": low, "ci95_high": high}
        total = {
            "name": metric,
            "scorer": metric,
            "scored_samples": score.samples,
            "metrics": {one: {"name": one, "value": value} for one, value in values.items() if value is not None},
            # without a value, why there is none
            "metadata": {"signature": score.signature, **({"reason": score.reason} if score.reason else {})},
        }
        totals.append(total)
    ids = [sample.sample_id for sample in samples]
    return {
        "status": "success",
        "eval": {
            "eval_id": identity,
            "run_id": digest[:16],
            "task_id": identity,
            "created": manifest.created,
            "task": task,
            "task_version": str(facts.version),
            "model": name,
            "model_args": shown_facts(manifest.model),
            "dataset": {"name": facts.benchmark, "samples": len(ids), "sample_ids": ids},
            "config": {"epochs": max((len(sample.responses) for sample in samples), default=1)},
            "packages": dict(manifest.versions),
            "metadata": {
                "protocol_hash": facts.protocol_hash,
                "prompt_hash": facts.prompt_hash,
                "data": {one: data.fingerprint for one, data in manifest.data.items()},
                "generation": facts.generation,
            },
        },
        "results": {
            "total_samples": len(made),
            "completed_samples": sum(sample["error"] is None for sample in made),
            "scores": totals,
        },
        "stats": {"started_at": manifest.created, "completed_at": manifest.created},
        "samples": made,
    }


def _sample(sample: Sample, place: int, model: str) -> dict[str, Any]:
    """The sample's response number ``place``, from 0, as an epoch.

    Metrics without a value are left out, as Inspect does with what is not scored.
    """
    identity = short_hash(f"{sample.task}\0{sample.sample_id}\0{place}")
    asked = {"role": "user", "id": f"{identity}-user", "content": [{"type": "text", "text": sample.prompt}]}
    reply = {"role": "assistant", "id": f"{identity}-model", "content": sample.responses[place]}
    reply |= {"model": model, "source": "generate"}
    reason = sample.failed[place] if sample.failed else None
    choices = sample.document.get("choices")

    answer, status, values = sample.filtered, sample.status, dict(sample.scores)
    if sample.repeats:
        repeat = sample.repeats[place]
        answer, status = repeat.filtered, repeat.status
        values = {
            name: float(get_metric(name).score(np.array(row, dtype=np.float64)))
            for name, row in repeat.statistics.items()
            if len(row) != 2 or row[1]  # otherwise the metric does not apply
        }
    verdicts = "\n".join(  # what the judges wrote about the response, a line for each aspect
        f"{judge}, {aspect}: {score} {entry.reasons.get(aspect, '')}".rstrip()
        for responses in sample.verdicts.values()
        for response in responses[place : place + 1]
        for judge, entry in response.judges.items()
        for aspect, score in (entry.scores or {}).items()
    )
    return {
        "id": sample.sample_id,
        "epoch": place + 1,
        "uuid": identity,
        "input": [asked],
        "messages": [asked, reply],
        "choices": list(map(str, choices.values())) if isinstance(choices, Mapping) else None,
        "target": sample.target,
        "output": {"model": model, "choices": [{"message": reply, "stop_reason": "stop"}]},
        "scores": {
            name: {"value": value, "answer": answer, "explanation": verdicts or None}
            for name, value in values.items()
            if value is not None
        },
        "error": None if reason is None else {"message": reason, "traceback": "", "traceback_ansi": ""},
        "metadata": {
            "sample_id": sample.sample_id,
            "task": sample.task,
            "cluster": sample.cluster,
            "status": status,
            "media": list(sample.media),
            "document": sample.document,
        },
    }
