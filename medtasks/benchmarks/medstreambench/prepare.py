"""MedStreamBench: record files and the media of 22 datasets, of which a user may have some, as
prepared data with frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.medstreambench.frames import examine_media
from medtasks.benchmarks.medstreambench.records import MedStreamRecord, parse_medstream_row
from medtasks.catalog.records import distinct, tallies
from medtasks.core.errors import DataError, UsageError
from medtasks.data.hub import located
from medtasks.data.media.images import MediaIndex
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import Options, Out
from medtasks.data.prepared import Prepared
from medtasks.data.sources import read_jsonl

HUB = "Venn2024/MedStreamBench"


def prepare_medstream(
    source: Annotated[
        str, typer.Option("--source", help="hub, or the directory of the .jsonl files.")
    ],
    media: Annotated[
        Path | None,
        typer.Option(
            "--media",
            help="Directory of the upstream media, which contains Stream_Bench/.",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    *,
    keep_degenerate: Annotated[
        bool,
        typer.Option(
            "--keep-degenerate",
            help="Keep records without a question, or with a placeholder answer.",
        ),
    ] = False,
    **options: Unpack[Options],
) -> Prepared:
    """Prepare MedStreamBench from ``hub`` or a directory of record files, and the directory of
    upstream media.

    Records whose media are missing, damaged where they look, or end before their window are
    excluded and counted, and the manifest names each such file with the reason and the fix.
    Degenerate records (no question, or a placeholder for an answer) are excluded unless
    ``keep_degenerate``.

    Raises:
        UsageError: there is no such source or media directory, or the source has no record file.
        DataError: a record breaks the format or the temporal contract (file, line, record and field
            are named), or no record is left.
    """
    references_only = options.get("references_only")
    if not references_only and (media is None or not media.is_dir()):
        found = "is missing" if media is None else f"{media}: not a directory"
        raise UsageError(
            f"--media {found}; give the directory of Stream_Bench/ (or --references-only, which is enough for scoring)."
        )
    folder, origin = located(source, HUB, "*.jsonl")
    if not folder.is_dir():
        raise UsageError(
            f"--source {source}: not a directory; give hub, or the directory of the .jsonl files."
        )
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UsageError(f"--source {source}: has no .jsonl file; give the directory that does.")
    records = [
        parse_medstream_row(item.row, item.where) for path in files for item in read_jsonl(path)
    ]
    # multi-select is known of a task as a whole: a record of it has several answers, or its name
    # says so
    several = {(record.dataset, record.source_task) for record in records if record.multi_select}
    for row, record in enumerate(records):
        listed = (
            record.dataset,
            record.source_task,
        ) in several or "multi" in record.source_task.casefold()
        if record.choices and listed:
            records[row] = record.model_copy(update={"multi_select": True})
    records = distinct(records)
    details, root = _details(records), Path("media")
    left_out: dict[str, str] = {}
    index = MediaIndex()
    with Preparation("medstreambench", out, **options) as place:
        if not references_only and media is not None:
            root = media.resolve()
            examined = examine_media(records, root, place)
            index, left_out = (
                examined.index,
                {name: reason.value for name, reason in examined.left_out.items()},
            )
            records = [examined.chosen.get(record.sample_id, record) for record in records]
        for record in records:
            if record.degenerate and not keep_degenerate:
                left_out[record.sample_id] = "degenerate"
        if len(left_out) == len(records):
            fix = (
                "keep them with --keep-degenerate" if references_only else f"check --media {media}"
            )
            raise DataError(
                f"{origin.name}: no record is left: {_reasons(left_out, index)}; {fix}."
            )
        return place.complete(origin, records, root, index, details, left_out=left_out)


def _reasons(left_out: Mapping[str, str], index: MediaIndex) -> str:
    """How many records are left out for which reason, and what is wrong with the first file."""
    counts = sorted(Counter(left_out.values()).items())
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts)
    first = next(iter(index.errors.values()), None)
    return reasons if first is None else f"{reasons} ({str(first).rstrip('.')})"


def _details(records: Sequence[MedStreamRecord]) -> dict[str, dict[str, int]]:
    oddities: Counter[str] = Counter(note for record in records for note in record.notes)
    oddities.update(f"degenerate: {record.degenerate}" for record in records if record.degenerate)
    oddities["records that share their id with an earlier one"] = sum(
        "#" in record.sample_id for record in records
    )
    oddities["records with an answer that is none of the choices"] = sum(
        bool(record.choices)
        and any(
            turn.answerable and set(turn.expected) - set(record.choices) for turn in record.rounds
        )
        for record in records
        if record.temporal_mode != "proactive"
    )
    oddities["open questions whose reference is unanswerable"] = sum(
        record.question_type == "open"
        and record.task_mode == "single_turn"
        and not record.rounds[0].answerable
        for record in records
    )
    topics = tallies(records, "dataset", "source_task", "label_source", "question_type")
    topics["task"] = topics.pop("source_task")
    return {**topics, "oddities": dict(oddities)}
