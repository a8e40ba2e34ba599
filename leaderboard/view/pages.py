"""The view's own pages as text: lists of samples, and one sample with its media, prompt, response,
scores, the other runs' answers, and the rounds of a stream.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment

from medtasks.answers.option_letter import read_stages
from medtasks.benchmarks.documents import prompt_text
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import canonical_json
from medtasks.metrics.timelines import timelines
from medtasks.runs.samples import Sample

from ..exports.tables import csv_field
from ..figures.axes import time_axis
from ..schema.board import Board, Timeline
from ..site.html_filters import question_text
from ..site.pages import page_environment
from ..verify.media import shown_media
from . import library as lists
from .library import OUTCOMES, Library, Row, Run, Selection, address, sample_address

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'"
)
"""Of the view's own pages, which have forms and fetch what changes."""
PAGE = 50
SORTS = {
    "id": "by id",
    "low": "lowest score first",
    "high": "highest score first",
    "split": "most disputed first",
}
_MOST = 40
"""Letters of a response that are tried; each try filters the whole response."""

Segment = tuple[str, bool]
"""A piece of a response, and whether it was extracted."""


class Answered(NamedTuple):
    """The answer of one run to the question, as it is scored here; ``replies`` are why a response
    is missing, and its segments by stage, of which the last is read. ``unverified`` is what could
    not be verified of it, and why.
    """

    run: Run
    outcome: str
    sample: Sample
    replies: Sequence[tuple[str | None, Sequence[tuple[str, Sequence[Segment]]]]]
    unverified: str


def view_environment(board: Board) -> Environment:
    environment = page_environment(board, served=True, further=[Path(__file__).parent / "pages"])
    environment.globals.update(policy=POLICY, outcomes=OUTCOMES, sorts=SORTS)
    environment.globals.update(address=address, sample_address=sample_address)
    return environment


def list_page(library: Library, environment: Environment, given: Mapping[str, str]) -> str:
    """The list of samples that an address asks for, one page of it."""
    selection = Selection(library, given)
    run, task = selection.run, selection.query["task"]
    pages, page = max(1, -(-len(selection.rows) // PAGE)), given.get("page", "1")
    shown = min(max(int(page), 1), pages) if page.isdecimal() and len(page) < 9 else 1
    entries = [
        (row, selection.sample(row)) for row in selection.rows[(shown - 1) * PAGE : shown * PAGE]
    ]
    shows_media = bool(entries) and shown_media(entries[0][1], run.manifest).count > 0
    # the tasks of a benchmark below its groups
    tasks: dict[str, list[tuple[str, str]]] = {
        load_spec(name).benchmark.title: [] for name in library.tasks
    }
    for name in sorted(library.asked, key=library.tasks.__contains__):
        members = {member for several in library.asked[name].values() for member in several}
        label = name if name in library.tasks else f"{name}, all {len(members)} tasks"
        tasks[load_spec(name).benchmark.title].append((name, label))
    runs = list(library.asked[task])
    others = [(one.key, f"differs from {one.label}") for one in runs if one is not run]
    return environment.get_template("sample_list.html.j2").render(
        page="samples.html",
        selection=selection,
        tasks=tasks,
        runs=runs,
        metrics=[(name, name) for name in selection.metrics],
        disagreements=[*(lists.DISAGREEMENTS.items() if others else ()), *others],
        entries=entries,
        pictures=f"media?{urlencode({'run': run.key, 'n': 0, 'small': 1})}" if shows_media else "",
        number=shown,
        pages=pages,
        random=_random(selection),
    )


def list_file(library: Library, given: Mapping[str, str], kind: str) -> bytes:
    """All samples of a list, in its order, as they are scored here: as CSV, or as lines of JSON."""
    selection = Selection(library, given)
    if kind == "jsonl":
        return b"".join(_line(selection, row) for row in selection.rows)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    names = (
        "task",
        "sample",
        "result",
        selection.metric or "score",
        "question",
        "gold",
        "extracted",
        "extraction",
    )
    writer.writerow((*names, "response", "runs_right", "runs_scored", "note", "unverified"))
    for row in selection.rows:
        sample = selection.sample(row)
        texts = (
            question_text(sample),
            sample.target,
            sample.filtered,
            sample.status,
            "\n\n".join(sample.responses),
        )
        note = selection.notes.get((row.task, row.id), "")
        facts = (row.right, row.scored, note, selection.run.doubts(sample))
        fields = (row.task, row.id, OUTCOMES[row.outcome], row.score, *texts, *facts)
        writer.writerow(map(csv_field, fields))
    return stream.getvalue().encode("utf-8", "replace")


def _line(selection: Selection, row: Row) -> bytes:
    """The line of a sample; with what could not be verified of it, if anything."""
    line = selection.tables[row.file].line(row.start, row.size).rstrip(b"\n")
    if doubts := selection.run.doubts(selection.sample(row)):
        line = canonical_json({**json.loads(line), "unverified": doubts}).encode()
    return line + b"\n"


def sample_page(library: Library, environment: Environment, given: Mapping[str, str]) -> str:
    """The page of the sample ``id``; its neighbours are those of the list with the same filters.

    A sample that the filters leave out has the neighbours that it would have without filters.
    """
    selection = Selection(library, given)
    query, run, name = selection.query, selection.run, given.get("id", "")
    task = given.get("of", query["task"])
    if not any(task in tasks for tasks in library.asked[query["task"]].values()):
        raise UsageError(f"{task}: not a task of {query['task']}; choose another.")
    answers = [
        _answered(of, *found[0])
        for of, found in _read(selection, task, "sample_id", name).items()
        if found
    ]
    if not answers or answers[0].run is not run:
        raise UsageError(f"{task}: this run has no sample {name}; choose one of its list.")
    own, *others = answers
    sample = own.sample
    here = _place(selection, task, name)
    whole = (
        selection
        if here is not None
        else Selection(library, {"task": query["task"], "run": query["run"]})
    )
    place = here if here is not None else _place(whole, task, name) or 0
    after = whole.rows[place + 1 :]
    pictures = urlencode({"task": task, "run": query["run"], "id": name}, errors="surrogatepass")
    return environment.get_template("sample.html.j2").render(
        page="samples.html",
        selection=selection,
        title=load_spec(task).benchmark.title,
        facts=run.manifest.tasks[task],
        own=own,
        others=others,
        unanswered=[
            one for one in library.asked[task] if all(one is not answer.run for answer in answers)
        ],
        media=shown_media(sample, run.manifest),
        prompt=_prompt(load_spec(task), sample),
        stream=_stream(selection, sample),
        place=0 if here is None else here + 1,
        steps=[
            ("Previous", "p ArrowLeft", whole.rows[place - 1] if place else None),
            ("Next", "n ArrowRight", next(iter(after), None)),
            (
                "Next wrong",
                "w",
                next((row for row in after if row.outcome in ("wrong", "partly")), None),
            ),
            ("Random wrong", "r", _random(selection)),
        ],
        pictures=f"media?{pictures}",
        address_in=lambda run, other: sample_address({**query, "run": run}, task, other),
    )


def bookmark_sample(library: Library, given: Mapping[str, str], form: Mapping[str, str]) -> str:
    """Bookmark the sample of an address with the form's note, or remove its bookmark; the address
    of its page.
    """
    query, name = lists.parsed(given), given.get("id", "")
    task = given.get("of", query["task"])
    every = Selection(library, {key: query[key] for key in ("task", "run", "model")})
    if _place(every, task, name) is None:
        raise UsageError(f"{task}: this run has no sample {name}; choose one of its list.")
    lists.mark(every.run, task, name, None if "remove" in form else form.get("note", "").strip())
    return sample_address(query, task, name)


def _place(selection: Selection, task: str, name: str) -> int | None:
    """The place of a sample in a list, from 0; None if it is not in it."""
    return next(
        (place for place, row in enumerate(selection.rows) if (row.task, row.id) == (task, name)),
        None,
    )


def _random(selection: Selection) -> Row | None:
    """One of the samples that are not right, if there is any."""
    wrong = [row for row in selection.rows if row.outcome in ("wrong", "partly")]
    return random.choice(wrong) if wrong else None


def _read(
    selection: Selection, task: str, column: str, value: str
) -> dict[Run, list[tuple[Sample, str]]]:
    """The samples of ``task`` with a value in a column, and their outcomes: by run, the selection's
    own first, in the order of rounds.
    """
    library = selection.library
    runs = sorted(library.asked[task], key=lambda run: run is not selection.run)
    owners = {
        file: (run, table) for run in runs for file, table in library.tables(run, task).items()
    }
    metric = (
        selection.metric
        if any(selection.metric in table.metrics for _, table in owners.values())
        else ""
    )
    found: dict[Run, list[tuple[Sample, str]]] = {run: [] for run in runs}
    query = (
        f"select filename, start, size, {lists.outcome(metric)} from read_parquet($every, filename = true, "
        f"union_by_name = true) where {column} = $value order by round"
    )
    for file, start, size, reached in library.samples.rows(query, every=list(owners), value=value):
        run, table = owners[file]
        found[run].append((table.sample(start, size), reached))
    return found


def _answered(run: Run, sample: Sample, reached: str) -> Answered:
    spec, document = load_spec(sample.task), sample.whole_document()
    filtered = [one.filtered for one in sample.repeats] or [sample.filtered]
    failed = sample.failed or (None,) * len(sample.responses)
    replies: list[tuple[str | None, list[tuple[str, list[Segment]]]]] = []
    for response, reason, text in zip(
        sample.responses, failed, filtered * len(failed), strict=False
    ):
        stages = []
        if reason is None:
            first, last = (
                read_stages(response) if spec.stage1_template is not None else ("", response)
            )
            stages = [("Stage 1", [(first, False)])] if first else []
            stages.append(("Stage 2" if first else "", segments(spec, last, text, document)))
        replies.append((reason, stages))
    return Answered(run, reached, sample, replies, run.doubts(sample))


def _prompt(spec: TaskSpec, sample: Sample) -> list[tuple[str, str]]:
    """The prompt as it was sent, by stage; the second stage is rendered again from the first one's
    output.
    """
    if spec.stage1_template is None or not sample.responses:
        return [("", sample.prompt)]
    first = [("Stage 1", sample.prompt)]
    observations = read_stages(sample.responses[0])[0]
    if not observations or sample.prompt_hash != spec.prompt_hash:
        return first
    try:
        text = prompt_text(
            sample.whole_document(), spec.template or "", observations=observations.strip()
        )
    except (MedtasksError, KeyError) as error:
        text = f"It cannot be rendered again ({first_line(error)})."
    return [*first, ("Stage 2, without media", text)]


def _stream(selection: Selection, sample: Sample) -> dict[str, Any] | None:
    """The timelines of the sample's item by run, the own run first, on one axis, and the ids of the
    own rounds; None if the item is not a stream.
    """
    benchmark, item = load_spec(sample.task).benchmark, str(sample.document.get("item_id") or "")
    if benchmark.stream.timeline is None or not item:
        return None
    rounds = [
        (run, [one for one, _ in found])
        for run, found in _read(selection, sample.task, "item", item).items()
    ]
    lines: list[tuple[str, Timeline]] = []
    for place, (run, samples) in enumerate(rounds):
        items = joined_items(benchmark, [one.view() for one in samples]).items
        found = timelines(sample.task, items, benchmark.stream.timeline)
        if place == 0 and not found:  # a round is missing
            return None
        lines += [(run.label, line) for line in found[:1]]
    document, ids = sample.document, [one.sample_id for one in rounds[0][1]]
    window = [
        document.get("window_start"),
        document.get("window_end"),
        *(document.get("times") or ()),
    ]
    axis = time_axis(
        [line for _, line in lines], [float(time) for time in window if time is not None]
    )
    return {"axis": axis, "lines": lines, "ids": ids, "here": ids.index(sample.sample_id)}


def segments(
    spec: TaskSpec, response: str, filtered: str, document: Mapping[str, Any]
) -> list[Segment]:
    """``response``, with the part marked that became ``filtered``; unmarked if that cannot be told.

    A text is marked where it is last. Of a letter that is the last mention without which the
    extraction changes, else the last ones that change it together.
    """
    words, letter = r"\s+".join(map(re.escape, filtered.split())), len(filtered) == 1
    pattern = rf"(?<![^\W\d_]){words}(?![^\W\d_])" if letter else words
    mentions = (
        [match.span() for match in re.finditer(pattern, response, re.IGNORECASE)] if words else []
    )
    spans = mentions[-1:]
    if letter:
        spans, last = [], mentions[-_MOST:][::-1]
        for tried in (
            *([one] for one in last),
            *(last[:count] for count in range(2, len(last) + 1)),
        ):
            text = response
            for start, stop in tried:
                text = f"{text[:start]}{' ' * (stop - start)}{text[stop:]}"
            try:
                (found,) = spec.filter.kind().apply([[text]], [document])
            except Exception:  # filters of other packages
                break
            if not isinstance(found, str) or found.strip() != filtered:
                spans = tried
                break
    pieces, end = [], 0
    for start, stop in sorted(spans):
        pieces += [(response[end:start], False), (response[start:stop], True)]
        end = stop
    return [piece for piece in (*pieces, (response[end:], False)) if piece[0]]
