"""Validate the scanners on labelled responses with Scout's own validation, and print a table.

``python validate.py`` scores the labelled responses on miniature data, exports them for Inspect,
and scans the logs. With ``--model`` and ``--model-base-url``, it validates the scanners for a model
instead of those for patterns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import llm_scanners
import scanners
from inspect_scout import (
    Scanner,
    Status,
    Transcript,
    TranscriptInfo,
    Transcripts,
    ValidationCase,
    ValidationSet,
    columns,
    scan,
    transcripts_from,
)

import medtasks

LABELS = ("refusal", "picture_not_seen", "language_change", "contradiction")
GROUPS = {"dev": "kvasir_vqa_x1", "test": "kvasir_vqa_x1_transformed"}
"""Files of labelled responses, and the tasks whose samples they are assigned to."""


def labelled_responses(split: str) -> list[dict[str, Any]]:
    """The responses of a split, each with ``sample_id``, ``response`` and ``labels``."""
    path = Path(__file__).with_name(f"labelled_{split}.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def export_logs(folder: Path) -> Path:
    """Score the labelled responses, the name of the split as their model, and export them as logs
    of Inspect.
    """
    runs = []
    for split, group in GROUPS.items():
        medtasks.score(labelled_responses(split), group, model=split, out=folder / split)
        runs.append(str(folder / split))
    logs = folder / "logs"
    command = [sys.executable, "-m", "medtasks", "export", "inspect", *runs, "--out", str(logs)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return logs


async def index(transcripts: Transcripts) -> list[TranscriptInfo]:
    """What Scout knows of the transcripts without reading them."""
    async with transcripts.reader() as reader:
        return [info async for info in reader.index()]


def validation_sets(transcripts: Transcripts, split: str) -> dict[str, ValidationSet]:
    """For each label, the labelled transcripts with what a scanner should find."""
    labels_by_sample = {row["sample_id"]: row["labels"] for row in labelled_responses(split)}
    cases: dict[str, list[ValidationCase]] = {label: [] for label in LABELS}
    for info in asyncio.run(index(transcripts)):
        labels = labels_by_sample[str(info.task_id)]
        for label in LABELS:
            cases[label].append(ValidationCase(id=info.transcript_id, target=label in labels))
    return {label: ValidationSet(cases=cases[label]) for label in LABELS}


def validate(logs: Path, split: str, *, model: str | None, base_url: str | None) -> Status:
    """The status of a scan of a split's responses with their labels: by a model, or by patterns
    without one.
    """
    samples = [row["sample_id"] for row in labelled_responses(split)]
    transcripts = (
        transcripts_from(str(logs))
        .where(columns.model == split)
        .where(columns.task_id.in_(samples))
    )
    by_label: dict[str, Scanner[Transcript]] = {}
    for label in LABELS:
        if model is None:
            by_label[label] = getattr(scanners, label)()
        else:
            by_label[label] = getattr(llm_scanners, f"{label}_llm")()
    return scan(
        scanners=by_label,
        transcripts=transcripts,
        scans=str(logs.parent / "scans"),
        validation=validation_sets(transcripts, split),
        model=model,
        model_base_url=base_url,
        max_processes=1,
        display="none",
    )


def table(statuses: Mapping[str, Status]) -> Iterator[str]:
    """The lines of a Markdown table: what each scanner found of the labelled responses, and what it
    found wrongly.
    """
    yield "| scanner | file | responses | labelled | found | wrongly found | precision | recall |"
    yield "|---|---|---|---|---|---|---|---|"
    for label in LABELS:
        for split, status in statuses.items():
            validation = status.summary.scanners[label].validation
            if validation is None or validation.metrics is None:
                sys.exit(f"{label}: Scout validated no response of {split}")
            metrics = validation.metrics
            counts = (metrics.total, metrics.tp + metrics.fn, metrics.tp, metrics.fp)
            shares = (_share(metrics.precision), _share(metrics.recall))
            yield f"| {' | '.join([f'`{label}`', split, *map(str, counts), *shares])} |"


def _share(value: float | None) -> str:
    """A share with two decimals; a dash if there is none."""
    return "–" if value is None else f"{value:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of the scanners for patterns, or of those for a model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", help="a model of Inspect, such as openai/NAME")
    parser.add_argument("--model-base-url", help="address of the model's endpoint")
    options = parser.parse_args(arguments)
    os.environ["MEDTASKS_DATA"] = "mini"
    statuses = {}
    with tempfile.TemporaryDirectory() as folder:
        logs = export_logs(Path(folder))
        for split in GROUPS:
            status = validate(logs, split, model=options.model, base_url=options.model_base_url)
            for label, summary in status.summary.scanners.items():
                if summary.errors:
                    sys.exit(f"{label}: {summary.errors} responses of {split} gave an error")
            statuses[split] = status
    print("\n".join(table(statuses)))


if __name__ == "__main__":
    main()
