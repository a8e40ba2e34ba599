"""The files of prepared data: records, media index and manifest, written into a directory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import medtasks
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.records import Record, repeated
from medtasks.core.errors import DataError, MediaError
from medtasks.core.files import canonical_json
from medtasks.data.media.images import MediaEntry, MediaIndex
from medtasks.data.prepared import Counts, Coverage, DataManifest, Source, counted, fingerprint


@dataclass(frozen=True)
class Exclusions:
    """What is left out: records by reason, their ids, and why each media file cannot be used."""

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
        """Of ``records`` those ``left_out``, a reason by sample id, with the ``errors`` of media
        below ``files``.
        """
        samples = tuple(record.sample_id for record in records if record.sample_id in left_out)
        media = {}
        for name, error in sorted(errors.items()):
            media[name] = str(error).removeprefix(f"{files / name}: ")
        return cls(Counter(left_out.values()), samples, media)

    @classmethod
    def of_manifest(cls, manifest: DataManifest) -> Exclusions:
        return cls(manifest.excluded, manifest.excluded_samples, manifest.excluded_media)


@dataclass(frozen=True)
class Contents:
    """What is written: the ``records`` that are kept, ``all_records`` of the source, and the media
    that these show.
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
    used = {name for record in records for name in record.media}
    entries = sorted(
        (entry for entry in index.entries if entry.path in used), key=lambda entry: entry.path
    )
    return MediaIndex(entries, index.errors, sorted(used.intersection(index.uniform)))


def remove_other_media(folder: Path, media: Sequence[MediaEntry]) -> None:
    """Delete files below ``folder`` that are not indexed: an abandoned preparation of another
    source may leave some.
    """
    indexed = {folder / entry.path for entry in media}
    for path in folder.rglob("*"):
        if path.is_file() and path not in indexed:
            path.unlink()


def write_contents(directory: Path, benchmark: Benchmark, contents: Contents) -> None:
    """Write ``records.jsonl``, ``media.jsonl`` and ``manifest.json``."""
    _write_lines(
        directory / "records.jsonl", (record.model_dump(mode="json") for record in contents.records)
    )
    _write_lines(directory / "media.jsonl", (_dumped_entry(entry) for entry in contents.media))
    manifest = _manifest(directory, benchmark, contents)
    text = canonical_json(manifest.model_dump(mode="json"), indent=1) + "\n"
    (directory / "manifest.json").write_text(text, encoding="utf-8")


def _dumped_entry(entry: BaseModel) -> dict[str, Any]:
    return entry.model_dump(mode="json", exclude_none=True)


def _write_lines(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    lines = (json.dumps(row, sort_keys=True, ensure_ascii=False) + "\n" for row in rows)
    try:
        path.write_text("".join(lines), encoding="utf-8")
    except UnicodeEncodeError as error:  # our records are checked, another package's may not be
        found = repr(error.object[error.start])
        raise DataError(
            f"a string of the records has {found}, half a surrogate pair; fix it in the source."
        ) from error


def _manifest(directory: Path, benchmark: Benchmark, contents: Contents) -> DataManifest:
    records, exclusions, details = contents.records, contents.exclusions, dict(contents.details)
    if twice := repeated(contents.all_records):
        details["oddities"] = {**details.get("oddities", {}), **twice}
    kinds = Counter(
        kind for record in records for kind in (benchmark.kinds(record) if benchmark.kinds else ())
    )
    counts = Counts(
        rows=len(records),
        clusters=len({record.cluster for record in records}),
        media=len(contents.media),
        by_kind=dict(sorted(kinds.items())),
    )
    return DataManifest(
        benchmark=benchmark.name,
        medtasks=medtasks.__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        media_root=str(contents.media_root),
        source=contents.source,
        counts=counts,
        published=dict(benchmark.published),
        differences=tuple(_differences(benchmark, counts)),
        excluded=dict(sorted(exclusions.reasons.items())),
        excluded_samples=exclusions.samples,
        excluded_media=dict(exclusions.media),
        uniform_media=tuple(contents.uniform),
        details={topic: dict(numbers) for topic, numbers in details.items()},
        coverage=tuple(_coverage(benchmark, contents)),
        references_only=contents.references_only,
        mini=contents.mini,
        fingerprint=fingerprint(directory),
    )


def _coverage(benchmark: Benchmark, contents: Contents) -> Iterator[Coverage]:
    if benchmark.coverage is None:
        return
    total = Counter(map(benchmark.coverage, contents.all_records))
    prepared = Counter(map(benchmark.coverage, contents.records))
    for place in sorted(filter(None, total)):
        source, task = place
        yield Coverage(source=source, task=task, prepared=prepared[place], records=total[place])


def _differences(benchmark: Benchmark, counts: Counts) -> Iterator[str]:
    found = counted(benchmark, counts)
    for name, published in benchmark.published.items():
        if found.get(name, 0) != published:
            here, there = _with_share(name, found), _with_share(name, benchmark.published)
            yield f"{name}: {here} here, {there} published"


def _with_share(name: str, counts: Mapping[str, int]) -> str:
    """A count, with its share of another one: that of ``mcq_sod`` of ``mcq``."""
    number = counts.get(name, 0)
    group, _, part = name.partition("_")
    whole = counts.get(group, 0) if part else 0
    return f"{number:,} ({number / whole:.1%})" if whole else f"{number:,}"
