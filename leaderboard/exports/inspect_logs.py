"""Runs as logs of Inspect (``inspect view``), written with its own package: one ``.eval`` file per run and task."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import short_hash
from medtasks.core.redaction import shown_facts
from medtasks.metrics.registry import get_metric
from medtasks.runs.find import no_run
from medtasks.runs.manifest import RunManifest
from medtasks.runs.record import RunFolder, RunRecord, read_run
from medtasks.runs.samples import Sample
from medtasks.runs.scores import Scores

from ..board.models import model_name
from ..board.numbers import safe_name
from ..intake.collect import find_everything
from ..view.media import picture, shown_media

INSTALL = 'pip install "medtasks[inspect]"'


def write_inspect_logs(results: Sequence[Path], out: Path) -> tuple[list[Path], list[str]]:
    """Write the logs of all runs in ``results`` to the new directory ``out``; return them, and notes on pictures.

    Pictures are included where the benchmark's board layout lets media be published, and nowhere else.

    Raises:
        UsageError: inspect_ai is not installed, ``out`` exists, or there is no run.
        DataError: a run cannot be read.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as error:
        raise UsageError(f"inspect_ai cannot be imported ({first_line(error)}); install it: {INSTALL}") from error
    if out.exists():
        raise UsageError(f"{out}: exists already; logs are never overwritten, choose another directory.")
    folders = find_everything(results).folders
    if not folders:
        raise no_run(results[0])
    notes: dict[str, None] = {}
    written = []
    for folder in folders:
        manifest, samples = read_run(folder)
        digest = RunFolder(folder).content
        scores = RunRecord.scored(manifest, samples).tasks
        out.mkdir(parents=True, exist_ok=True)
        for task, found in samples.items():
            pictures, note = _pictures(task, found, manifest)
            notes |= {note: None} if note else {}
            path = out / f"{digest[:12]}_{safe_name(model_name(manifest))}_{safe_name(task)}.eval"
            write_eval_log(_log(task, manifest, found, scores[task], digest, pictures), path, format="eval")
            written.append(path)
    return written, list(notes)


def _pictures(task: str, samples: Sequence[Sample], manifest: RunManifest) -> tuple[Mapping[str, Sequence[str]], str]:
    """Pictures by sample id as data URLs, or a note on why there are none."""
    benchmark = load_spec(task).metadata.benchmark
    layout = all_layouts().get(benchmark)
    if layout is None or layout.shows != "media":
        return {}, f"{benchmark}: without pictures. {layout.why if layout else 'Its terms do not allow them.'}"
    found: dict[str, list[str]] = {}
    try:
        for sample in samples:
            shown = shown_media(sample, manifest)
            if shown.absent:
                return {}, f"{benchmark}: without pictures. {shown.absent}"
            content = [picture(task, sample.sample_id, manifest, place, False) for place in range(shown.count)]
            found[sample.sample_id] = [f"data:image/png;base64,{base64.b64encode(one).decode()}" for one in content]
    except MedtasksError as error:
        return {}, f"{benchmark}: without pictures. {first_line(error)}"
    return found, ""


def _log(
    task: str,
    manifest: RunManifest,
    samples: Sequence[Sample],
    scores: Scores,
    digest: str,
    pictures: Mapping[str, Sequence[str]],
) -> Any:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalMetric, EvalResults, EvalScore, EvalSpec, EvalStats

    facts = manifest.tasks[task]
    name = model_name(manifest)
    identity = short_hash(f"{digest}\0{task}")
    made = [
        _sample(sample, place, name, pictures.get(sample.sample_id, ()))
        for sample in samples
        for place in range(len(sample.responses))
    ]
    totals = []
    for metric, score in scores.metrics.items():
        low, high = score.interval or (None, None)
        values = {"score": score.value, "ci95_low": low, "ci95_high": high}
        totals.append(
            EvalScore(
                name=metric,
                scorer=metric,
                scored_samples=score.samples,
                metrics={one: EvalMetric(name=one, value=value) for one, value in values.items() if value is not None},
                # without a value, why there is none
                metadata={"signature": score.signature, **({"reason": score.reason} if score.reason else {})},
            )
        )
    return EvalLog(
        status="success",
        eval=EvalSpec(
            eval_id=identity,
            run_id=digest[:16],
            task_id=identity,
            created=manifest.created,
            task=task,
            task_version=str(facts.version),
            model=name,
            model_args=shown_facts(manifest.model),
            dataset=EvalDataset(
                name=facts.benchmark, samples=len(samples), sample_ids=[sample.sample_id for sample in samples]
            ),
            config=EvalConfig(epochs=max((len(sample.responses) for sample in samples), default=1)),
            packages=dict(manifest.versions),
            metadata={
                "protocol_hash": facts.protocol_hash,
                "prompt_hash": facts.prompt_hash,
                "data": {one: data.fingerprint for one, data in manifest.data.items()},
                "generation": facts.generation,
            },
        ),
        results=EvalResults(
            total_samples=len(made), completed_samples=sum(sample.error is None for sample in made), scores=totals
        ),
        stats=EvalStats(started_at=manifest.created, completed_at=manifest.created),
        samples=made,
    )


def _sample(sample: Sample, place: int, model: str, pictures: Sequence[str]) -> Any:
    """The sample's response number ``place``, from 0, as an epoch.

    Metrics without a value are left out, as Inspect does with what is not scored.
    """
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, ModelOutput
    from inspect_ai.scorer import Score

    content = [*(ContentImage(image=one) for one in pictures), ContentText(text=sample.prompt)]
    identity = short_hash(f"{sample.task}\0{sample.sample_id}\0{place}")
    asked = ChatMessageUser(id=f"{identity}-user", content=content)
    output = ModelOutput.from_content(model, sample.responses[place])
    output.choices[0].message.id = f"{identity}-model"
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
    return EvalSample(
        id=sample.sample_id,
        epoch=place + 1,
        uuid=identity,
        input=[asked],
        messages=[asked, output.choices[0].message],
        choices=list(map(str, choices.values())) if isinstance(choices, Mapping) else None,
        target=sample.target,
        output=output,
        scores={
            name: Score(value=value, answer=answer, explanation=verdicts or None)
            for name, value in values.items()
            if value is not None
        },
        error=None if reason is None else EvalError(message=reason, traceback="", traceback_ansi=""),
        metadata={
            "sample_id": sample.sample_id,
            "task": sample.task,
            "cluster": sample.cluster,
            "status": status,
            "media": list(sample.media),
            "document": sample.document,
        },
    )
