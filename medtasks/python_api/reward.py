"""Rewards for training: a metric of a task, as a reward function of TRL's trainers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.benchmark import Document
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import UsageError
from medtasks.core.schema import unknown
from medtasks.data.store import open_prepared
from medtasks.metrics.registry import get_metric, scores_pairs
from medtasks.python_api.training_rows import Completion, QuestionReader, response_of
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.runs.training_record import (
    RewardUse,
    TrainingRecord,
    read_training_record,
    write_training_record,
)
from medtasks.scoring.scored_samples import scored_samples

if TYPE_CHECKING:
    from datasets import Dataset

_NOT_A_DOCUMENT = frozenset({"prompts", "completions", "completion_ids", "image", "images"})
"""What a trainer passes besides the columns that describe a question."""


def reward(task: str, metric: str | None = None, *, benchmark_questions: bool = False) -> Reward:
    """A reward function that scores completions as the task scores responses.

    Args:
        task: the task whose filter and metric are used.
        metric: the metric; may be left out if the task has only one.
        benchmark_questions: allow training on the task's own questions, those on which runs are
            scored. `Reward.record` then names them, and boards mark the model.

    Raises:
        UsageError: there is no such task or metric; the metric needs a judge or a model, cannot be
            computed on this machine, or lower values are better; or the task asks in two rounds.
    """
    spec = load_spec(task)
    if spec.kind == "group":
        raise UsageError(f"task {task} is a group, expected one of its tasks: {_some(spec)}.")
    if spec.stage1_template is not None:
        raise UsageError(
            f"task {task} asks in two rounds, but a reward function sees one; use another task."
        )
    name = _metric_of(spec, metric)
    reason = get_metric(name).unavailable()
    if reason is not None:  # every reward would be None, and training would go on
        raise UsageError(f"metric {name} of {task} cannot be computed on this machine: {reason}")
    return Reward(task, name, benchmark_questions=benchmark_questions)


def _some(spec: TaskSpec) -> str:
    """The first members of a group."""
    return ", ".join(spec.members[:3])


def _metric_of(spec: TaskSpec, name: str | None) -> str:
    """The metric of that name, or the only one of the task, if it can be a reward."""
    usable = [metric for metric in spec.metrics if _is_usable(metric)]
    choice = f"choose one of {', '.join(usable)}" if usable else "choose another task"
    if name is None:
        if len(usable) == 1:
            return usable[0]
        raise UsageError(
            f"task {spec.name} has {len(usable)} metrics that score single responses, expected "
            f"the name of one in `metric`; {choice}."
        )
    if name in usable:
        return name
    for rubric in spec.metadata.rubrics:
        if name in load_rubric(rubric).metrics:
            raise UsageError(
                f"metric {name} of {spec.name} is computed from a judge's verdicts, expected one "
                f"that needs none; {choice}."
            )
    if name in spec.learned:
        raise UsageError(
            f"metric {name} of {spec.name} is computed by a model for whole runs, expected one "
            f"that needs none; {choice}."
        )
    if name in spec.metrics:
        raise UsageError(
            f"metric {name} of {spec.name} is not computed from one response and its reference, or "
            f"lower values are better, expected one that a response can maximise; {choice}."
        )
    raise UsageError(f"{unknown('metric', name, usable)}; fix it.")


def _is_usable(metric: str) -> bool:
    """Whether the metric scores a response by its reference, and larger values are better."""
    return scores_pairs(get_metric(metric)) and get_metric(metric).higher_is_better


class Reward:
    """A metric of a task, called as TRL calls reward functions (`medtasks.reward` makes it).

    The gold answer is in the columns of the training data: in ``target``, with all other fields
    that the task's filter and metric read, such as ``choices``; or, in data without ``target``,
    ``sample_id`` names one of the task's own questions.
    """

    def __init__(self, task: str, metric: str, *, benchmark_questions: bool) -> None:
        """`medtasks.reward` checks the arguments."""
        self.task = task
        self.metric = metric
        self.benchmark_questions = benchmark_questions
        self.__name__ = f"{task}_{metric}"  # TRL's name of the reward in its logs
        self._questions: set[str] = set()
        self._other_rows = False

    def __repr__(self) -> str:
        return f"<reward {self.metric} of {self.task}>"

    @cached_property
    def _documents(self) -> dict[str, Document]:
        """The task's own questions by sample id."""
        documents = task_documents(self.task, media=False)
        return {document["sample_id"]: document for document in documents}

    # --- scoring ---

    def __call__(self, completions: Sequence[Completion], **columns: Any) -> list[float | None]:
        """The metric of each completion, in its own unit; None if it has no value for one.

        Args:
            completions: texts, or lists of messages, of which the last one is scored.
            columns: the columns of the training data, with an entry for each completion; other
                arguments of the trainer are ignored.

        Raises:
            UsageError: the columns contain no gold answer, or not what the metric needs; or they
                name a question of the benchmark without ``benchmark_questions``.
        """
        documents = self._documents_of(columns, len(completions))
        samples: list[Sample] = []
        for document, completion in zip(documents, completions, strict=True):
            reply = Reply(response_of(completion))
            samples.append(Sample.answered(self.task, document, [reply]))
        try:
            scored = scored_samples(load_spec(self.task), samples)
        except KeyError as error:
            raise UsageError(
                f"reward of {self.task}: the training data have no column {error}, which its "
                "filter or metric reads; add it."
            ) from error
        return [self._value(sample) for sample in scored]

    def _value(self, sample: Sample) -> float | None:
        """The metric of one scored sample, as `Run.items` has it."""
        statistics = sample.statistics.get(self.metric)
        if statistics is None:
            return None
        value = float(get_metric(self.metric).score(np.asarray(statistics)))
        return None if math.isnan(value) else value

    def _documents_of(self, columns: Mapping[str, Any], count: int) -> list[Document]:
        """The question of each completion."""
        if "target" in columns:
            self._other_rows = True
            return self._documents_in_columns(columns, count)
        if "sample_id" not in columns:
            raise UsageError(
                f"reward of {self.task}: the training data have neither a column `target` with "
                "gold answers nor `sample_id`; add one."
            )
        documents = []
        for sample_id in columns["sample_id"]:
            documents.append(self._own_question(sample_id))
        self._questions.update(document["sample_id"] for document in documents)
        return documents

    def _documents_in_columns(self, columns: Mapping[str, Any], count: int) -> list[Document]:
        """The questions that the columns describe, a row each.

        Raises:
            UsageError: ``target`` is no list with an entry for each completion, or a row has no
                gold answer.
        """
        fields: dict[str, Sequence[Any]] = {}
        for name, values in columns.items():
            is_column = isinstance(values, list | tuple) and len(values) == count
            if is_column and name not in _NOT_A_DOCUMENT:
                fields[name] = values
        if "target" not in fields:
            raise UsageError(
                f"reward of {self.task}: the column `target` is {columns['target']!r:.80}, "
                f"expected a list with {count} entries, one for each completion; pass it as such."
            )
        benchmark = load_spec(self.task).metadata.benchmark
        documents: list[Document] = []
        for row in range(count):
            document = {name: values[row] for name, values in fields.items()}
            target = document["target"]
            if target is None or target != target:  # NaN stands for an empty cell
                raise UsageError(
                    f"reward of {self.task}: the column `target` has no gold answer in row {row} "
                    f"of the batch, but {target!r}; remove such rows from the training data."
                )
            document |= {
                "benchmark": benchmark,
                "sample_id": str(document.get("sample_id", row)),
                "cluster": str(document.get("cluster", row)),
                "media": [],
                "target": str(target),
            }
            documents.append(document)
        return documents

    def _own_question(self, sample_id: str) -> Document:
        """The task's own question of that id, if training on it is allowed."""
        self._require_permission()
        document = self._documents.get(sample_id)
        if document is None:
            raise UsageError(
                f"reward of {self.task}: its prepared data have no sample {sample_id!r}; take the "
                "training data from `questions()`, or add a column `target`."
            )
        return document

    def _require_permission(self) -> None:
        """Refuse the task's own questions unless the caller asked for them."""
        if not self.benchmark_questions:
            raise UsageError(
                f"reward of {self.task}: its own questions are those on which runs are scored; "
                "train on other data with a column `target`, or pass benchmark_questions=True, "
                "which boards mark."
            )

    # --- training data ---

    def questions(self) -> Dataset:
        """The task's own questions as TRL's trainers read them: ``prompt``, ``images`` and
        ``sample_id``. Images are read when a row is.

        Raises:
            UsageError: ``benchmark_questions`` was not passed.
            NotPreparedError: the data are not prepared.
        """
        from datasets import Dataset

        self._require_permission()
        documents = {document["sample_id"]: document for document in task_documents(self.task)}
        self._questions.update(documents)
        reader = QuestionReader(self.task, documents)
        return Dataset.from_dict({"sample_id": list(documents)}).with_transform(reader)

    # --- the mark of a trained model ---

    def record(self, checkpoint: str | Path, *, base: str | Path | None = None) -> Path:
        """Write ``medtasks_training.json`` beside the weights: what this reward was given.

        A record that is there already is extended. Runs of the checkpoint with a back-end that
        loads it contain the record, and boards mark them.

        Args:
            checkpoint: the directory of the trained model, or of its adapter.
            base: the directory of the checkpoint that was trained, whose own record is included.

        Returns:
            The path of the file.

        Raises:
            UsageError: the directory does not exist, or the reward was never used.
            DataError: a record that is there is damaged.
        """
        folder = _existing_folder(checkpoint)
        if not self._questions and not self._other_rows:
            raise UsageError(f"reward of {self.task}: it has not scored anything; train first.")
        record = TrainingRecord(medtasks=medtasks.__version__, rewards=(self._use(),))
        if base is not None:
            record = record.merged(read_training_record(_existing_folder(base)))
        return write_training_record(folder, record.merged(read_training_record(folder)))

    def _use(self) -> RewardUse:
        """How this reward was used so far."""
        benchmark = load_spec(self.task).metadata.benchmark
        fingerprint = ""
        if self._questions:
            fingerprint = open_prepared(benchmark).manifest.fingerprint
        return RewardUse(
            task=self.task,
            benchmark=benchmark,
            metric=self.metric,
            fingerprint=fingerprint,
            questions=tuple(sorted(self._questions)),
            other_rows=self._other_rows,
        )


def _existing_folder(path: str | Path) -> Path:
    """The path of a directory that exists."""
    folder = Path(path)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such directory; give that of a checkpoint or an adapter.")
    return folder
