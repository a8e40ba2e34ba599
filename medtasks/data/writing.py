"""The files of prepared data: records, media index and manifest, written into a directory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import medtasks
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.records import Record, repetition_count
from medtasks.core.errors import DataError, MediaError
from medtasks.core.files import canonical_json
from medtasks.data.media.images import MediaEntry, MediaIndex
from medtasks.data.prepared import Counts, DataManifest, Source, TaskCoverage, counted, fingerprint


@dataclass(frozen=True)
class Exclusions:
    """What is left out: numbers of records by reason, their ids, and the errors of media files."""

    reasons: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    media: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        left_out: Mapping[str, str],
        errors: Mapping[str, MediaError],
        files: Path,
    ) -> Exclusions:
        """The exclusions of a preparation.

        ``left_out`` has a reason by sample id, and ``errors`` an error by the name of a media file
        below ``files``.
        """
        samples = tuple(record.sample_id for record in records if record.sample_id in left_out)
        media = {}
        for name, error in sorted(errors.items()):
            media[name] = str(error).removeprefix(f"{files / name}: ")
        return cls(Counter(left_out.values()), samples, media)

    @classmethod
    def of_manifest(cls, manifest: DataManifest) -> Exclusions:
        """The exclusions that a manifest states."""
        return cls(manifest.excluded, manifest.excluded_samples, manifest.excluded_media)


@dataclass(frozen=True)
class Contents:
    """The contents of prepared data.

    ``records`` are those of ``all_records`` that are kept, and ``media`` what they show.
    """

    source: Source
    records: Sequence[Record]
    all_records: Sequence[Record]
    media: Sequence[MediaEntry]
    uniform: Sequence[str]
    media_root: Path
    exclusions: Exclusions
    details: Mapping[str, Mapping[str, int]]
    references_only: bool
    mini: bool


def media_of(records: Sequence[Record], index: MediaIndex) -> MediaIndex:
    """The part of ``index`` that ``records`` show, entries in the order of their paths."""
    names: set[str] = set()
    for record in records:
        names.update(record.media)
    entries = [entry for entry in index.entries if entry.path in names]
    entries.sort(key=lambda entry: entry.path)
    return MediaIndex(entries, index.errors, sorted(names.intersection(index.uniform)))


def remove_other_media(folder: Path, media: Sequence[MediaEntry]) -> None:
    """Delete the files below ``folder`` that are not indexed.

    An abandoned preparation of another source may have left some.
    """
    indexed = {folder / entry.path for entry in media}
    for path in folder.rglob("*"):
        if path.is_file() and path not in indexed:
            path.unlink()


def write_contents(directory: Path, benchmark: Benchmark, contents: Contents) -> None:
    """Write ``records.jsonl``, ``media.jsonl`` and ``manifest.json``."""
    records = [record.model_dump(mode="json") for record in contents.records]
    media = [entry.model_dump(mode="json", exclude_none=True) for entry in contents.media]
    _write_lines(directory / "records.jsonl", records)
    _write_lines(directory / "media.jsonl", media)
    manifest = _manifest(directory, benchmark, contents)
    text = canonical_json(manifest.model_dump(mode="json"), indent=1) + "\n"
    (directory / "manifest.json").write_text(text, encoding="utf-8")


def _write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as JSON, one a line, with sorted keys."""
    lines = [json.dumps(row, sort_keys=True, ensure_ascii=False) + "\n" for row in rows]
    try:
        path.write_text("".join(lines), encoding="utf-8")
    except UnicodeEncodeError as error:  # our records are checked, another package's may not be
        character = repr(error.object[error.start])
        raise DataError(
            f"a string of the records has {character}, half a surrogate pair; fix it in the source."
        ) from error


def _manifest(directory: Path, benchmark: Benchmark, contents: Contents) -> DataManifest:
    """The manifest of data whose records and media index are already in ``directory``."""
    exclusions = contents.exclusions
    counts = _counts(benchmark, contents)
    return DataManifest(
        benchmark=benchmark.name,
        medtasks=medtasks.__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        media_root=str(contents.media_root),
        source=contents.source,
        counts=counts,
        published=dict(benchmark.counts.published),
        differences=tuple(_differences(benchmark, counts)),
        excluded=dict(sorted(exclusions.reasons.items())),
        excluded_samples=exclusions.samples,
        excluded_media=dict(exclusions.media),
        uniform_media=tuple(contents.uniform),
        details=_details(contents),
        coverage=tuple(_coverage(benchmark, contents)),
        references_only=contents.references_only,
        mini=contents.mini,
        fingerprint=fingerprint(directory),
    )


def _counts(benchmark: Benchmark, contents: Contents) -> Counts:
    """The numbers of prepared records, by kind if the benchmark has kinds, clusters and media."""
    clusters: set[str] = set()
    kinds: Counter[str] = Counter()
    for record in contents.records:
        clusters.add(record.cluster)
        if benchmark.counts.kinds is not None:
            kinds.update(benchmark.counts.kinds(record))
    return Counts(
        rows=len(contents.records),
        clusters=len(clusters),
        media=len(contents.media),
        by_kind=dict(sorted(kinds.items())),
    )


def _details(contents: Contents) -> dict[str, dict[str, int]]:
    """The details of the source, with the records that repeat others among its oddities."""
    details = {topic: dict(numbers) for topic, numbers in contents.details.items()}
    repetitions = repetition_count(contents.all_records)
    if repetitions:
        oddities = details.setdefault("oddities", {})
        oddities["records that only repeat an earlier one"] = repetitions
    return details


def _coverage(benchmark: Benchmark, contents: Contents) -> Iterator[TaskCoverage]:
    """Yield how many records of each source and task are prepared, if the benchmark has these."""
    if benchmark.counts.coverage is None:
        return
    total = Counter(map(benchmark.counts.coverage, contents.all_records))
    prepared = Counter(map(benchmark.counts.coverage, contents.records))
    places = [place for place in total if place is not None]
    for place in sorted(places):
        source, task = place
        yield TaskCoverage(source=source, task=task, prepared=prepared[place], records=total[place])


def _differences(benchmark: Benchmark, counts: Counts) -> Iterator[str]:
    """Yield a line for each published count that the prepared data do not have."""
    prepared = counted(benchmark, counts)
    for name, number in benchmark.counts.published.items():
        if prepared.get(name, 0) != number:
            here = _with_share(name, prepared)
            published = _with_share(name, benchmark.counts.published)
            yield f"{name}: {here} here, {published} published"


def _with_share(name: str, counts: Mapping[str, int]) -> str:
    """The count ``name``; as a part of a group, as ``mcq_sod`` is of ``mcq``, with its share."""
    number = counts.get(name, 0)
    group, _, part = name.partition("_")
    total = counts.get(group, 0)
    if not part or not total:
        return f"{number:,}"
    return f"{number:,} ({number / total:.1%})"
