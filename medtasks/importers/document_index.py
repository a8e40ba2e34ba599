"""The documents of a task by each of the keys that predictions may identify them with."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import shown
from medtasks.importers.predictions import Prediction

_REPEAT = re.compile(r"#[0-9]+")
"""The number in the id of a row that shares its id with an earlier one
(`medtasks.catalog.records.distinct`).
"""
_PICTURE_SUFFIXES = frozenset(
    {".bmp", ".dcm", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
)


class DocumentIndex:
    """Finds the documents that a prediction may answer.

    Raises:
        UsageError: two documents have the same sample id (they are of several tasks).
    """

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self.documents = documents
        self.by_id: dict[str, Mapping[str, Any]] = {}
        self._id_without_blanks: dict[str, str] = {}
        self._by_picture_and_question: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._by_question: dict[str, list[str]] = defaultdict(list)
        for document in documents:
            self._add(document)

    def _add(self, document: Mapping[str, Any]) -> None:
        """Index a document by its id, its question, and its picture if it has one."""
        sample_id = document["sample_id"]
        if sample_id in self.by_id:
            raise UsageError(
                f"sample id {sample_id} is duplicated; join predictions with one task at a time."
            )
        self.by_id[sample_id] = document
        self._id_without_blanks[sample_id.strip()] = sample_id
        question = _normalised(str(document.get("question", "")))
        self._by_question[question].append(sample_id)
        picture = _picture_id(document)
        if picture:
            self._by_picture_and_question[_normalised(picture), question].append(sample_id)

    def matching(self, prediction: Prediction) -> Sequence[str]:
        """Sample ids of the documents that ``prediction`` may answer.

        Raises:
            DataError: the prediction names a document by its position, and that document is
                another one; or several documents ask its question, and it names no picture.
        """
        keys = prediction.keys
        if "doc_id" in keys:
            return self._at_position(int(keys["doc_id"]), prediction)
        named_id = keys.get("sample_id", keys.get("id", ""))
        sample_id = self._id_without_blanks.get(named_id.strip())
        if sample_id is not None:
            return [sample_id]
        if "sample_id" in keys:
            return []
        question = _normalised(keys.get("question", ""))
        if "img_id" not in keys or "question" not in keys:
            return self._asking(question, prediction)
        if not self._by_picture_and_question:
            raise DataError(
                f"{prediction.where}: no sample_id, and the task's documents have no img_id; "
                "give the sample_id."
            )
        return self._asking_about(keys["img_id"], question)

    def first_equal(self, sample_id: str) -> str:
        """The id of the first sample whose row this one repeats, or its own id.

        The id of a repeated row has a number, see `medtasks.catalog.records.distinct`.
        """
        first_id = _REPEAT.sub("", sample_id)
        if first_id == sample_id or first_id not in self.by_id:
            return sample_id
        first_content = _without_ids(self.by_id[first_id])
        if _without_ids(self.by_id[sample_id]) != first_content:
            return sample_id
        return first_id

    def has_reference(self, sample_id: str, prediction: Prediction) -> bool:
        """Whether the document's reference answer is the file's, or the file has none."""
        if "target" not in prediction.keys or "doc_id" in prediction.keys:
            return True
        document = self.by_id[sample_id]
        references = [document["target"]]
        options = document.get("choices")
        if isinstance(options, Mapping):  # the file may have the text of the option
            references.append(options.get(document["target"]))
        target = _normalised(prediction.keys["target"]).casefold()
        for reference in references:
            if reference is not None and _normalised(str(reference)).casefold() == target:
                return True
        return False

    def _at_position(self, number: int, prediction: Prediction) -> list[str]:
        """The document in this position, which must be the one that was asked."""
        if number >= len(self.documents):
            return []
        document = self.documents[number]
        expected_texts = {"target": [str(document["target"])], "input_media": document["media"]}
        for name, expected in expected_texts.items():
            if name in prediction.keys and expected and prediction.keys[name] not in expected:
                raise DataError(
                    f"{prediction.where}: field `{name}` is {shown(prediction.keys[name])}, "
                    f"expected {shown(expected[0])} of document {number} "
                    f"({document['sample_id']}); the line belongs to another task or to other "
                    "data: give the correct task, or prepare the data that the predictions were "
                    "made on."
                )
        return [str(document["sample_id"])]

    def _asking(self, question: str, prediction: Prediction) -> Sequence[str]:
        """Sample ids of the documents with this question; of several, the one with its number."""
        sample_ids = self._by_question.get(question, [])
        if len(sample_ids) < 2:
            return sample_ids
        ending = f"-{prediction.keys.get('id')}"
        numbered = [sample_id for sample_id in sample_ids if sample_id.endswith(ending)]
        if len(numbered) != 1:
            raise DataError(
                f"{prediction.where}: its question is asked in {len(sample_ids)} samples "
                f"({', '.join(sample_ids[:3])}, …), and it names no image; add the sample_id of "
                "each."
            )
        return numbered

    def _asking_about(self, img_id: str, question: str) -> Sequence[str]:
        """Sample ids of the documents with this question on the picture, named by id or file."""
        sample_ids = self._by_picture_and_question.get((_normalised(img_id), question), [])
        file = PureWindowsPath(img_id.strip())  # handles both separators
        if sample_ids or file.suffix.lower() not in _PICTURE_SUFFIXES:
            return sample_ids
        return self._by_picture_and_question.get((_normalised(file.stem), question), [])


def _picture_id(document: Mapping[str, Any]) -> str:
    """The id of the document's picture; the name of its only file if it has no id; else empty."""
    img_id = document.get("img_id")
    if img_id:
        return str(img_id)
    media = document.get("media") or []
    if len(media) == 1:
        return PurePosixPath(media[0]).stem
    return ""


def _without_ids(document: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a document, which repeated rows share."""
    return {name: value for name, value in document.items() if name not in ("sample_id", "item_id")}


def _normalised(text: str) -> str:
    """The text in NFC with its whitespace collapsed, as keys are compared."""
    return " ".join(unicodedata.normalize("NFC", text).split())
