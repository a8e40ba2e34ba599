"""MedStreamBench: record files and media of 22 datasets as prepared data with frames.

A user may have the media of some of these datasets only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.medstreambench.examined import Examined
from medtasks.benchmarks.medstreambench.frames import examine_media
from medtasks.benchmarks.medstreambench.parse import parse_medstream_row
from medtasks.benchmarks.medstreambench.records import MedStreamRecord
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
    if not references_only:
        _require_directory(media)
    folder, origin = located(source, HUB, "*.jsonl")
    records = _read_records(_record_files(folder, source))
    details = _details(records)
    root = Path("media")
    examined = Examined()
    with Preparation("medstreambench", out, **options) as place:
        if not references_only and media is not None:
            root = media.resolve()
            examined = examine_media(records, root, place)
            records = [examined.chosen.get(record.sample_id, record) for record in records]
        left_out = _left_out(records, examined, keep_degenerate=keep_degenerate)
        if len(left_out) == len(records):
            fix = f"check --media {media}"
            if references_only:
                fix = "keep them with --keep-degenerate"
            reasons = _reasons(left_out, examined.index)
            raise DataError(f"{origin.name}: no record is left: {reasons}; {fix}.")
        return place.complete(origin, records, root, examined.index, details, left_out=left_out)


def _require_directory(media: Path | None) -> None:
    """Refuse a media directory that is not named or does not exist."""
    if media is not None and media.is_dir():
        return
    problem = "is missing" if media is None else f"{media}: not a directory"
    raise UsageError(
        f"--media {problem}; give the directory of Stream_Bench/ (or --references-only, which "
        "is enough for scoring)."
    )


def _record_files(folder: Path, source: str) -> list[Path]:
    """The record files in the directory that ``source`` names, sorted."""
    if not folder.is_dir():
        raise UsageError(
            f"--source {source}: not a directory; give hub, or the directory of the .jsonl files."
        )
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UsageError(f"--source {source}: has no .jsonl file; give the directory that does.")
    return files


def _left_out(
    records: Sequence[MedStreamRecord], examined: Examined, *, keep_degenerate: bool
) -> dict[str, str]:
    """Why records are left out, by sample id: because of their media, or as degenerate."""
    reasons = {sample_id: problem.value for sample_id, problem in examined.left_out.items()}
    if not keep_degenerate:
        for record in records:
            if record.degenerate:
                reasons[record.sample_id] = "degenerate"
    return reasons


def _read_records(files: Sequence[Path]) -> list[MedStreamRecord]:
    """The records of all files, with multi-select set for each task as a whole.

    A task is multi-select if a record of it has several answers, or if its name says so.
    """
    records: list[MedStreamRecord] = []
    for path in files:
        records.extend(parse_medstream_row(item.row, item.where) for item in read_jsonl(path))
    multi_select_tasks = {_task_of(record) for record in records if record.multi_select}
    for row, record in enumerate(records):
        named_so = "multi" in record.source_task.casefold()
        if record.choices and (named_so or _task_of(record) in multi_select_tasks):
            records[row] = record.model_copy(update={"multi_select": True})
    return distinct(records)


def _task_of(record: MedStreamRecord) -> tuple[str, str]:
    """What identifies a record's upstream task: names of tasks are unique within a dataset."""
    return record.dataset, record.source_task


def _reasons(left_out: Mapping[str, str], index: MediaIndex) -> str:
    """How many records are left out for each reason, and what is wrong with the first file."""
    counts = sorted(Counter(left_out.values()).items())
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts)
    first = next(iter(index.errors.values()), None)
    if first is None:
        return reasons
    return f"{reasons} ({str(first).rstrip('.')})"


def _details(records: Sequence[MedStreamRecord]) -> dict[str, dict[str, int]]:
    """Counts for the manifest: records by topic, and what is odd about them."""
    oddities: Counter[str] = Counter()
    for record in records:
        oddities.update(record.notes)
    for record in records:
        if record.degenerate:
            oddities[f"degenerate: {record.degenerate}"] += 1
    oddities["records that share their id with an earlier one"] = sum(
        "#" in record.sample_id for record in records
    )
    oddities["records with an answer that is none of the choices"] = sum(
        _answers_beyond_choices(record) for record in records
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


def _answers_beyond_choices(record: MedStreamRecord) -> bool:
    """Whether a round expects an answer that is none of the choices; alerts are free text."""
    if record.temporal_mode == "proactive" or not record.choices:
        return False
    return any(
        turn.answerable and set(turn.expected) - set(record.choices) for turn in record.rounds
    )
