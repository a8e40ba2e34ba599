"""What was prepared, in lines for the user."""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.core.text import counted, first_names, grouped_notes, printable
from medtasks.data.prepared import DataManifest, Prepared, coverage_lines

MOST_REASONS = 10
"""Number of reasons for leaving out media that are printed; the manifest has all."""


def preparation_lines(prepared: Prepared) -> Iterator[str]:
    """Yield lines that state what was prepared, and how it differs from what was published."""
    manifest = prepared.manifest
    counts = manifest.counts
    yield (
        f"prepared {manifest.benchmark}: {counted(counts.rows, 'row')}, "
        f"{counted(counts.media, 'media file')}, {counted(counts.clusters, 'cluster')}, "
        f"fingerprint {manifest.fingerprint[:16]}"
    )
    for line in _details(manifest):
        yield f"  {line}"
    yield f"  in {prepared.directory}"


def _details(manifest: DataManifest) -> Iterator[str]:
    """Yield lines about rows and media: counts, differences, exclusions and oddities."""
    for kind, number in manifest.counts.by_kind.items():
        yield f"{kind}: {number:,}"
    for difference in manifest.differences:
        yield f"differs: {difference}"
    for reason, number in manifest.excluded.items():
        yield f"excluded: {counted(number, 'row')} ({reason})"
    yield from _left_out_media(manifest)
    if manifest.references_only:
        yield "references only: enough to score predictions, not to run models"
    yield from coverage_lines(manifest.coverage)
    for oddity, number in manifest.details.get("oddities", {}).items():
        if number:
            yield f"noted: {oddity}: {number:,}"
    if manifest.uniform_media:
        pictures = first_names(map(printable, manifest.uniform_media))
        number = len(manifest.uniform_media)
        yield f"noted: pictures whose pixels all have one value: {number:,} ({pictures})"


def _left_out_media(manifest: DataManifest) -> Iterator[str]:
    """Yield a line for each reason why media are left out, with the first files it concerns."""
    reasons = [(reason, name) for name, reason in manifest.excluded_media.items()]
    lines = grouped_notes(reasons)
    yield from lines[:MOST_REASONS]
    omitted = len(lines) - MOST_REASONS
    if omitted > 0:
        yield (
            f"  and {omitted:,} other reasons: field `excluded_media` of manifest.json has all "
            "files"
        )
