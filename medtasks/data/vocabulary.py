"""Closed vocabularies of the release formats: atomic questions and their classes, question types."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = [
    "ATOMIC_QUESTIONS",
    "MED_CMR_DIMENSIONS",
    "MED_CMR_VISION",
    "MI_CXR_QTYPES",
    "QUESTION_CLASSES",
    "class_of",
    "dimension_of",
]

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
"""The 18 atomic questions of Kvasir-VQA and the class of each (Kvasir-VQA-x1, table 4)."""

QUESTION_CLASSES = frozenset(ATOMIC_QUESTIONS.values())

MI_CXR_QTYPES: Mapping[str, str] = {
    "single_emergence": "TEL",
    "single_resolution": "TEL",
    "multiple_emergence_1": "TEL",
    "multiple_emergence_2": "TEL",
    "multiple_resolution_1": "TEL",
    "multiple_resolution_2": "TEL",
    "emergence_to_resolution": "TEL",
    "resolution_to_emergence": "TEL",
    "icr_multi_abn": "ICR",
    "single_entity_interval_summary": "GTS",
    "multi_entity_interval_summary": "GTS",
}
"""Question types of MI-CXR and their task family; those of the ICR variant start with ``icr_variant``."""


def class_of(question: str) -> str | None:
    """The class of an atomic question, None where it is unknown; case, spacing and punctuation do not matter."""
    return _CLASS_OF.get(_normal(question))


def _normal(question: str) -> str:
    return " ".join(re.sub(r"[^a-z/;]+", " ", question.casefold()).split())


_CLASS_OF = {_normal(question): name for question, name in ATOMIC_QUESTIONS.items()}
_CLASS_OF[_normal("How many instruments are in the image?")] = "instrument_count"  # should a release fix its spelling


MED_CMR_DIMENSIONS: Mapping[str, str] = {
    "sod": "Small-object Detection",
    "fdd": "Fine-detail Discrimination",
    "su": "Spatial Understanding",
    "tp": "Temporal Prediction",
    "cr": "Causal Reasoning",
    "ltg": "Long-tail Generalization",
    "msi": "Multi-source Integration",
}
"""Abbreviation and release spelling of Med-CMR's seven dimensions, in the paper's order."""

MED_CMR_VISION = ("sod", "fdd", "su")
"""The visual dimensions; the other four are those of reasoning (Med-CMR, table 1)."""

_PAPER_NAMES = {"Subtle Object Detection": "sod", "Fine-grained Detail Discrimination": "fdd"}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]+", "", name.casefold())


_DIMENSION_OF = {
    **{_plain(abbreviation): abbreviation for abbreviation in MED_CMR_DIMENSIONS},
    **{_plain(name): abbreviation for abbreviation, name in MED_CMR_DIMENSIONS.items()},
    **{_plain(name): abbreviation for name, abbreviation in _PAPER_NAMES.items()},
}


def dimension_of(task: str) -> str | None:
    """The dimension that a Med-CMR ``task`` value names, None where it names none; case and signs do not matter.

    >>> dimension_of("Small Object detection"), dimension_of("LTG"), dimension_of("counting")
    ('sod', 'ltg', None)
    """
    return _DIMENSION_OF.get(_plain(task))
