"""Predictions made with another tool, scored by our rules as a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.benchmark import Document
from medtasks.catalog.spec import inner_groups, leaf_tasks, load_spec
from medtasks.core.errors import DataError, NoRowsError, UsageError, reading
from medtasks.core.files import canonical_json, check_regular, file_sha256
from medtasks.core.settings import current_settings
from medtasks.core.text import first_names
from medtasks.importers.given_verdicts import ImportedJudge, with_given_verdicts
from medtasks.importers.matching import MatchedPredictions, join, number_and_places
from medtasks.importers.prediction_files import read_predictions
from medtasks.importers.predictions import Prediction
from medtasks.runs.manifest import RubricFacts, RunManifest, TaskFacts, now, versions
from medtasks.runs.protocol import task_facts
from medtasks.runs.samples import UNKNOWN_PROMPT, Sample
from medtasks.scoring.finished_run import data_facts
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.learned_scores import with_learned_metrics
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scored_samples import scored_samples


@dataclass(frozen=True)
class PredictionFile:
    """Predictions for ``task``, with the options of ``medtasks score`` that affect what is printed.

    ``verdicts_of`` names the judge whose verdicts they have; without it, verdicts are ignored.
    ``epoch`` is the number of the epoch that counts, in a log with several responses to a question.
    """

    path: Path
    layout: str
    task: str
    columns: Mapping[str, str] = field(default_factory=dict)
    model: str = "unknown"
    verdicts_of: str | None = None
    epoch: int | None = None


def scored_predictions(file: PredictionFile, store: RunStore, out: Path | None = None) -> RunRecord:
    """The scored run of the predictions, from ``store`` if it was scored before.

    With ``out``, a directory that does not exist yet, the run is scored anew and written there.
    """
    key = _store_key(file, store)
    if out is None:
        stored = store.read_run(key, own=True)
        if stored is not None:
            return stored
    run = score_predictions(file)
    if out is not None:
        write_run(out, run)
    run = _without_samples(run)
    store.keep(key, run)
    return run


def _store_key(file: PredictionFile, store: RunStore) -> str:
    """The key of all that decides the scores: the file, the options, the code and the data."""
    options = [
        file.path.name,
        file.layout,
        file.task,
        dict(file.columns),
        file.model,
        file.verdicts_of,
        file.epoch,
    ]
    with reading(file.path, "check the path"):
        check_regular(file.path)
        content = canonical_json([file_sha256(file.path), options, str(current_settings())])
    return store.key_of(content, leaf_tasks(file.task), {})


def _without_samples(run: RunRecord) -> RunRecord:
    """The run with its scores and comparisons, but without the samples they were computed from."""
    compared = run.comparisons, run.level_gaps
    return replace(
        run, samples={}, made=RunTables({}), kept=compared, problems=run.manifest.problems
    )


def score_predictions(file: PredictionFile) -> RunRecord:
    """The predictions in ``file``, scored.

    A document without a prediction counts as unanswered and is not scored.

    Raises:
        UsageError: the task is unknown, the layout needs a single task, or has its own columns; the
            log has several epochs, or lacks the chosen one; or verdicts are wanted, and no task is
            judged, or no prediction has one.
        NotPreparedError: the benchmark is not prepared.
        DataError: the file does not follow its layout, predictions for a sample differ, or none
            matches a document.
    """
    leaves = leaf_tasks(file.task)
    if file.layout == "lmms-eval" and len(leaves) > 1:
        raise UsageError(
            f"--task {file.task}: the harness logs each task in a file of its own; "
            f"name one of {leaves[0]}, …."
        )
    predictions = read_predictions(file.path, file.layout, file.columns)
    return score_rows(predictions, file, file_sha256(file.path))


def score_rows(predictions: Sequence[Prediction], file: PredictionFile, sha256: str) -> RunRecord:
    """Predictions for a task or a group, as they were read from ``file``, scored."""
    predictions, of_other_epochs = _of_epoch(predictions, file)
    documents, problems = _documents_by_task(file.task)
    all_documents = [document for members in documents.values() for document in members]
    matched = join(predictions, all_documents, documents)
    if not matched.answered:
        raise _nothing_matches(file, predictions, matched)
    samples: dict[str, list[Sample]] = {}
    facts: dict[str, TaskFacts] = {}
    for task, members in documents.items():
        scored = _scored_task(task, members, matched, problems)
        if scored is not None:
            samples[task], facts[task] = scored
    judge: dict[str, RubricFacts] = {}
    if file.verdicts_of is not None:
        imported_judge = ImportedJudge(file.verdicts_of, file.layout, file.model)
        samples, judge = with_given_verdicts(samples, matched.answered, imported_judge)
    manifest = _manifest(file, sha256, facts, judge, problems)
    notes = matched.notes
    if of_other_epochs:
        number = number_and_places("prediction", of_other_epochs)
        notes.append(f"left out, because of another epoch: {number}")
    counts = {**matched.counts, "of_other_epochs": len(of_other_epochs)}
    run = RunRecord.scored(manifest, samples)
    return replace(run, notes=tuple(notes), predictions=counts)


def _nothing_matches(
    file: PredictionFile, predictions: Sequence[Prediction], matched: MatchedPredictions
) -> DataError:
    """The error of a file of which no prediction matches a document."""
    of_the_task = len(predictions) - len(matched.of_other_tasks)
    except_reference = ""
    if matched.strange:
        except_reference = (
            f" ({len(matched.strange):,} match except for the reference answer, such as "
            f"{matched.strange[0].where})"
        )
    return DataError(
        f"{file.path.name}: none of its {of_the_task} predictions matches a document of "
        f"{file.task}{except_reference}; check --task and the prepared data, or map the columns "
        "with --column (in Python: columns)."
    )


def _scored_task(
    task: str, documents: Sequence[Document], matched: MatchedPredictions, problems: list[str]
) -> tuple[list[Sample], TaskFacts] | None:
    """The scored samples of a task and the facts for the manifest; None without a prediction.

    Metrics that cannot be computed are added to ``problems``.
    """
    spec = load_spec(task)
    samples, replies = [], []
    for document in documents:
        predictions = matched.answered.get(document["sample_id"])
        if predictions:
            reply = predictions[0].reply
            replies.append(reply)
            samples.append(Sample.answered(task, document, (reply,), prompt_hash=UNKNOWN_PROMPT))
    if not samples:
        return None
    scored = with_learned_metrics(spec, scored_samples(spec, samples), problems)
    is_end_known = any(reply.finish is not None for reply in replies)
    outcomes = [sample.outcome for sample in scored]
    facts = task_facts(spec, {}, len(documents), prompt_hash=UNKNOWN_PROMPT)
    facts = facts.with_outcomes(outcomes, replies if is_end_known else ())
    return with_judged_scores(spec, scored), facts


def _manifest(
    file: PredictionFile,
    sha256: str,
    facts: Mapping[str, TaskFacts],
    judge: Mapping[str, RubricFacts],
    problems: Sequence[str],
) -> RunManifest:
    """The manifest of a run of the scored tasks, whose ``facts`` are passed."""
    benchmarks = sorted({task.benchmark for task in facts.values()})
    return RunManifest(
        created=now(),
        processes=1,
        versions=versions(),
        model=_origin(file, sha256),
        settings={},
        tasks=dict(facts),
        groups=_scored_groups(file.task, facts),
        data={benchmark: data_facts(benchmark) for benchmark in benchmarks},
        judge=dict(judge),
        problems=tuple(problems),
    )


def _origin(file: PredictionFile, sha256: str) -> dict[str, object]:
    """Where the responses are from, as the manifest has it in place of a model's options."""
    origin: dict[str, object] = {
        "model": file.model,
        "predictions": file.path.name,
        "layout": file.layout,
        "sha256": sha256,
    }
    if file.epoch is not None:
        origin["epoch"] = file.epoch
    return origin


def _scored_groups(task: str, scored: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The groups in a task or group with their tasks, both only as far as they were ``scored``."""
    groups: dict[str, tuple[str, ...]] = {}
    for group in inner_groups(task):
        members = tuple(leaf for leaf in leaf_tasks(group) if leaf in scored)
        if members:
            groups[group] = members
    return groups


def _of_epoch(
    predictions: Sequence[Prediction], file: PredictionFile
) -> tuple[Sequence[Prediction], Sequence[Prediction]]:
    """The predictions of the epoch that counts, and those of the others."""
    _check_epoch(predictions, file)
    if file.epoch is None:
        return predictions, ()
    chosen, left_out = [], []
    for prediction in predictions:
        if prediction.epoch == file.epoch:
            chosen.append(prediction)
        else:
            left_out.append(prediction)
    return chosen, left_out


def _check_epoch(predictions: Sequence[Prediction], file: PredictionFile) -> None:
    """Refuse a log of several epochs of which none is chosen, or without the chosen one."""
    epochs = sorted(
        {prediction.epoch for prediction in predictions if prediction.epoch is not None}
    )
    names = first_names(map(str, epochs), 12)
    if file.epoch is None:
        if len(epochs) > 1:
            raise UsageError(
                f"{file.path.name}: has several responses to a question, those of the epochs "
                f"{names}; choose one with --epoch {epochs[0]} (in Python: epoch={epochs[0]})."
            )
    elif file.epoch not in epochs:
        raise UsageError(
            f"{file.path.name}: has {_epochs_in_words(epochs, names)}, expected epoch "
            f"{file.epoch}; choose another, or none."
        )


def _epochs_in_words(epochs: Sequence[int], names: str) -> str:
    """The epochs that a log has, of which ``names`` are the first."""
    if not epochs:
        return "no epochs"
    if len(epochs) == 1:
        return f"only epoch {names}"
    return f"only the epochs {names}"


def _documents_by_task(task: str) -> tuple[dict[str, list[Document]], list[str]]:
    """The documents of each task of a task or group, and a sentence about tasks without rows.

    Raises:
        NoRowsError: the release has no rows for any of them.
    """
    documents: dict[str, list[Document]] = {}
    without_rows: dict[str, list[str]] = defaultdict(list)  # by the reason
    for leaf in leaf_tasks(task):
        try:
            documents[leaf] = task_documents(leaf, media=False)
        except NoRowsError as error:
            if leaf == task:
                raise
            without_rows[str(error)].append(leaf)
    if not documents:
        raise NoRowsError(next(iter(without_rows)))
    problems = []
    for reason, tasks in without_rows.items():
        problems.append(f"not scored: {', '.join(tasks)}, because {reason}")
    return documents, problems
