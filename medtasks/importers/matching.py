"""Predictions matched with documents, and what was not used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from medtasks.answers.base import is_scored_whole
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import counted, first_names
from medtasks.importers.document_index import DocumentIndex
from medtasks.importers.predictions import End, Prediction

_BySample: TypeAlias = dict[str, list[Prediction]]


@dataclass(frozen=True)
class MatchedPredictions:
    """Predictions ``answered`` by sample id, and what is not used.

    Ids are in the order of the documents, predictions in that of the file. All predictions for a
    sample have the same response. ``ambiguous`` samples share their key with others; ``repeated``
    ones are equal to an earlier sample, whose prediction they take; ``strange`` predictions fit a
    sample with another reference answer than the file's.
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
        """How many documents have a prediction, and what is not used or not whole; a line each."""
        documents = len(self.answered) + len(self.missing)
        lines = [f"{len(self.answered):,} of {documents:,} documents have a prediction"]
        if self.missing:
            lines.append(f"unanswered (not scored): {first_names(self.missing, 5)}")
        lines += self._notes_on_unused()
        if self.ambiguous:
            sharing = counted(len(self.ambiguous), "document")
            lines.append(f"{sharing} with the key of another, answered in order")
        lines += self._notes_on_responses()
        if self.repeated:
            lines.append(
                f"{counted(len(self.repeated), 'document')} with the prediction of an equal "
                f"earlier one: {first_names(self.repeated, 5)}"
            )
        return lines

    def _notes_on_unused(self) -> list[str]:
        """Notes on predictions that are left out, one per reason."""
        left_out = {
            "no document matches": self.unmatched,
            "its reference answer is not its document's": self.strange,
            "it repeats an earlier one": self.duplicates,
            "it names another task": self.of_other_tasks,
        }
        lines = []
        for reason, predictions in left_out.items():
            if predictions:
                number = number_and_places("prediction", predictions)
                lines.append(f"left out, because {reason}: {number}")
        return lines

    def _notes_on_responses(self) -> list[str]:
        """Notes on responses that were cut off, are too long, or are missing."""
        used = [predictions[0] for predictions in self.answered.values()]
        lines: list[str] = []
        for limit in (End.TOKEN_LIMIT, End.CELL_LIMIT):
            cut = [prediction for prediction in used if prediction.end is limit]
            if cut:
                lines.append(f"cut off {limit.value}: {number_and_places('response', cut)}")
        long = [prediction for prediction in used if not is_scored_whole(prediction.response)]
        if long:
            lines.append(
                f"scored by the beginning and the end: {number_and_places('response', long)}"
            )
        failed: dict[str, list[Prediction]] = defaultdict(list)
        for prediction in used:
            reason = prediction.reply.failed
            if reason is not None:
                failed[reason].append(prediction)
        for reason, predictions in failed.items():
            lines.append(f"no response ({reason}): {number_and_places('prediction', predictions)}")
        return lines

    @property
    def counts(self) -> dict[str, int]:
        """The size of each field, and how many samples have a verdict in the file."""
        with_verdict = 0
        for predictions in self.answered.values():
            with_verdict += any(prediction.verdict for prediction in predictions)
        return {
            "missing": len(self.missing),
            "unmatched": len(self.unmatched),
            "strange": len(self.strange),
            "duplicates": len(self.duplicates),
            "ambiguous": len(self.ambiguous),
            "answered": len(self.answered),
            "of_other_tasks": len(self.of_other_tasks),
            "repeated": len(self.repeated),
            "with_verdict": with_verdict,
        }


def number_and_places(noun: str, predictions: Sequence[Prediction]) -> str:
    """How many predictions these are, and where the first five of them are in their file."""
    return f"{counted(len(predictions), noun)} ({places(predictions)})"


def places(predictions: Iterable[Prediction]) -> str:
    """Where the first five of these predictions are in their file."""
    return first_names((str(prediction.where) for prediction in predictions), 5)


def join(
    predictions: Sequence[Prediction],
    documents: Sequence[Mapping[str, Any]],
    tasks: Collection[str] = (),
) -> MatchedPredictions:
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
    index = DocumentIndex(documents)
    candidates = _candidates(predictions, index, tasks)
    answered: _BySample = {sample_id: [] for sample_id in index.by_id}
    for sample_id, own_predictions in candidates.by_sample.items():
        answered[sample_id] += own_predictions
    ambiguous: set[str] = set()
    for sharing, sharing_predictions in candidates.by_shared_key.items():
        sample_ids = _answer_in_order(sharing, sharing_predictions, index, answered)
        if len(sample_ids) > 1:
            ambiguous.update(sample_ids)
    duplicates = _duplicates(answered)
    repeated = _answer_repeated_rows(answered, index)
    return MatchedPredictions(
        missing=[sample_id for sample_id, several in answered.items() if not several],
        unmatched=candidates.unmatched,
        strange=candidates.strange,
        duplicates=duplicates,
        ambiguous=[sample_id for sample_id in answered if sample_id in ambiguous],
        repeated=repeated,
        answered={sample_id: several for sample_id, several in answered.items() if several},
        of_other_tasks=candidates.of_other_tasks,
    )


@dataclass(frozen=True)
class _Candidates:
    """Predictions by the samples that they fit, each looked at alone.

    ``by_sample`` are those that fit one sample, ``by_shared_key`` those that fit several equally
    well, by the ids of these samples. The other fields are as in `MatchedPredictions`.
    """

    by_sample: _BySample = field(default_factory=lambda: defaultdict(list))
    by_shared_key: dict[tuple[str, ...], list[Prediction]] = field(
        default_factory=lambda: defaultdict(list)
    )
    unmatched: list[Prediction] = field(default_factory=list)
    strange: list[Prediction] = field(default_factory=list)
    of_other_tasks: list[Prediction] = field(default_factory=list)


def _candidates(
    predictions: Sequence[Prediction], index: DocumentIndex, tasks: Collection[str]
) -> _Candidates:
    """The predictions sorted by the samples that each fits."""
    candidates = _Candidates()
    for prediction in predictions:
        if tasks and "task" in prediction.keys and prediction.keys["task"] not in tasks:
            candidates.of_other_tasks.append(prediction)
            continue
        matching = index.matching(prediction)
        fitting = [
            sample_id for sample_id in matching if index.has_reference(sample_id, prediction)
        ]
        if not matching:
            candidates.unmatched.append(prediction)
        elif not fitting:
            candidates.strange.append(prediction)
        elif len(fitting) == 1:
            candidates.by_sample[fitting[0]].append(prediction)
        else:
            candidates.by_shared_key[tuple(fitting)].append(prediction)
    return candidates


def _answer_in_order(
    sharing: Sequence[str],
    predictions: Sequence[Prediction],
    index: DocumentIndex,
    answered: _BySample,
) -> Sequence[str]:
    """Give the samples that share a key their predictions in the order of the file.

    Returns the ids of the samples that were answered.
    """
    sample_ids = list(sharing)
    if len(predictions) < len(sharing):
        # of equal rows, the first may be the only one with a prediction
        sample_ids = list(dict.fromkeys(map(index.first_equal, sharing)))
    answers = {prediction.answer for prediction in predictions}
    # a join of equal keys repeats each response for each of the samples
    is_joined = len(predictions) > len(sample_ids) and len(answers) == 1
    if len(predictions) != len(sample_ids) and not is_joined:
        raise _wrong_number(predictions, sample_ids)
    for number, prediction in enumerate(predictions):
        sample_id = sample_ids[min(number, len(sample_ids) - 1)]
        answered[sample_id].append(prediction)
    return sample_ids


def _wrong_number(predictions: Sequence[Prediction], sample_ids: Sequence[str]) -> DataError:
    """The error of samples that share a key, but do not have one prediction each."""
    keys = predictions[0].keys
    return DataError(
        f"{predictions[0].where}: {len(predictions)} prediction(s) for img_id "
        f"{shown(keys['img_id'])} and question {shown(keys['question'])}, expected "
        f"{len(sample_ids)}, as that many samples share these keys ({', '.join(sample_ids)}); "
        "give the sample_id of each in layout jsonl or csv."
    )


def _duplicates(answered: _BySample) -> list[Prediction]:
    """Predictions that repeat the first one for their sample, in the order of the file."""
    duplicates: list[Prediction] = []
    for sample_id, predictions in answered.items():
        for prediction in predictions[1:]:
            if prediction.answer != predictions[0].answer:
                raise DataError(
                    f"{prediction.where}: the response to sample {sample_id} differs from that in "
                    f"{predictions[0].where}; keep one of them, or give the task of each."
                )
            duplicates.append(prediction)
    return sorted(duplicates, key=lambda prediction: (prediction.where.file, prediction.where.line))


def _answer_repeated_rows(answered: _BySample, index: DocumentIndex) -> list[str]:
    """Give unanswered rows that repeat an earlier one its predictions.

    Returns the sample ids of these rows.
    """
    newly_answered: list[str] = []
    for sample_id, predictions in answered.items():
        if predictions:
            continue
        predictions_of_first = answered[index.first_equal(sample_id)]
        if predictions_of_first:
            predictions.extend(predictions_of_first)
            newly_answered.append(sample_id)
    return newly_answered
