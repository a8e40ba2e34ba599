"""Predictions made with another tool, imported as a run: matched with our documents and scored by our rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import inner_groups, leaf_tasks, load_spec
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import canonical_json, check_regular, file_sha256
from medtasks.core.settings import current_settings
from medtasks.core.text import counted
from medtasks.importers.layouts import Layout, read_predictions
from medtasks.importers.matching import Joined, join
from medtasks.importers.prediction import Prediction
from medtasks.importers.verdicts import with_given_verdicts
from medtasks.runs.folder import write_run
from medtasks.runs.manifest import UNKNOWN_PROMPT, RubricFacts, RunManifest, now, protocol_hash, task_facts, versions
from medtasks.runs.record import RunRecord
from medtasks.runs.replies import Reply
from medtasks.runs.run import data_facts
from medtasks.runs.samples import Sample
from medtasks.runs.scored import Answered, scored_samples, with_learned_metrics
from medtasks.runs.table import RunTables
from medtasks.runs.verdicts import with_judged_scores
from medtasks.verify.scored import RunStore


@dataclass(frozen=True)
class Imported:
    """Manifest and scored samples of the run that predictions make, how they were matched, and how many belong to
    other tasks (``others``, skipped)."""

    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]]
    joined: Joined
    others: int

    @cached_property
    def run(self) -> RunRecord:
        """The run with its scores."""
        run = RunRecord.scored(self.manifest, self.samples)
        return replace(run, notes=tuple(self.notes), predictions=self.counts)

    @property
    def notes(self) -> list[str]:
        """What became of documents without a prediction, and of predictions that are not used."""
        left_out = [f"left out, because they name another task: {counted(self.others, 'prediction')}"]
        return [*self.joined.notes, *(left_out if self.others else [])]

    @property
    def counts(self) -> dict[str, int]:
        """How the predictions were matched, and how many samples have a verdict in the file."""
        joined = self.joined
        kinds = ("missing", "unmatched", "strange", "duplicates", "ambiguous")
        return {
            **{kind: len(getattr(joined, kind)) for kind in kinds},
            "answered": len(joined.given),
            "of_other_tasks": self.others,
            "with_verdict": sum(any(one.verdict for one in several) for several in joined.given.values()),
        }


@dataclass(frozen=True)
class PredictionFile:
    """A file of predictions for ``task``, with the options of ``medtasks score`` that affect what is printed."""

    path: Path
    layout: Layout
    task: str
    columns: Mapping[str, str]
    model: str = "unknown"
    verdicts_of: str | None = None

    @property
    def content(self) -> str:
        """What decides the scores, besides code and data: the file, the options, the settings in force.

        Raises:
            DataError: the file cannot be read.
        """
        options = [self.path.name, self.layout, self.task, dict(self.columns), self.model, self.verdicts_of]
        with reading(self.path, "check the path"):
            check_regular(self.path)
            return canonical_json([file_sha256(self.path), options, str(current_settings())])

    def contains(self) -> tuple[Collection[str], Mapping[str, bool]]:
        """The names of the tasks; no data are named."""
        return leaf_tasks(self.task), {}


def scored_predictions(file: PredictionFile, store: RunStore, out: Path | None = None) -> RunRecord:
    """The scored run of the predictions, kept; also written to the new directory ``out``, which needs its samples.

    Raises:
        MedtasksError: as :func:`score_predictions`, or ``out`` exists.
    """
    key = store.key_of(file.content, file.contains)
    found = store.read_run(key, own=True) if out is None else None
    if found is not None:
        return found
    run = score_predictions(
        file.path,
        file.layout,
        file.task,
        columns=dict(file.columns),
        model=file.model,
        verdicts_of=file.verdicts_of,
        created=now(),
    ).run
    if out is not None:
        write_run(out, run)
    compared = run.comparisons, run.level_gaps
    run = replace(run, samples={}, made=RunTables({}), kept=compared, problems=run.manifest.problems)
    store.keep(key, run)
    return run


def score_predictions(
    path: Path,
    layout: Layout,
    task: str,
    *,
    columns: dict[str, str] | None = None,
    model: str = "unknown",
    verdicts_of: str | None = None,
    created: str,
) -> Imported:
    """Score the predictions in ``path`` for ``task`` (a task or a group).

    A document without a prediction counts as unanswered and is not scored. ``verdicts_of`` names the judge whose
    verdicts are in the file; by default they are ignored.

    Raises:
        UsageError: the task or layout is unknown, or the layout needs a single task.
        NotPreparedError: the benchmark is not prepared.
        DataError: the file does not follow its layout, predictions for a sample differ, or none matches a document.
    """
    leaves = leaf_tasks(task)
    if layout == "lmms-eval" and len(leaves) > 1:
        raise UsageError(f"--task {task}: the harness logs each task in a file of its own; name one of {leaves[0]}, ….")
    read = read_predictions(path, layout, columns or {})
    facts = {"predictions": path.name, "layout": layout, "sha256": file_sha256(path)}
    return score_rows(read, layout, task, str(path), facts, model=model, verdicts_of=verdicts_of, created=created)


def score_rows(
    everything: Sequence[Prediction],
    layout: str,
    task: str,
    place: str,
    facts: Mapping[str, str],
    *,
    model: str,
    verdicts_of: str | None,
    created: str,
) -> Imported:
    """Score predictions that are already read; ``place`` names them in messages, ``facts`` are for the manifest."""
    leaves = leaf_tasks(task)
    documents = {name: task_documents(name, media=False) for name in leaves}
    predictions = [one for one in everything if one.keys.get("task", leaves[0]) in leaves]
    joined = join(predictions, [document for members in documents.values() for document in members])
    if not joined.given:
        near = joined.strange
        but = f" ({len(near):,} match except for the reference answer, such as {near[0].where})" if near else ""
        raise DataError(
            f"{place}: none of its {len(predictions)} predictions matches a document of {task}{but}; check --task and "
            "the prepared data, or map the columns with --column."
        )
    samples: dict[str, list[Sample]] = {}
    problems: list[str] = []
    for name, members in documents.items():
        spec = load_spec(name)
        answered = [document for document in members if document["sample_id"] in joined.given]
        replies = []
        for document in answered:
            given = joined.given[document["sample_id"]][0]
            reply = Reply(given.response).checked() if given.failed is None else Reply.failure(given.failed)
            replies.append(Answered(document, (reply,), prompt_hash=UNKNOWN_PROMPT))
        scored = scored_samples(spec, replies)
        if scored:
            samples[name] = with_judged_scores(spec, with_learned_metrics(spec, scored, problems))
    judge: dict[str, RubricFacts] = {}
    if verdicts_of is not None:
        samples, judge = with_given_verdicts(samples, joined.given, verdicts_of, layout, model=model)
    manifest = _manifest(task, samples, documents, {"model": model, **facts}, created, problems, judge)
    return Imported(manifest, samples, joined, len(everything) - len(predictions))


def _manifest(
    task: str,
    samples: dict[str, list[Sample]],
    documents: dict[str, list[dict[str, object]]],
    model: dict[str, str],
    created: str,
    problems: Sequence[str],
    judge: dict[str, RubricFacts],
) -> RunManifest:
    groups = {name: tuple(leaf for leaf in leaf_tasks(name) if leaf in samples) for name in inner_groups(task)}
    groups = {name: members for name, members in groups.items() if members}
    facts = {}
    for name, members in samples.items():
        spec = load_spec(name)
        made = task_facts(spec, {}, len(documents[name])).with_outcomes([sample.outcome for sample in members], ())
        known = protocol_hash(spec, {}, prompt_hash=UNKNOWN_PROMPT)
        facts[name] = made.model_copy(update={"prompt_hash": UNKNOWN_PROMPT, "template": "", "protocol_hash": known})
    benchmarks = sorted({fact.benchmark for fact in facts.values()})
    return RunManifest(
        created=created,
        processes=1,
        versions=versions(),
        model=model,
        settings={},
        tasks=facts,
        groups=groups,
        data={name: data_facts(name) for name in benchmarks},
        judge=judge,
        problems=tuple(problems),
    )
