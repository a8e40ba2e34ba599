"""The atomic questions of Kvasir-VQA and their classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

ATOMIC_QUESTIONS: Mapping[str, str] = {
    "What type of polyp is present?": "polyp_type",
    "Have all polyps been removed?": "polyp_removal_status",
    "Is there text?": "text_presence",
    "Is there a green/black box artefact?": "box_artifact_presence",
    "Are there any anatomical landmarks in the image? Check all that are present.": "landmark_presence",
    "What color is the abnormality? If more than one separate with ;": "abnormality_color",
    "How many polyps are in the image?": "polyp_count",
    "Where in the image is the instrument?": "instrument_location",
    "What type of procedure is the image taken from?": "procedure_type",
    "Are there any instruments in the image? Check all that are present.": "instrument_presence",
    "Are there any abnormalities in the image? Check all that are present.": "abnormality_presence",
    "Does this image contain any finding?": "finding_presence",
    "How many findings are present?": "finding_count",
    "How many instrumnets are in the image?": "instrument_count",  # the release's own spelling
    "Where in the image is the abnormality?": "abnormality_location",
    "What color is the anatomical landmark? If more than one separate with ;": "landmark_color",
    "Where in the image is the anatomical landmark?": "landmark_location",
    "What is the size of the polyp?": "polyp_size",
}
"""The 18 atomic questions of Kvasir-VQA (protocol card), and the class of each (Kvasir-VQA-x1, table 4)."""

QUESTION_CLASSES = frozenset(ATOMIC_QUESTIONS.values())


@lru_cache(maxsize=1024)
def class_of(question: str) -> str | None:
    """The class of an atomic question, None where it is unknown; case, spacing and punctuation do not matter."""
    return _CLASS_OF.get(_normal(question))


def _normal(question: str) -> str:
    return " ".join(re.sub(r"[^a-z/;]+", " ", question.casefold()).split())


_CLASS_OF = {_normal(question): name for question, name in ATOMIC_QUESTIONS.items()}
_CLASS_OF[_normal("How many instruments are in the image?")] = "instrument_count"  # should a release fix its spelling
