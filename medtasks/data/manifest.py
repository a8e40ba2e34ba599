"""The manifest of a prepared dataset: where it came from, what is in it, and its fingerprint."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from medtasks.data.records import KvasirRecord, MiCxrRecord, Record

__all__ = ["PUBLISHED", "Counts", "DataManifest", "Source", "compare", "count", "fingerprint"]

PUBLISHED: Mapping[str, Mapping[str, int]] = {
    "kvasir_vqa_x1": {"rows": 16022, "level1": 5548, "level2": 5261, "level3": 5213},
    "mi_cxr": {"rows": 5311, "icr_variant": 400},
}
"""Counts the papers state: rows scored in Kvasir-VQA-x1's table 6, questions of MI-CXR and its ICR variant."""


class Source(BaseModel):
    """Where the rows came from; no path of the machine, so that equal sources give equal manifests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    name: str
    revision: str | None = None
    images: str | None = None  # where the pictures have a source of their own: name@revision


class Counts(BaseModel):
    """How many rows, of which kind, over how many clusters and media."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int
    clusters: int
    media: int
    by_kind: dict[str, int]


class DataManifest(BaseModel):
    """``manifest.json``. ``created`` and ``media_root`` are the only fields that a repetition may change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str
    medtasks: str
    created: str
    media_root: str
    source: Source
    counts: Counts
    published: dict[str, int]
    differences: tuple[str, ...]
    excluded: dict[str, int]
    excluded_samples: tuple[str, ...]
    mini: bool
    fingerprint: str


def count(records: Sequence[Record], media: int) -> Counts:
    """Counts of ``records``; kinds are levels for Kvasir-VQA-x1, question types for MI-CXR."""
    kinds: Counter[str] = Counter()
    for record in records:
        if isinstance(record, KvasirRecord):
            kinds[f"level{record.complexity}"] += 1
        elif isinstance(record, MiCxrRecord):
            kinds[record.qtype] += 1
    return Counts(
        rows=len(records),
        clusters=len({record.cluster for record in records}),
        media=media,
        by_kind=dict(sorted(kinds.items())),
    )


def compare(benchmark: str, counts: Counts) -> tuple[str, ...]:
    """One sentence per published count that the prepared rows do not match.

    The rows of MI-CXR's ICR variant come in a file of their own and are counted apart.
    """
    variant = sum(number for kind, number in counts.by_kind.items() if kind.startswith("icr_variant"))
    found = {"rows": counts.rows - variant, "icr_variant": variant, **counts.by_kind}
    return tuple(
        f"{name}: {found.get(name, 0):,} here, {published:,} in the paper"
        for name, published in PUBLISHED[benchmark].items()
        if found.get(name, 0) != published
    )


def fingerprint(directory: Path) -> str:
    """SHA-256 over the records and the media index in ``directory``: equal means the same questions and pixels."""
    digest = hashlib.sha256()
    for name in ("records.jsonl", "media.jsonl"):
        digest.update(hashlib.sha256((directory / name).read_bytes()).digest())
    return digest.hexdigest()
