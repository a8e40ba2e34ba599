"""Runs as logs of Inspect (``inspect view``), written with its own package: one ``.eval`` file per
run and task.

Samples are those of the run as it is scored here.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line, machine_fault
from medtasks.core.files import require_clock, short_hash
from medtasks.core.redaction import shown_facts
from medtasks.core.replacement import temporary_beside
from medtasks.metrics.registry import get_metric
from medtasks.runs.find import no_run
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import RunFolder, as_data_error

from ..intake.collect import find_everything
from ..intake.remove_rows import layout_of
from ..schema.numbers import safe_name
from ..verify.media import picture, shown_media
from ..verify.model_identity import model_name
from ..verify.scored_run import ScoredRun, scored_run

INSTALL = 'pip install "medtasks[inspect]"'
Pictures = Mapping[str, Sequence[str]]
"""Pictures by sample id, as data URLs."""


def write_inspect_logs(results: Sequence[Path], out: Path) -> tuple[list[Path], list[str]]:
    """Write the logs of all runs in ``results`` to the new directory ``out``; return them, and
    notes on pictures.

    Pictures are included where the benchmark's board layout lets media be published, and nowhere
    else. A crash leaves no ``out``.

    Raises:
        UsageError: Inspect is not installed, ``out`` exists, or there is no run.
        MedtasksError: a run cannot be read, or Inspect does not write its log.
    """
    try:
        import inspect_ai.log  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"inspect_ai cannot be imported ({first_line(error)}); install it: {INSTALL}"
        ) from error
    if out.exists():
        raise UsageError(
            f"{out}: exists already; logs are never overwritten, choose another directory."
        )
    require_clock()
    folders = find_everything(results).runs
    if not folders:
        raise no_run(results[0])
    notes: dict[str, None] = {}
    names: list[str] = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(out) as partial:
        for folder in folders:
            for name, note in _write_run(folder, partial):
                names.append(name)
                notes |= {note: None} if note else {}
        partial.rename(out)
    return [out / name for name in names], list(notes)


def _write_run(folder: RunFolder, out: Path) -> Iterator[tuple[str, str]]:
    """Write a log for each task of a run; the names of their files, and a note on pictures, or an
    empty one."""
    digest = folder.content
    with as_data_error(folder.directory):
        run = scored_run(folder, whole=True)
    for task, samples in run.samples.items():
        with as_data_error(folder.directory):
            pictures, note = _pictures(task, samples, run.manifest)
            content = _log(run, task, digest, pictures)
        name = f"{digest[:12]}_{safe_name(model_name(run.manifest))}_{safe_name(task)}.eval"
        _write_log(content, out / name)
        yield name, note


def _write_log(content: Mapping[str, Any], path: Path) -> None:
    """Write a log with Inspect's own package, which checks it; it compresses in threads of its
    own."""
    from inspect_ai.log import EvalLog, write_eval_log

    try:
        write_eval_log(EvalLog.model_validate(content), path, format="eval")
    except OSError:
        raise
    except Exception as error:
        raise machine_fault(error) or MedtasksError(
            f"{path.name}: Inspect's package cannot write this log ({first_line(error)}); restore the directory, or "
            "install another version of inspect_ai."
        ) from error


def _pictures(task: str, samples: Sequence[Sample], manifest: RunManifest) -> tuple[Pictures, str]:
    """The pictures, or a note on why there are none."""
    benchmark = load_spec(task).metadata.benchmark
    layout, found = layout_of(benchmark), {}
    absent = "" if layout.shows == "media" else layout.why or "Its terms do not allow them."
    try:
        for sample in () if absent else samples:
            shown = shown_media(sample, manifest)
            absent = shown.absent
            if absent:
                break
            content = [
                picture(task, sample.sample_id, manifest, place, False)
                for place in range(shown.count)
            ]
            found[sample.sample_id] = [
                f"data:image/png;base64,{base64.b64encode(one).decode()}" for one in content
            ]
    except MedtasksError as error:
        absent = first_line(error)
    return ({}, f"{benchmark}: without pictures. {absent}") if absent else (found, "")


def _log(run: ScoredRun, task: str, digest: str, pictures: Pictures) -> dict[str, Any]:
    """The log of a task as plain data, which Inspect's own model checks."""
    manifest, samples, facts = run.manifest, run.samples[task], run.manifest.tasks[task]
    name, identity = model_name(manifest), short_hash(f"{digest}\0{task}")
    doubts = run.verification[task].doubts
    made = [
        _sample(sample, place, name, pictures.get(sample.sample_id, ()), doubts(sample.sample_id))
        for sample in samples
        for place in range(len(sample.responses))
    ]
    totals = []
    for metric, score in run.tasks[task].metrics.items():
        low, high = score.interval or (None, None)
        values = {"score": score.value, "ci95_low": low, "ci95_high": high}
        total = {
            "name": metric,
            "scorer": metric,
            "scored_samples": score.samples,
            "metrics": {
                one: {"name": one, "value": value}
                for one, value in values.items()
                if value is not None
            },
            # without a value, why there is none
            "metadata": {
                "signature": score.signature,
                **({"reason": score.reason} if score.reason else {}),
            },
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


def _sample(
    sample: Sample, place: int, model: str, pictures: Sequence[str], doubts: str
) -> dict[str, Any]:
    """The sample's response number ``place``, from 0, as an epoch; ``doubts`` are what could not be
    verified of it.

    Metrics without a value are left out, as Inspect does with what is not scored.
    """
    identity = short_hash(f"{sample.task}\0{sample.sample_id}\0{place}")
    content = [
        *({"type": "image", "image": one} for one in pictures),
        {"type": "text", "text": sample.prompt},
    ]
    asked = {"role": "user", "id": f"{identity}-user", "content": content}
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
        "error": None
        if reason is None
        else {"message": reason, "traceback": "", "traceback_ansi": ""},
        "metadata": {
            "sample_id": sample.sample_id,
            "task": sample.task,
            "cluster": sample.cluster,
            "status": status,
            "media": list(sample.media),
            "document": sample.document,
            **({"unverified": doubts} if doubts else {}),
        },
    }
