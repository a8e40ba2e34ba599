"""Predictions made with another tool, imported as a run: matched with our documents and scored by
our rules.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from medtasks.answers.base import is_scored_whole
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.benchmark import Document
from medtasks.catalog.rubric import load_rubric
from medtasks.catalog.spec import inner_groups, leaf_tasks, load_spec
from medtasks.core.errors import DataError, NoRowsError, UsageError, reading
from medtasks.core.files import canonical_json, check_regular, file_sha256
from medtasks.core.schema import shown
from medtasks.core.settings import current_settings
from medtasks.core.text import counted, first_names
from medtasks.importers.prediction_files import read_predictions
from medtasks.importers.predictions import End, Prediction
from medtasks.judge.families import family_warnings
from medtasks.judge.questions import judged_samples, questions_of
from medtasks.judge.verdict_parsing import parse_verdict
from medtasks.runs.manifest import (
    UNKNOWN_PROMPT,
    RubricFacts,
    RunManifest,
    TaskFacts,
    now,
    task_facts,
    versions,
)
from medtasks.runs.samples import Sample
from medtasks.runs.verdict import Verdict
from medtasks.scoring.finished_run import data_facts
from medtasks.scoring.item_table import RunTables
from medtasks.scoring.judged_scores import IMPORTED, with_judged_scores
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_record import RunRecord, write_run
from medtasks.scoring.scored_samples import scored_samples, with_learned_metrics
from medtasks.scoring.scores import COVERAGE

_REPEAT = re.compile(r"#[0-9]+")
"""The number in the id of a row that shares its id with an earlier one
(`medtasks.catalog.records.distinct`).
"""


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
    """The scored run of the predictions, kept by what decides the scores; also written to the new
    directory ``out``.
    """
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
    key = store.key_of(content, leaf_tasks(file.task), {})
    if out is None and (found := store.read_run(key, own=True)) is not None:
        return found
    run = score_predictions(file)
    if out is not None:
        write_run(out, run)
    compared = run.comparisons, run.level_gaps
    run = replace(
        run, samples={}, made=RunTables({}), kept=compared, problems=run.manifest.problems
    )
    store.keep(key, run)
    return run


def score_predictions(file: PredictionFile) -> RunRecord:
    """The predictions in ``file``, scored. A document without a prediction counts as unanswered and
    is not scored.

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
            f"--task {file.task}: the harness logs each task in a file of its own; name one of {leaves[0]}, …."
        )
    return score_rows(
        read_predictions(file.path, file.layout, file.columns), file, file_sha256(file.path)
    )


def score_rows(predictions: Sequence[Prediction], file: PredictionFile, sha256: str) -> RunRecord:
    """Predictions for a task or a group, as they were read from ``file``, scored."""
    task = file.task
    predictions, of_other_epochs = _of_epoch(predictions, file)
    documents, problems = _documents_by_task(task)
    joined = join(
        predictions, [one for members in documents.values() for one in members], documents
    )
    if not joined.answered:
        near = joined.strange
        but = (
            f" ({len(near):,} match except for the reference answer, such as {near[0].where})"
            if near
            else ""
        )
        raise DataError(
            f"{file.path.name}: none of its {len(predictions) - len(joined.of_other_tasks)} predictions matches a "
            f"document of {task}{but}; check --task and the prepared data, or map the columns with --column "
            "(in Python: columns)."
        )
    samples: dict[str, list[Sample]] = {}
    facts: dict[str, TaskFacts] = {}
    for name, members in documents.items():
        spec = load_spec(name)
        answered, replies = [], []
        for document in members:
            for given in joined.answered.get(document["sample_id"], ())[:1]:
                reply = given.reply
                replies.append(reply)
                answered.append(
                    Sample.answered(name, document, (reply,), prompt_hash=UNKNOWN_PROMPT)
                )
        if answered:
            scored = with_learned_metrics(spec, scored_samples(spec, answered), problems)
            samples[name] = with_judged_scores(spec, scored)
            ended = replies if any(reply.finish is not None for reply in replies) else ()
            planned = task_facts(spec, {}, len(members), prompt_hash=UNKNOWN_PROMPT)
            facts[name] = planned.with_outcomes([sample.outcome for sample in scored], ended)
    judge: dict[str, RubricFacts] = {}
    if file.verdicts_of is not None:
        samples, judge = _with_given_verdicts(samples, joined.answered, file.verdicts_of, file)
    groups = {
        name: tuple(leaf for leaf in leaf_tasks(name) if leaf in samples)
        for name in inner_groups(task)
    }
    origin = {
        "model": file.model,
        "predictions": file.path.name,
        "layout": file.layout,
        "sha256": sha256,
    }
    manifest = RunManifest(
        created=now(),
        processes=1,
        versions=versions(),
        model=origin if file.epoch is None else {**origin, "epoch": file.epoch},
        settings={},
        tasks=facts,
        groups={name: members for name, members in groups.items() if members},
        data={name: data_facts(name) for name in sorted({one.benchmark for one in facts.values()})},
        judge=judge,
        problems=tuple(problems),
    )
    run = RunRecord.scored(manifest, samples)
    notes = [*joined.notes]
    if of_other_epochs:
        others = f"{counted(len(of_other_epochs), 'prediction')} ({_places(of_other_epochs)})"
        notes.append(f"left out, because of another epoch: {others}")
    counts = {**joined.counts, "of_other_epochs": len(of_other_epochs)}
    return replace(run, notes=tuple(notes), predictions=counts)


def _of_epoch(
    predictions: Sequence[Prediction], file: PredictionFile
) -> tuple[Sequence[Prediction], Sequence[Prediction]]:
    """The predictions of the epoch that counts, and those of the others."""
    epochs = sorted({one.epoch for one in predictions if one.epoch is not None})
    known = first_names(map(str, epochs), 12)
    if file.epoch is None:
        if len(epochs) > 1:
            raise UsageError(
                f"{file.path.name}: has several responses to a question, those of the epochs {known}; choose one with "
                f"--epoch {epochs[0]} (in Python: epoch={epochs[0]})."
            )
        return predictions, ()
    if file.epoch not in epochs:
        found = (
            f"only {'epoch' if len(epochs) == 1 else 'the epochs'} {known}"
            if epochs
            else "no epochs"
        )
        raise UsageError(
            f"{file.path.name}: has {found}, expected epoch {file.epoch}; choose another, or none."
        )
    others = [one for one in predictions if one.epoch != file.epoch]
    return [one for one in predictions if one.epoch == file.epoch], others


def _documents_by_task(task: str) -> tuple[dict[str, list[Document]], list[str]]:
    """The documents of each task of a task or group, and a sentence about those that the release
    has no rows for. Raises :class:`NoRowsError` if it has none for any.
    """
    documents: dict[str, list[Document]] = {}
    without_rows: dict[str, list[str]] = defaultdict(list)  # by the reason
    for name in leaf_tasks(task):
        try:
            documents[name] = task_documents(name, media=False)
        except NoRowsError as error:
            if name == task:
                raise
            without_rows[str(error)].append(name)
    if not documents:
        raise NoRowsError(next(iter(without_rows)))
    return documents, [
        f"not scored: {', '.join(names)}, because {reason}"
        for reason, names in without_rows.items()
    ]


def _with_given_verdicts(
    samples: Mapping[str, list[Sample]],
    given: Mapping[str, Sequence[Prediction]],
    judge: str,
    file: PredictionFile,
) -> tuple[dict[str, list[Sample]], dict[str, RubricFacts]]:
    """``samples`` with the verdicts in their predictions, scored by each task's first rubric; facts
    for the manifest. The judge is identified by its name and marked as imported, so these scores
    are not comparable with our own.
    """
    tasks_of: dict[str, list[str]] = defaultdict(list)
    for task in samples:
        for name in load_spec(task).metadata.rubrics[:1]:
            tasks_of[name].append(task)
    if not tasks_of:
        raise UsageError(f"no task of {', '.join(samples)} is judged; leave --verdicts-of out.")
    if not any(prediction.verdict for several in given.values() for prediction in several):
        raise UsageError(
            "no prediction of the file has a verdict (`eval_json`); leave --verdicts-of out."
        )
    judges = {judge: {"model": judge, IMPORTED: file.layout}}
    judged, known = dict(samples), dict[str, RubricFacts]()
    for name, tasks in tasks_of.items():
        rubric = load_rubric(name)
        questions = questions_of(judged, tasks, rubric)
        verdicts: dict[str, Verdict] = {}
        for question in questions:
            rows = given.get(question.document["sample_id"], ())
            texts = [json.dumps(row.verdict) for row in rows if row.verdict is not None]
            readings = [parse_verdict(text, rubric, question.document) for text in texts]
            valid = [reading for reading in readings if isinstance(reading, Verdict)]
            if not valid:
                verdict = Verdict(unjudged=f"the file has no {'valid ' if readings else ''}verdict")
            elif any(one.scores != valid[0].scores for one in valid):
                verdict = Verdict(unjudged="the file has contradicting verdicts")
            else:
                verdict = Verdict(scores=valid[0].scores, reasons=valid[0].reasons)
            verdicts[question.name] = verdict
        judged, known[name] = judged_samples(
            judged,
            known,
            rubric,
            tuple(tasks),
            judges,
            questions,
            {judge: verdicts},
            threshold=COVERAGE,
            warnings=family_warnings([judge], [file.model]),
        )
    return judged, known


@dataclass(frozen=True)
class Joined:
    """Predictions that are not used, and those ``answered`` by sample; ids are in the order of the
    documents, predictions in that of the file.

    All predictions for a sample have the same response. ``ambiguous`` samples share their key with
    others; ``repeated`` ones are equal to an earlier sample, whose prediction they take;
    ``strange`` predictions fit a sample with another reference answer than the file's.
    """

    missing: list[str]
    unmatched: list[Prediction]
    strange: list[Prediction]
    duplicates: list[Prediction]
    ambiguous: list[str]
    answered: dict[str, list[Prediction]]
    of_other_tasks: list[Prediction]
    repeated: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """How many documents have a prediction, which have none, and which predictions are not
        used; a line each.
        """
        lines = [
            f"{len(self.answered):,} of {len(self.answered) + len(self.missing):,} documents have a prediction"
        ]
        if self.missing:
            lines.append(f"unanswered (not scored): {first_names(self.missing, 5)}")
        left_out = {
            "no document matches": self.unmatched,
            "its reference answer is not its document's": self.strange,
            "it repeats an earlier one": self.duplicates,
            "it names another task": self.of_other_tasks,
        }
        for why, members in left_out.items():
            if members:
                lines.append(
                    f"left out, because {why}: {counted(len(members), 'prediction')} ({_places(members)})"
                )
        if self.ambiguous:
            lines.append(
                f"{counted(len(self.ambiguous), 'document')} with the key of another, answered in order"
            )
        used = [several[0] for several in self.answered.values()]
        for limit in (End.TOKEN_LIMIT, End.CELL_LIMIT):
            cut = [one for one in used if one.end is limit]
            if cut:
                lines.append(
                    f"cut off {limit.value}: {counted(len(cut), 'response')} ({_places(cut)})"
                )
        long = [one for one in used if not is_scored_whole(one.response)]
        if long:
            lines.append(
                f"scored by the beginning and the end: {counted(len(long), 'response')} ({_places(long)})"
            )
        failed: dict[str, list[Prediction]] = defaultdict(list)
        for one in used:
            reason = one.reply.failed
            if reason is not None:
                failed[reason].append(one)
        for reason, several in failed.items():
            lines.append(
                f"no response ({reason}): {counted(len(several), 'prediction')} ({_places(several)})"
            )
        if self.repeated:
            number = counted(len(self.repeated), "document")
            lines.append(
                f"{number} with the prediction of an equal earlier one: {first_names(self.repeated, 5)}"
            )
        return lines

    @property
    def counts(self) -> dict[str, int]:
        """The sizes of all these, and how many samples have a verdict in the file."""
        judged = sum(any(one.verdict for one in several) for several in self.answered.values())
        return {name: len(members) for name, members in vars(self).items()} | {
            "with_verdict": judged
        }


def _places(predictions: Iterable[Prediction]) -> str:
    """Where the first five of these predictions are."""
    return first_names((str(one.where) for one in predictions), 5)


def join(
    predictions: Sequence[Prediction],
    documents: Sequence[Mapping[str, Any]],
    tasks: Collection[str] = (),
) -> Joined:
    """Match predictions with documents.

    A prediction is matched by its sample id if it has one, else by ``doc_id``, the position in
    ``documents`` (checked against the target), else by ``id`` if that is a sample id, else by
    ``img_id`` (or the name of its file) and ``question`` (NFC, whitespace collapsed, case kept),
    else by ``question`` alone. Blanks around ids do not matter. A reference answer in the file must
    match the document's. Of rows that a release repeats, one prediction is enough.

    ``predictions`` are in the order of their file, ``documents`` in the task's. Predictions that
    name a task which is not among ``tasks`` are set aside; by default, none is.

    Raises:
        UsageError: two documents share a sample id (documents of several tasks).
        DataError: two different responses to one sample, several documents with the same key but a
            different number of predictions, or a harness line for other documents; names the
            places.
    """
    index = _Index(documents)
    given: dict[str, list[Prediction]] = {sample_id: [] for sample_id in index.by_id}
    shared: dict[tuple[str, ...], list[Prediction]] = defaultdict(list)
    unmatched, strange, others, repeats = [], [], [], []
    for one in predictions:
        if tasks and "task" in one.keys and one.keys["task"] not in tasks:
            others.append(one)
            continue
        matching = index.matching(one)
        fitting = tuple(sample_id for sample_id in matching if index.has_reference(sample_id, one))
        if not matching:
            unmatched.append(one)
        elif not fitting:
            strange.append(one)
        elif len(fitting) == 1:
            given[fitting[0]].append(one)
        else:
            shared[fitting].append(one)

    # samples with equal keys are answered in the order of the file
    by_order = set[str]()
    for sharing, several in shared.items():
        fitting = sharing
        if len(several) < len(
            sharing
        ):  # of equal rows, the first may be the only one with a prediction
            fitting = tuple(dict.fromkeys(map(index.first_equal, sharing)))
        merged = (
            len(several) > len(fitting) and len({one.answer for one in several}) == 1
        )  # a join of equal keys
        if len(several) != len(fitting) and not merged:
            keys = several[0].keys
            raise DataError(
                f"{several[0].where}: {len(several)} prediction(s) for img_id {shown(keys['img_id'])} and question "
                f"{shown(keys['question'])}, expected {len(fitting)}, as that many samples share these keys "
                f"({', '.join(fitting)}); give the sample_id of each in layout jsonl or csv."
            )
        by_order.update(fitting if len(fitting) > 1 else ())
        for number, one in enumerate(several):
            given[fitting[min(number, len(fitting) - 1)]].append(one)

    for sample_id, several in given.items():
        for one in several[1:]:
            if one.answer != several[0].answer:
                raise DataError(
                    f"{one.where}: the response to sample {sample_id} differs from that in {several[0].where}; keep "
                    "one of them, or give the task of each."
                )
            repeats.append(one)
    repeated = []
    for sample_id, found in given.items():
        first = index.first_equal(sample_id)
        if not found and given[first]:
            found += given[first]
            repeated.append(sample_id)
    return Joined(
        missing=[sample_id for sample_id, found in given.items() if not found],
        unmatched=unmatched,
        strange=strange,
        duplicates=sorted(repeats, key=lambda one: (one.where.file, one.where.line)),
        ambiguous=[sample_id for sample_id in given if sample_id in by_order],
        repeated=repeated,
        answered={sample_id: found for sample_id, found in given.items() if found},
        of_other_tasks=others,
    )


_PICTURES = frozenset({".bmp", ".dcm", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""Suffixes of the files of pictures."""


class _Index:
    """The documents by each of the keys."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self.documents = documents
        self.by_id: dict[str, Mapping[str, Any]] = {}
        self.id_without_blanks: dict[str, str] = {}
        self.by_question: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.by_text: dict[str, list[str]] = defaultdict(list)
        for document in documents:
            sample_id = document["sample_id"]
            if sample_id in self.by_id:
                raise UsageError(
                    f"sample id {sample_id} is duplicated; join predictions with one task at a time."
                )
            self.by_id[sample_id] = document
            self.id_without_blanks[sample_id.strip()] = sample_id
            question = _normalised(str(document.get("question", "")))
            self.by_text[question].append(sample_id)
            media = document.get("media") or []
            image = document.get("img_id") or (
                PurePosixPath(media[0]).stem if len(media) == 1 else ""
            )
            if image:
                self.by_question[_normalised(image), question].append(sample_id)

    def matching(self, one: Prediction) -> Sequence[str]:
        """Sample ids of the documents that ``one`` may answer."""
        if "doc_id" in one.keys:
            number = int(one.keys["doc_id"])
            return [self._checked(number, one)] if number < len(self.documents) else []
        named = one.keys.get("sample_id", one.keys.get("id", ""))
        sample_id = self.id_without_blanks.get(named.strip())
        if sample_id is not None:
            return [sample_id]
        if "sample_id" in one.keys:
            return []
        question = _normalised(one.keys.get("question", ""))
        if {"img_id", "question"} <= one.keys.keys():
            if not self.by_question:
                raise DataError(
                    f"{one.where}: no sample_id, and the task's documents have no img_id; give the sample_id."
                )
            return self._of_picture(one.keys["img_id"], question)
        found = self.by_text.get(question, [])
        if len(found) < 2:
            return found
        numbered = [
            sample_id for sample_id in found if sample_id.endswith(f"-{one.keys.get('id')}")
        ]
        if len(numbered) != 1:
            raise DataError(
                f"{one.where}: its question is asked in {len(found)} samples ({', '.join(found[:3])}, …), and it "
                "names no image; add the sample_id of each."
            )
        return numbered

    def _of_picture(self, img_id: str, question: str) -> Sequence[str]:
        """Sample ids of the documents with this question on the picture, whose file may be named
        instead of its id.
        """
        matching = self.by_question.get((_normalised(img_id), question), [])
        file = PureWindowsPath(img_id.strip())  # handles both separators
        if matching or file.suffix.lower() not in _PICTURES:
            return matching
        return self.by_question.get((_normalised(file.stem), question), [])

    def first_equal(self, sample_id: str) -> str:
        """The id of the first sample whose row this one only repeats (its id has a number, see
        `distinct`), or its own id.
        """
        first = _REPEAT.sub("", sample_id)
        if first == sample_id or first not in self.by_id:
            return sample_id
        return (
            first if _content(self.by_id[sample_id]) == _content(self.by_id[first]) else sample_id
        )

    def has_reference(self, sample_id: str, one: Prediction) -> bool:
        """Whether the document's reference answer is the file's, or the file has none."""
        if "target" not in one.keys or "doc_id" in one.keys:
            return True
        document = self.by_id[
            sample_id
        ]  # its answer is written as it is, or an option's text for its letter
        options = document.get("choices")
        answers = [
            document["target"],
            options.get(document["target"]) if isinstance(options, Mapping) else None,
        ]
        target = _normalised(one.keys["target"]).casefold()
        return any(
            target == _normalised(str(answer)).casefold()
            for answer in answers
            if answer is not None
        )

    def _checked(self, number: int, one: Prediction) -> str:
        """The id of the document in this position, which must be the one that was asked."""
        document = self.documents[number]
        for name, expected in {
            "target": [str(document["target"])],
            "input_media": document["media"],
        }.items():
            if name in one.keys and expected and one.keys[name] not in expected:
                raise DataError(
                    f"{one.where}: field `{name}` is {shown(one.keys[name])}, expected {shown(expected[0])} of "
                    f"document {number} ({document['sample_id']}); the line belongs to another task or to other data: "
                    "give the correct task, or prepare the data that the predictions were made on."
                )
        return str(document["sample_id"])


def _content(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without its ids."""
    return {name: value for name, value in document.items() if name not in ("sample_id", "item_id")}


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
