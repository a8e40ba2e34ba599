"""The view's own pages as text: lists of samples, one sample, and runs under way."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from jinja2 import Environment

from medtasks.core.errors import UsageError
from medtasks.core.files import canonical_json
from medtasks.runs.samples import Sample

from ..board.board import Board
from ..exports.tables import csv_field
from ..site.pages import page_environment
from .library import LONGEST_NOTE, Library, bookmark, layout_of, title_of
from .media import shown_media
from .query import (
    DISAGREEMENTS,
    NAMES,
    OUTCOMES,
    PAGE,
    PARTLY,
    SORTS,
    WRONG,
    Row,
    Selection,
    address,
    parsed,
    sample_address,
    select,
)
from .sample_view import sample_parts, sample_scores

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'"
)
"""Of the view's own pages, which have forms and fetch what changes."""
LONGEST = 300
"""Characters of a text in a list."""


def view_environment(board: Board) -> Environment:
    environment = page_environment(board, served=True, further=[Path(__file__).parent / "pages"])
    environment.globals.update(policy=POLICY, address=address, sample_address=sample_address)
    environment.filters.update(
        as_json=canonical_json,
        ago=_ago,
        cut=lambda text: text if len(text) <= LONGEST else f"{text[:LONGEST]} …",
        outcome_name=NAMES.__getitem__,
        question=_question,
        sample_scores=sample_scores,
    )
    return environment


def _selected(library: Library, given: Mapping[str, str]) -> Selection:
    return select(library, parsed({"task": next(iter(library.tasks), ""), **given}))


def list_page(library: Library, environment: Environment, given: Mapping[str, str]) -> str:
    """The list of samples that an address asks for, one page of it."""
    selection = _selected(library, given)
    query, run = selection.query, selection.run
    page = given.get("page", "1")
    shown = min(max(int(page), 1), selection.pages) if page.isdecimal() and len(page) < 9 else 1
    entries = selection.samples(selection.rows[(shown - 1) * PAGE : shown * PAGE])
    shows_media = bool(entries) and shown_media(entries[0][1], run.manifest).count > 0
    tasks: dict[str, list[tuple[str, str]]] = {title_of(task): [] for task in library.tasks}
    for group in [name for name in library.asked if name not in library.tasks]:
        members = {task for several in library.asked[group].values() for task in several}
        tasks[title_of(group)].append((group, f"{group}, all {len(members)} tasks"))
    for task in library.tasks:
        tasks[title_of(task)].append((task, task))
    runs = list(library.asked[query["task"]])
    return environment.get_template("sample_list.html.j2").render(
        page="samples.html",
        query=query,
        selection=selection,
        layout=layout_of(query["task"]),
        tasks=tasks,
        runs=runs,
        metrics=[(name, name) for name in selection.metrics],
        outcomes=[(name, NAMES[value]) for name, value in OUTCOMES.items()],
        disagreements=[
            *(DISAGREEMENTS.items() if len(runs) > 1 else ()),
            *((one.key, f"differs from {one.label}") for one in runs if one is not run),
        ],
        sorts=SORTS,
        entries=entries,
        pictures=f"media?{urlencode({'run': run.key, 'n': 0, 'small': 1})}" if shows_media else "",
        number=shown,
        random=_random(selection),
        reset=address({"task": query["task"], "run": run.key}, "samples.html"),
    )


def list_file(library: Library, given: Mapping[str, str], kind: str) -> bytes:
    """All samples of a list, in its order: as CSV, or the lines of the run's files as they are."""
    selection = _selected(library, given)
    if kind == "jsonl":
        return b"".join(line.rstrip(b"\n") + b"\n" for line in selection.lines(selection.rows))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    names = ("task", "sample", "result", selection.metric or "score", "question", "gold", "extracted", "extraction")
    writer.writerow((*names, "response", "runs_right", "runs_scored", "note"))
    for row, sample in selection.samples(selection.rows):
        texts = (_question(sample), sample.target, sample.filtered, sample.status, "\n\n".join(sample.responses))
        note = selection.notes.get((row.task, row.id), "")
        fields = (row.task, row.id, NAMES[row.outcome], row.score, *texts, row.right, row.scored, note)
        writer.writerow(map(csv_field, fields))
    return stream.getvalue().encode("utf-8", "replace")


def sample_page(library: Library, environment: Environment, given: Mapping[str, str]) -> str:
    """The page of the sample ``id``; its neighbours are those of the list with the same filters.

    A sample that the filters leave out has the neighbours that it would have without filters.
    """
    selection = _selected(library, given)
    query, name = selection.query, given.get("id", "")
    task = given.get("of", query["task"])
    if not any(task in tasks for tasks in library.asked[query["task"]].values()):
        raise UsageError(f"{task}: not a task of {query['task']}; choose another.")
    parts = sample_parts(selection, task, name)
    here = any((row.task, row.id) == (task, name) for row in selection.rows)
    rows = selection.rows if here else select(library, {"task": query["task"], "run": query["run"]}).rows
    place = next(number for number, row in enumerate(rows) if (row.task, row.id) == (task, name))
    pictures = urlencode({"task": task, "run": query["run"], "id": name}, errors="surrogatepass")
    return environment.get_template("sample.html.j2").render(
        page="samples.html",
        query=query,
        selection=selection,
        **parts,
        layout=layout_of(task),
        title=title_of(task),
        place=place + 1 if here else 0,
        steps=[
            ("Previous", "p ArrowLeft", rows[place - 1] if place else None),
            ("Next", "n ArrowRight", next(iter(rows[place + 1 :]), None)),
            ("Next wrong", "w", next((row for row in rows[place + 1 :] if row.outcome in (WRONG, PARTLY)), None)),
            ("Random wrong", "r", _random(selection)),
        ],
        note=selection.notes.get((task, name)),
        longest_note=LONGEST_NOTE,
        pictures=f"media?{pictures}",
        address_in=lambda run, other: sample_address({**query, "run": run}, task, other),
    )


def bookmark_sample(library: Library, given: Mapping[str, str], form: Mapping[str, str]) -> str:
    """Bookmark the sample of an address with the form's note, or remove its bookmark; the address of its page.

    Raises:
        UsageError: there is no such sample.
    """
    query, name = parsed(given), given.get("id", "")
    run, task = library.run(query["run"], query["task"], query["model"]), given.get("of", query["task"])
    rows = select(library, {"task": query["task"], "run": run.key}).rows
    if not any((row.task, row.id) == (task, name) for row in rows):
        raise UsageError(f"{task}: this run has no sample {name}; choose one of its list.")
    bookmark(run, task, name, None if "remove" in form else form.get("note", "").strip())
    return sample_address(query, task, name)


def _random(selection: Selection) -> Row | None:
    """One of the samples that are not right, if there is any."""
    wrong = [row for row in selection.rows if row.outcome in (WRONG, PARTLY)]
    return random.choice(wrong) if wrong else None


def _question(sample: Sample) -> str:
    question = sample.document.get("question")
    return question if isinstance(question, str) and question else sample.prompt


def _ago(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
