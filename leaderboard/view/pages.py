"""The view's own pages as text: lists of samples, one sample, and runs under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from urllib.parse import urlencode

from jinja2 import Environment

from medtasks.errors import UsageError
from medtasks.files import canonical_json
from medtasks.results.samples import Sample

from ..board import Board
from ..site.pages import page_environment
from .library import Library, card_of, title_of
from .live import LiveRun
from .media import Media
from .query import DISAGREEMENTS, NAMES, OUTCOMES, SORTS, Query, select
from .sample_view import sample_parts

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'"
)
"""Of the view's own pages, which have forms and fetch what changes."""
LONGEST = 300
"""Characters of a text in a list."""


def view_environment(board: Board) -> Environment:
    environment = page_environment(board, served=True, further=[Path(__file__).parent / "pages"])
    environment.globals.update(policy=POLICY)
    environment.filters.update(
        as_json=canonical_json, ago=_ago, cut=_cut, outcome_name=NAMES.__getitem__, question=_question
    )
    return environment


def list_page(library: Library, environment: Environment, given: Mapping[str, str], media: Media) -> str:
    """The list of samples that an address asks for, one page of it."""
    query = Query.parsed({"task": next(iter(library.tasks), ""), **given})
    selection = select(library, query)
    query = selection.query
    page = given.get("page", "1")
    shown = min(max(int(page), 1), selection.pages) if page.isdecimal() and len(page) < 9 else 1
    index, runs = selection.index, library.tasks[query.task]
    rows = selection.page(shown).tolist()
    plain = Query(query.task, query.run)
    entries = list(zip(rows, index.read(rows), strict=True))
    shows_media = bool(entries) and media.shown(entries[0][1], selection.run.manifest).count > 0
    place = urlencode({"task": query.task, "run": query.run, "n": 0, "small": 1}, errors="surrogatepass")
    return environment.get_template("sample_list.html.j2").render(
        page="samples.html",
        query=query,
        selection=selection,
        card=card_of(query.task),
        tasks=[(title, list(names)) for title, names in groupby(library.tasks, title_of)],
        runs=runs,
        metrics=[(name, name) for name in index.metrics],
        statuses=_labelled(index.statuses.tolist()),
        outcomes=[(name, NAMES[value]) for name, value in OUTCOMES.items()],
        disagreements=[
            *(DISAGREEMENTS.items() if len(runs) > 1 else ()),
            *((run.key, f"differs from {run.label}") for run in runs if run.key != query.run),
        ],
        verdicts=_labelled([one for told in index.lists("verdicts") for one in told]),
        groups=[
            (name, _labelled([key for keys in index.lists(f"group {name}") for key in keys]))
            for name in index.breakdowns
        ],
        sorts=list(SORTS.items()),
        entries=entries,
        pictures=f"media?{place}" if shows_media else "",
        number=shown,
        previous=query.address("samples.html", page=shown - 1),
        following=query.address("samples.html", page=shown + 1),
        reset=plain.address("samples.html"),
    )


def sample_page(library: Library, environment: Environment, given: Mapping[str, str], media: Media) -> str:
    """The page of the sample ``id``; its neighbours are those of the list with the same filters."""
    query = Query.parsed(given)
    selection = select(library, query)
    query = selection.query
    name = given.get("id", "")
    parts = sample_parts(library, selection, name, media)
    previous, following, wrong = (
        None if one is None else query.address("sample.html", id=one) for one in selection.neighbours(name)
    )
    return environment.get_template("sample.html.j2").render(
        page="samples.html",
        query=query,
        selection=selection,
        parts_of=parts,
        card=card_of(query.task),
        title=title_of(query.task),
        previous=previous,
        following=following,
        wrong=wrong,
        up=query.address("samples.html"),
        pictures=f"media?{urlencode({'task': query.task, 'run': query.run, 'id': name}, errors='surrogatepass')}",
        round_address=lambda other: query.address("sample.html", id=other),
        other_address=lambda run: replace(query, run=run).address("sample.html", id=name),
    )


def live_page(environment: Environment, runs: Sequence[LiveRun], whole: bool) -> str:
    """The page of the runs under way, or only the part that changes."""
    return environment.get_template("live.html.j2" if whole else "live_part.html.j2").render(
        page="live.html", live=runs
    )


def waiting_page(environment: Environment, progress: str) -> str:
    """A page that loads itself again until the results are read."""
    return environment.get_template("waiting.html.j2").render(page="", progress=progress)


def message_page(environment: Environment, title: str, text: str) -> str:
    return environment.get_template("message.html.j2").render(page="", title=title, text=text)


def picture(library: Library, given: Mapping[str, str], media: Media) -> tuple[bytes, str]:
    """A picture of a sample and its media type."""
    task, text, small = given.get("task", ""), given.get("n", "0"), given.get("small") == "1"
    if not text.isdecimal() or len(text) > 6:
        raise UsageError(f"{text}: not the number of a picture.")
    run = library.run(given.get("run", ""), task)
    found = media.picture(task, given.get("id", ""), run.manifest, int(text), small)
    return found, "image/jpeg" if small else "image/png"


def _question(sample: Sample) -> str:
    question = sample.document.get("question")
    return question if isinstance(question, str) and question else sample.prompt


def _labelled(values: Sequence[str]) -> list[tuple[str, str]]:
    return [(value, f"{value} ({count:,})") for value, count in sorted(Counter(values).items())]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _ago(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
