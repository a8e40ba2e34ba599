"""Predictions, and matching them with the documents that they answer."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import shown
from medtasks.core.text import counted, first_names


@dataclass(frozen=True)
class Prediction:
    """One response, its place in the file, and what identifies the sample that it answers.

    ``keys`` may have ``img_id`` and ``question``, ``task``, ``id`` (the other tool's sample id), ``target`` (its
    reference answer), and for a harness line ``doc_id`` (position among the task's documents) and ``input_media``.
    ``verdict`` is a judge's verdict on the response, ``failed`` the reason why there is no response.
    """

    where: Where
    sample_id: str | None
    keys: Mapping[str, str]
    response: str
    verdict: Mapping[str, Any] | None = None
    failed: str | None = None


@dataclass(frozen=True)
class Joined:
    """Predictions by sample, and the rest; ids are in the order of the documents, predictions in that of the file.

    All predictions ``given`` for a sample have the same response. ``ambiguous`` samples share their key with others;
    ``strange`` predictions fit a sample with another reference answer than the file's, ``others`` are for other tasks.
    """

    given: dict[str, list[Prediction]]
    missing: list[str] = field(default_factory=list)
    unmatched: list[Prediction] = field(default_factory=list)
    duplicates: list[Prediction] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)
    strange: list[Prediction] = field(default_factory=list)
    others: list[Prediction] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """How many documents have a prediction, which have none, and which predictions are not used; a line each."""
        lines = [f"{len(self.given):,} of {len(self.given) + len(self.missing):,} documents have a prediction"]
        if self.missing:
            lines.append(f"unanswered (not scored): {first_names(self.missing, 5)}")
        left_out = {
            "no document matches": self.unmatched,
            "its reference answer is not its document's": self.strange,
            "it repeats an earlier one": self.duplicates,
            "it names another task": self.others,
        }
        for why, members in left_out.items():
            if members:
                places = first_names((str(one.where) for one in members), 5)
                lines.append(f"left out, because {why}: {counted(len(members), 'prediction')} ({places})")
        if self.ambiguous:
            lines.append(f"{counted(len(self.ambiguous), 'document')} with the key of another, answered in order")
        return lines

    @property
    def counts(self) -> dict[str, int]:
        """The sizes of all these, and how many samples have a verdict in the file."""
        return {
            "missing": len(self.missing),
            "unmatched": len(self.unmatched),
            "strange": len(self.strange),
            "duplicates": len(self.duplicates),
            "ambiguous": len(self.ambiguous),
            "answered": len(self.given),
            "of_other_tasks": len(self.others),
            "with_verdict": sum(any(one.verdict for one in several) for several in self.given.values()),
        }


def join(
    predictions: Sequence[Prediction], documents: Sequence[Mapping[str, Any]], tasks: Collection[str] = ()
) -> Joined:
    """Match predictions with documents.

    A prediction is matched by its sample id if it has one, else by ``doc_id``, the position in ``documents`` (checked
    against the target), else by ``id`` if that is a sample id, else by ``img_id`` and ``question`` (NFC, whitespace
    collapsed, case kept), else by ``question`` alone. A reference answer in the file must match the document's.

    ``predictions`` are in the order of their file, ``documents`` in the task's. Predictions that name a task which is
    not among ``tasks`` are set aside; by default, none is.

    Raises:
        UsageError: two documents share a sample id (documents of several tasks).
        DataError: two different responses to one sample, several documents with the same key but a different number of
            predictions, or a harness line for other documents; names the places.
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
    for fitting, several in shared.items():
        merged = len(several) > len(fitting) and len({one.response for one in several}) == 1  # a join of equal keys
        if len(several) != len(fitting) and not merged:
            keys = several[0].keys
            raise DataError(
                f"{several[0].where}: {len(several)} prediction(s) for img_id {shown(keys['img_id'])} and question "
                f"{shown(keys['question'])}, expected {len(fitting)}, as that many samples share these keys "
                f"({', '.join(fitting)}); give the sample_id of each in layout jsonl or csv."
            )
        for number, one in enumerate(several):
            given[fitting[min(number, len(fitting) - 1)]].append(one)

    for sample_id, several in given.items():
        for one in several[1:]:
            if one.response != several[0].response:
                raise DataError(
                    f"{one.where}: the response to sample {sample_id} differs from that in {several[0].where}; keep "
                    "one of them, or give the task of each."
                )
            repeats.append(one)
    by_order = {sample_id for group in shared for sample_id in group}
    return Joined(
        given={sample_id: found for sample_id, found in given.items() if found},
        missing=[sample_id for sample_id, found in given.items() if not found],
        unmatched=unmatched,
        duplicates=sorted(repeats, key=lambda one: (one.where.file, one.where.line)),
        ambiguous=[sample_id for sample_id in given if sample_id in by_order],
        strange=strange,
        others=others,
    )


class _Index:
    """The documents by each of the keys."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self.documents = documents
        self.by_id: dict[str, Mapping[str, Any]] = {}
        self.by_question: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.by_text: dict[str, list[str]] = defaultdict(list)
        for document in documents:
            sample_id = document["sample_id"]
            if sample_id in self.by_id:
                raise UsageError(f"sample id {sample_id} is duplicated; join predictions with one task at a time.")
            self.by_id[sample_id] = document
            question = _normalised(str(document.get("question", "")))
            self.by_text[question].append(sample_id)
            media = document.get("media") or []
            image = document.get("img_id") or (PurePosixPath(media[0]).stem if len(media) == 1 else "")
            if image:
                self.by_question[_normalised(image), question].append(sample_id)

    def matching(self, one: Prediction) -> Sequence[str]:
        """Sample ids of the documents that ``one`` may answer."""
        if "doc_id" in one.keys:
            return self._at_position(one)
        named = one.sample_id or one.keys.get("id", "")
        if one.sample_id is not None or named in self.by_id:
            return [named] if named in self.by_id else []
        question = _normalised(one.keys.get("question", ""))
        if {"img_id", "question"} <= one.keys.keys():
            if not self.by_question:
                raise DataError(
                    f"{one.where}: no sample_id, and the task's documents have no img_id; give the sample_id."
                )
            return self.by_question.get((_normalised(one.keys["img_id"]), question), [])
        found = self.by_text.get(question, [])
        if len(found) < 2:
            return found
        numbered = [sample_id for sample_id in found if sample_id.endswith(f"-{one.keys.get('id')}")]
        if len(numbered) != 1:
            raise DataError(
                f"{one.where}: its question is asked in {len(found)} samples ({', '.join(found[:3])}, …), and it "
                "names no image; add the sample_id of each."
            )
        return numbered

    def has_reference(self, sample_id: str, one: Prediction) -> bool:
        """Whether the document's reference answer is the file's, or the file has none."""
        if "target" not in one.keys or "doc_id" in one.keys:
            return True
        document = self.by_id[sample_id]  # its answer is written as it is, or an option's text for its letter
        options = document.get("choices")
        answers = [document["target"], options.get(document["target"]) if isinstance(options, Mapping) else None]
        target = _normalised(one.keys["target"]).casefold()
        return any(target == _normalised(str(answer)).casefold() for answer in answers if answer is not None)

    def _at_position(self, one: Prediction) -> list[str]:
        number = int(one.keys["doc_id"])
        if number >= len(self.documents):
            return []
        document = self.documents[number]
        for name, expected in {"target": [str(document["target"])], "input_media": document["media"]}.items():
            if name in one.keys and expected and one.keys[name] not in expected:
                raise DataError(
                    f"{one.where}: field `{name}` is {shown(one.keys[name])}, expected {shown(expected[0])} of "
                    f"document {number} ({document['sample_id']}); the line belongs to another task or to other data: "
                    "give the correct task, or prepare the data that the predictions were made on."
                )
        return [document["sample_id"]]


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
