"""Predictions made with another tool, imported as a run: matched with our documents and scored by our rules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.rubric import load_rubric
from medtasks.catalog.spec import inner_groups, leaf_tasks, load_spec
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import canonical_json, check_regular, file_sha256
from medtasks.core.settings import current_settings
from medtasks.importers.matching import Joined, Prediction, join
from medtasks.importers.prediction_files import read_predictions
from medtasks.judge.verdict import Verdict, family_warnings, parse_verdict
from medtasks.runs.manifest import (
    UNKNOWN_PROMPT,
    RubricFacts,
    RunManifest,
    TaskFacts,
    now,
    protocol_hash,
    task_facts,
    versions,
)
from medtasks.runs.record import RunRecord, write_run
from medtasks.runs.replies import Reply
from medtasks.runs.run import data_facts
from medtasks.runs.samples import Sample
from medtasks.runs.scored import scored_samples, with_learned_metrics
from medtasks.runs.scores import COVERAGE
from medtasks.runs.table import RunTables
from medtasks.runs.verdicts import IMPORTED, judged_samples, questions_of, with_judged_scores
from medtasks.verify.store import RunStore


@dataclass(frozen=True)
class Imported:
    """Manifest and scored samples of the run that predictions make, and how they were matched."""

    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]]
    joined: Joined

    @cached_property
    def run(self) -> RunRecord:
        """The run with its scores."""
        run = RunRecord.scored(self.manifest, self.samples)
        return replace(run, notes=tuple(self.joined.notes), predictions=self.joined.counts)


@dataclass(frozen=True)
class PredictionFile:
    """Predictions for ``task``, with the options of ``medtasks score`` that affect what is printed.

    ``verdicts_of`` names the judge whose verdicts they have; without it, verdicts are ignored.
    """

    path: Path
    layout: str
    task: str
    columns: Mapping[str, str] = field(default_factory=dict)
    model: str = "unknown"
    verdicts_of: str | None = None


def scored_predictions(file: PredictionFile, store: RunStore, out: Path | None = None) -> RunRecord:
    """The scored run of the predictions, kept by what decides the scores; also written to the new directory ``out``."""
    options = [file.path.name, file.layout, file.task, dict(file.columns), file.model, file.verdicts_of]
    with reading(file.path, "check the path"):
        check_regular(file.path)
        content = canonical_json([file_sha256(file.path), options, str(current_settings())])
    key = store.key_of(content, leaf_tasks(file.task), {})
    if out is None and (found := store.read_run(key, own=True)) is not None:
        return found
    run = score_predictions(file, now()).run
    if out is not None:
        write_run(out, run)
    compared = run.comparisons, run.level_gaps
    run = replace(run, samples={}, made=RunTables({}), kept=compared, problems=run.manifest.problems)
    store.keep(key, run)
    return run


def score_predictions(file: PredictionFile, created: str) -> Imported:
    """The predictions in ``file``, scored. A document without a prediction counts as unanswered and is not scored.

    Raises:
        UsageError: the task is unknown, the layout needs a single task, or has its own columns; or verdicts are wanted,
            and no task is judged, or no prediction has one.
        NotPreparedError: the benchmark is not prepared.
        DataError: the file does not follow its layout, predictions for a sample differ, or none matches a document.
    """
    leaves = leaf_tasks(file.task)
    if file.layout == "lmms-eval" and len(leaves) > 1:
        raise UsageError(
            f"--task {file.task}: the harness logs each task in a file of its own; name one of {leaves[0]}, …."
        )
    read = read_predictions(file.path, file.layout, file.columns)
    return score_rows(read, file, file_sha256(file.path), created)


def score_rows(predictions: Sequence[Prediction], file: PredictionFile, sha256: str, created: str) -> Imported:
    """Predictions for a task or a group, as they were read from ``file``, scored."""
    task = file.task
    documents = {name: task_documents(name, media=False) for name in leaf_tasks(task)}
    joined = join(predictions, [one for members in documents.values() for one in members], documents)
    if not joined.given:
        near = joined.strange
        but = f" ({len(near):,} match except for the reference answer, such as {near[0].where})" if near else ""
        raise DataError(
            f"{file.path.name}: none of its {len(predictions) - len(joined.others)} predictions matches a "
            f"document of {task}{but}; check --task and the prepared data, or map the columns with --column."
        )
    samples: dict[str, list[Sample]] = {}
    facts: dict[str, TaskFacts] = {}
    problems: list[str] = []
    for name, members in documents.items():
        spec = load_spec(name)
        answered = []
        for document in members:
            for given in joined.given.get(document["sample_id"], ())[:1]:
                reply = Reply(given.response).checked() if given.failed is None else Reply.failure(given.failed)
                answered.append(Sample.answered(name, document, (reply,), prompt_hash=UNKNOWN_PROMPT))
        if answered:
            scored = with_learned_metrics(spec, scored_samples(spec, answered), problems)
            samples[name] = with_judged_scores(spec, scored)
            made = task_facts(spec, {}, len(members)).with_outcomes([sample.outcome for sample in scored], ())
            known = protocol_hash(spec, {}, prompt_hash=UNKNOWN_PROMPT)
            update = {"prompt_hash": UNKNOWN_PROMPT, "template": "", "protocol_hash": known}
            facts[name] = made.model_copy(update=update)
    judge: dict[str, RubricFacts] = {}
    if file.verdicts_of is not None:
        samples, judge = _with_given_verdicts(samples, joined.given, file.verdicts_of, file)
    groups = {name: tuple(leaf for leaf in leaf_tasks(name) if leaf in samples) for name in inner_groups(task)}
    manifest = RunManifest(
        created=created,
        processes=1,
        versions=versions(),
        model={"model": file.model, "predictions": file.path.name, "layout": file.layout, "sha256": sha256},
        settings={},
        tasks=facts,
        groups={name: members for name, members in groups.items() if members},
        data={name: data_facts(name) for name in sorted({one.benchmark for one in facts.values()})},
        judge=judge,
        problems=tuple(problems),
    )
    return Imported(manifest, samples, joined)


def _with_given_verdicts(
    samples: Mapping[str, list[Sample]], given: Mapping[str, Sequence[Prediction]], judge: str, file: PredictionFile
) -> tuple[dict[str, list[Sample]], dict[str, RubricFacts]]:
    """``samples`` with the verdicts in their predictions, scored by each task's first rubric; facts for the manifest.
    The judge is identified by its name and marked as imported, so these scores are not comparable with our own."""
    tasks_of: dict[str, list[str]] = {}
    for task in samples:
        for name in load_spec(task).metadata.rubrics[:1]:
            tasks_of.setdefault(name, []).append(task)
    if not tasks_of:
        raise UsageError(f"no task of {', '.join(samples)} is judged; leave --verdicts-of out.")
    if not any(prediction.verdict for several in given.values() for prediction in several):
        raise UsageError("no prediction of the file has a verdict (`eval_json`); leave --verdicts-of out.")
    described = {"model": judge, IMPORTED: file.layout}
    judged, known = dict(samples), dict[str, RubricFacts]()
    for name, tasks in tasks_of.items():
        rubric = load_rubric(name)
        questions = questions_of(judged, tasks, rubric)
        verdicts: dict[str, Verdict] = {}
        for question in questions:
            document = question.document
            told = [row.verdict for row in given.get(document["sample_id"], ()) if row.verdict is not None]
            readings = [parse_verdict(json.dumps(verdict), rubric, document) for verdict in told]
            valid = [reading for reading in readings if isinstance(reading, Verdict)]
            found = Verdict(unjudged=f"the file has no {'valid ' if readings else ''}verdict")
            if valid:
                found = Verdict(scores=valid[0].scores, reasons=valid[0].reasons)
            if any(one.scores != valid[0].scores for one in valid):
                found = Verdict(unjudged="the file has contradicting verdicts")
            verdicts[question.name] = found
        judged, known[name] = judged_samples(
            judged,
            known,
            rubric,
            tuple(tasks),
            {judge: described},
            questions,
            {judge: verdicts},
            threshold=COVERAGE,
            warnings=family_warnings([judge], [file.model]),
        )
    return judged, known
