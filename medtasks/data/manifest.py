"""The manifest of a prepared dataset: where it came from, what is in it, and its fingerprint."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.records import Record
from medtasks.core.schema import Frozen


class Source(Frozen):
    """Where the rows came from; without local paths, so that equal sources give equal manifests."""

    kind: str
    name: str
    revision: str | None = None
    sha256: str | None = None  # of an archive
    images: str | None = None  # if the pictures have another source: name@revision


class Counts(Frozen):
    """Numbers of rows (also by kind), clusters and media files."""

    rows: int
    clusters: int
    media: int
    by_kind: dict[str, int]


class Coverage(Frozen):
    """How many of a source's records of one task are prepared; the others lack media or end before their window."""

    source: str
    task: str
    prepared: int
    records: int


class DataManifest(Frozen):
    """``manifest.json``. Only ``created`` and ``media_root`` differ between repetitions.

    ``details`` are counts of the release's vocabularies and oddities, by topic. ``references_only`` data have no media:
    enough to score predictions, not to run models.
    """

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
    details: dict[str, dict[str, int]] = Field(default_factory=dict)
    coverage: tuple[Coverage, ...] = ()
    references_only: bool = False
    mini: bool
    fingerprint: str


def count(benchmark: Benchmark, records: Sequence[Record], media: int) -> Counts:
    """Counts of ``records`` by the benchmark's kinds, such as levels or question types."""
    kinds = Counter(kind for record in records for kind in (benchmark.kinds(record) if benchmark.kinds else ()))
    return Counts(
        rows=len(records),
        clusters=len({record.cluster for record in records}),
        media=media,
        by_kind=dict(sorted(kinds.items())),
    )


def counted(benchmark: Benchmark, counts: Counts) -> dict[str, int]:
    """The prepared rows under the names of the published counts; ``rows`` are those that are not `Benchmark.apart`."""
    if benchmark.apart is None:
        return {"rows": counts.rows, **counts.by_kind}
    apart = sum(number for kind, number in counts.by_kind.items() if kind.startswith(benchmark.apart))
    return {"rows": counts.rows - apart, benchmark.apart: apart, **counts.by_kind}


def differences(benchmark: Benchmark, counts: Counts) -> tuple[str, ...]:
    """One sentence per published count that differs from the prepared rows."""
    found, expected = counted(benchmark, counts), benchmark.published
    return tuple(
        f"{name}: {_number(found, name)} here, {_number(expected, name)} published"
        for name, published in expected.items()
        if found.get(name, 0) != published
    )


def covered(benchmark: Benchmark, records: Sequence[Record], prepared: Sequence[Record]) -> tuple[Coverage, ...]:
    """Prepared and all records by source and task, if the benchmark has `Benchmark.coverage`."""
    if benchmark.coverage is None:
        return ()
    total, done = (Counter(map(benchmark.coverage, some)) for some in (records, prepared))
    return tuple(
        Coverage(source=place[0], task=place[1], prepared=done[place], records=total[place])
        for place in sorted(filter(None, total))
    )


def _number(counts: Mapping[str, int], name: str) -> str:
    """A count; with its share if it is part of another count (``mcq_sod`` of ``mcq``)."""
    whole = counts.get(name.partition("_")[0], 0) if "_" in name else 0
    share = f" ({counts.get(name, 0) / whole:.1%})" if whole else ""
    return f"{counts.get(name, 0):,}{share}"


def coverage_lines(coverage: Sequence[Coverage]) -> list[str]:
    """One line per source with the share of its records that are prepared, even if none is."""
    prepared: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for entry in coverage:
        prepared[entry.source] += entry.prepared
        records[entry.source] += entry.records
    return [
        f"coverage {name}: {prepared[name]:,} of {records[name]:,} records ({prepared[name] / records[name]:.0%})"
        for name in sorted(records, key=str.casefold)
    ]


def fingerprint(directory: Path) -> str:
    """SHA-256 over the records and the media index in ``directory``: equal means the same questions and pixels."""
    digest = hashlib.sha256()
    for name in ("records.jsonl", "media.jsonl"):
        digest.update(hashlib.sha256((directory / name).read_bytes()).digest())
    return digest.hexdigest()
