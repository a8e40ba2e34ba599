"""What people see of a question when they check its gold answer, and whether it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from medtasks.core.files import canonical_json, short_hash
from medtasks.runs.samples import Sample

QuestionKey: TypeAlias = tuple[str, str]
"""Task and sample id."""
Contents: TypeAlias = Mapping[QuestionKey, set[str]]
"""The hashes of each question in the results (`content_hash`): several if runs differ."""


def content_hash(sample: Sample) -> str:
    """The hash of a question with its options and gold answer."""
    document = sample.document
    parts = [document.get("question"), document.get("choices"), document.get("options")]
    return short_hash(canonical_json([*parts, sample.target]))


def add_contents(contents: dict[QuestionKey, set[str]], samples: Iterable[Sample]) -> None:
    """Add the questions of samples to ``contents``."""
    for sample in samples:
        key = (sample.task, sample.sample_id)
        contents.setdefault(key, set()).add(content_hash(sample))
