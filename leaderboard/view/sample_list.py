"""Lists of samples: as pages, and as files in CSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment

from medtasks.catalog.spec import load_spec
from medtasks.core.files import canonical_json

from ..exports.csv_scores import csv_field
from ..site.sample_filters import question_text
from ..verify.media import shown_media
from .library import Library
from .selection import SampleRow, Selection
from .selection_sql import DISAGREEMENTS, OUTCOMES

_PAGE_SIZE = 50


def list_page(library: Library, environment: Environment, parameters: Mapping[str, str]) -> str:
    """The list of samples that an address asks for, one page of it."""
    selection = Selection.at(library, parameters)
    run = selection.run
    pages = max(1, -(-len(selection.rows) // _PAGE_SIZE))
    page = _page_number(parameters.get("page", "1"), pages)
    rows = selection.rows[(page - 1) * _PAGE_SIZE : page * _PAGE_SIZE]
    entries = [(row, selection.sample(row)) for row in rows]
    pictures = ""
    if entries and shown_media(entries[0][1], run.manifest).count > 0:
        pictures = f"media?{urlencode({'run': run.key, 'n': 0, 'small': 1})}"
    return environment.get_template("sample_list.html.j2").render(
        page="samples.html",
        selection=selection,
        tasks=_tasks_by_benchmark(library),
        runs=list(library.runs_of[selection.query["task"]]),
        metrics=[(metric, metric) for metric in selection.metrics],
        disagreements=_disagreement_choices(selection),
        entries=entries,
        pictures=pictures,
        number=page,
        pages=pages,
        random=selection.random_wrong(),
    )


def _page_number(text: str, pages: int) -> int:
    """The number of the page that an address asks for, the first one by default.

    >>> _page_number("2", 3), _page_number("9", 3), _page_number("last", 3)
    (2, 3, 1)
    """
    if not text.isdecimal() or len(text) > 8:
        return 1
    return min(max(int(text), 1), pages)


def _tasks_by_benchmark(library: Library) -> dict[str, list[tuple[str, str]]]:
    """The tasks with samples and their labels, by benchmark; those of a benchmark after its
    groups.
    """
    tasks = library.tasks
    groups = [name for name in library.runs_of if name not in tasks]
    choices: dict[str, list[tuple[str, str]]] = {
        load_spec(name).benchmark.title: [] for name in tasks
    }
    for name in (*groups, *tasks):
        label = name
        if name in groups:
            members = set().union(*library.runs_of[name].values())
            label = f"{name}, all {len(members)} tasks"
        choices[load_spec(name).benchmark.title].append((name, label))
    return choices


def _disagreement_choices(selection: Selection) -> list[tuple[str, str]]:
    """The choices of who disagrees; none if there is no other run."""
    runs = selection.library.runs_of[selection.query["task"]]
    other_runs = [run for run in runs if run is not selection.run]
    if not other_runs:
        return []
    choices = [(name, disagreement.label) for name, disagreement in DISAGREEMENTS.items()]
    choices += [(run.key, f"differs from {run.label}") for run in other_runs]
    return choices


def list_file(library: Library, parameters: Mapping[str, str], kind: str) -> bytes:
    """All samples of a list, in its order, as they are scored here: as CSV, or as lines of JSON."""
    selection = Selection.at(library, parameters)
    if kind == "jsonl":
        return b"".join(_json_line(selection, row) for row in selection.rows)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(_csv_header(selection))
    for row in selection.rows:
        writer.writerow(map(csv_field, _csv_fields(selection, row)))
    return stream.getvalue().encode("utf-8", "replace")


def _csv_header(selection: Selection) -> tuple[str, ...]:
    """The names of the columns of `_csv_fields`."""
    return (
        "task",
        "sample",
        "result",
        selection.metric or "score",
        "question",
        "gold",
        "extracted",
        "extraction",
        "response",
        "runs_right",
        "runs_scored",
        "note",
        "unverified",
    )


def _csv_fields(selection: Selection, row: SampleRow) -> tuple[Any, ...]:
    """A sample's row in a CSV file."""
    sample = selection.sample(row)
    return (
        row.task,
        row.id,
        OUTCOMES[row.outcome],
        row.score,
        question_text(sample),
        sample.target,
        sample.filtered,
        sample.status,
        "\n\n".join(sample.responses),
        row.right,
        row.scored,
        selection.notes.get((row.task, row.id), ""),
        selection.run.doubts(sample),
    )


def _json_line(selection: Selection, row: SampleRow) -> bytes:
    """The line of a sample; with what could not be verified of it, if anything."""
    line = selection.tables[row.file].line(row.start, row.size).rstrip(b"\n")
    doubts = selection.run.doubts(selection.sample(row))
    if doubts:
        line = canonical_json({**json.loads(line), "unverified": doubts}).encode()
    return line + b"\n"
