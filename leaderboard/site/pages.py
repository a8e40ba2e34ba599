"""The pages as text, from autoescaped templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medtasks.catalog.statuses import status_words
from medtasks.core.text import visible
from medtasks.runs.replies import RunUsage
from medtasks.runs.signature import parse_signature

from ..board.floors import floors_text
from ..board.model_traits import billions_of
from ..board.usage import amount, measured
from ..figures.plots import figures_of, model_order
from ..figures.shapes import LOOKS, time_axis
from ..schema.board import BenchmarkBoard, Board, BoardModel, LetterCounts, Published
from ..schema.numbers import UNIT_LABELS, direction, exact, interval, number
from . import tables
from .benchmark_tables import benchmark_tables
from .downloads import Download, DownloadGroup, downloads_of, size_text

Files = Mapping[tuple[str, str], Mapping[str, str]]
"""Figures as files: paths by format, by benchmark and plot."""

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; base-uri 'none'; "
    "form-action 'none'"
)
"""No inline scripts or styles, no other origins; ``file:`` is for pages opened without a server."""

_ARXIV = re.compile(r"arXiv[: ]\s*(\d{4}\.\d{4,5}(?:v\d+)?)")
_LINK = re.compile(r"(?i)https?://[a-z0-9\[][!-~]*")
_SIZES = {
    "s": "under 5B",
    "m": "5B to 15B",
    "l": "15B to 80B",
    "x": "80B and more",
    "n": "not stated",
}
_SIGNATURE_PARTS = {
    "metric": "what is computed",
    "task": "the task",
    "group": "the group, whose items are pooled; the parts of its tasks are combined by hash",
    "version": "version of the task",
    "filters": "how answers are extracted from responses, with versions",
    "prompt": "hash of the prompt template",
    "protocol": "hash of task file, metrics, generation settings and frames",
    "data": "fingerprint of the prepared data",
    "items": "number of samples scored, and a hash of their ids",
    "blind": "run without media",
    "harness": "options of the harness that change the prompts",
    "judge": "hash of rubric, judges, their settings and how verdicts are combined",
}


def pages_of(
    board: Board,
    figures: Files,
    downloads: Sequence[Download],
    *,
    samples: bool = False,
    served: bool = False,
) -> dict[str, Callable[[], str]]:
    """Functions that render the pages, by file name.

    Args:
        figures: the paths of figures as files.
        downloads: the exports.
        samples: whether the site has the data of samples.
        served: whether `medtasks view` serves it, which has its own pages of samples.
    """
    environment = page_environment(board, samples=samples, served=served)
    found: dict[str, Callable[[], str]] = {}

    def page(name: str, template: str, views: Callable[[], dict[str, object]]) -> None:
        found[name] = lambda: environment.get_template(f"{template}.html.j2").render(
            page=name, **views()
        )

    names = [benchmark.name for benchmark in board.benchmarks]
    by_benchmark = {name: downloads_of(downloads, name) for name in names}
    archives = downloads_of(download for download in downloads if download.format == "ZIP")
    columns, rows = tables.all_models(board)
    overview = {
        "charts": tables.overview_charts(board),
        "columns": columns,
        "rows": rows,
        "apart": tables.not_comparable(board),
        "choices": _choices(board.models.values()),
        "downloads": {"": downloads_of(downloads), **by_benchmark},
    }
    page("index.html", "index", lambda: overview)
    for benchmark in board.benchmarks:
        files = {plot: paths for (name, plot), paths in figures.items() if name == benchmark.name}
        views = partial(
            _benchmark, board, benchmark, files, [*archives, *by_benchmark[benchmark.name]]
        )
        page(f"benchmark-{benchmark.name}.html", "benchmark", views)
    models = sorted(board.models.values(), key=lambda one: (one.name.casefold(), one.slug))
    for model in models:
        page(f"model-{model.slug}.html", "model", partial(_model, board, model))
    # the two models to compare until others are chosen are the first two of the overview
    page(
        "compare.html",
        "compare",
        lambda: {"chosen": models, "best": [row.model for row in rows[:2]]},
    )
    if samples and not served:
        page("samples.html", "samples", dict)
    page("protocol.html", "protocol", dict)
    return found


def _benchmark(
    board: Board,
    benchmark: BenchmarkBoard,
    files: Mapping[str, Mapping[str, str]],
    downloads: Sequence[DownloadGroup],
) -> dict[str, object]:
    order = model_order(benchmark)

    def placed(lines: Iterable[Any]) -> list[Any]:
        return sorted(lines, key=lambda one: (order.get(one.model, len(order)), one.model))

    costs = {key for plot in benchmark.plots if plot.kind == "cost" for key in plot.columns}
    columns = (column for table in benchmark.tables for column in table.columns)
    shown = benchmark_tables(board, benchmark)
    return {
        "benchmark": benchmark,
        "tables": shown.shown,
        "folded_tables": shown.folded,
        "charts": list(tables.charts(board, benchmark)),
        "figures": figures_of(board, benchmark),
        "files": files,
        "downloads": downloads,
        "letters": placed(benchmark.letters),
        "timelines": placed(benchmark.timelines),
        "usage": measured([(one.usage, one.cost) for one in benchmark.usage]),
        "used_for": next((column for column in columns if column.key in costs), None),
        "published": tables.published_tables(benchmark),
        "choices": _choices([*(board.models[slug] for slug in order), *benchmark.published]),
    }


def _model(board: Board, model: BoardModel) -> dict[str, object]:
    parts = tables.model_parts(board, model.slug)
    runs = [board.runs[key] for key in {key for part in parts for key in part["runs"]}]
    runs.sort(key=lambda run: (run.created, run.key), reverse=True)
    used = [run for run in runs if run.usage != RunUsage()]
    usage = measured([(one.usage, one.cost) for one in used])
    return {"model": model, "results": parts, "runs": runs, "used": used, "usage": usage}


def _choices(rows: Iterable[BoardModel | Published]) -> dict[str, list[tuple[str, str]]]:
    found = list(rows)
    sizes = {size_class(one.size) for one in found}
    return {
        "families": [
            (text, text) for text in sorted({one.family for one in found}, key=str.casefold)
        ],
        "sizes": [(name, label) for name, label in _SIZES.items() if name in sizes],
        "types": [(text, text) for text in sorted({one.type for one in found})],
        "trained": [(text, text) for text in ("yes", "no", "unknown")],
    }


def page_environment(
    board: Board, *, samples: bool = True, served: bool = False, further: Sequence[Path] = ()
) -> Environment:
    """The templates of the site, and of the directories ``further``, with what every page shows."""
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent / "pages", *further]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    titles = {benchmark.name: benchmark.title for benchmark in board.benchmarks}
    environment.globals.update(
        board=board,
        models=board.models,
        policy=POLICY,
        served=served,
        navigation=[
            ("index.html", "Overview"),
            *((f"benchmark-{name}.html", title) for name, title in titles.items()),
            *([("compare.html", "Compare")] if len(board.models) > 1 else []),
            *([("samples.html", "Samples")] if samples or served else []),
            *([("live.html", "Live run")] if served else []),
            ("protocol.html", "Protocol"),
        ],
        count=lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
    )
    of_cells = (tables.coverage_notes, tables.group_letters, tables.is_printed_so)
    of_columns = (direction, tables.first_click, tables.subtitles)
    named = (
        amount,
        exact,
        number,
        paper_link,
        safe_link,
        size_class,
        size_text,
        time_axis,
        trained_any,
        *of_cells,
        *of_columns,
    )
    environment.filters.update({one.__name__: one for one in named})
    environment.filters.update(
        count_words=_count_words,
        difference_unit={**UNIT_LABELS, "fraction": "percentage points"}.__getitem__,
        floors=floors_text,
        interval=lambda ends, unit: interval(ends[0], ends[1], unit),
        letters=letters_of,
        look=LOOKS.index,
        signature_parts=lambda text: [
            (key, value or "yes", _SIGNATURE_PARTS.get(key, "a setting of the metric"))
            for key, value in parse_signature(text).items()
        ],
        size_order=lambda size: (
            "" if (billions := billions_of(size)) is None else f"{billions:.6g}"
        ),
        times=lambda lines: sorted({each.time for one in lines for each in one.rounds}),
        trained=lambda model, benchmark: model.trained.get(benchmark, "unknown"),
        trained_on=lambda model: [
            title for name, title in titles.items() if model.trained.get(name) == "yes"
        ],
        unit=UNIT_LABELS.__getitem__,
        view=tables.ColumnView,
    )
    return environment


def _count_words(what: str) -> str:
    """What a count of `BoardRun.counts` is of: a status in words, or else its name there."""
    return status_words(what.removeprefix("status ")) if what.startswith("status ") else what


def _shown(value: Any) -> Any:
    """What an expression of a template shows: of texts, also what a page would not. The filter
    ``forceescape`` leaves the values of a form's fields unchanged, which are sent back."""
    return visible(value) if type(value) is str else value


def safe_link(text: str | None) -> str | None:
    """``text`` if it is a complete http or https address, else None: other schemes can run
    scripts.
    """
    return text if text is not None and _LINK.fullmatch(text) else None


def paper_link(text: str) -> str | None:
    """The address of a citation: an address itself, or the arXiv page of an arXiv number."""
    found = _ARXIV.fullmatch(text)
    return f"https://arxiv.org/abs/{found[1]}" if found else safe_link(text)


def size_class(size: str | None) -> str:
    """The range of parameters of a size such as ``235B-A22B``: ``s`` under 5, ``m`` under 15, ``l``
    under 80 billion, ``x`` above, ``n`` if it is not stated.
    """
    billions = billions_of(size)
    if billions is None:
        return "n"
    return next((name for name, end in (("s", 5), ("m", 15), ("l", 80)) if billions < end), "x")


def trained_any(model: BoardModel) -> str:
    """Over all benchmarks: ``yes`` if it is for any, ``no`` if it is for every one listed."""
    answers = set(model.trained.values())
    return "yes" if "yes" in answers else "no" if answers == {"no"} else "unknown"


def letters_of(counts: Sequence[LetterCounts]) -> list[str]:
    """The letters of a task's options, then everything else that was chosen."""
    gold = {letter for one in counts for letter in one.gold}
    return [*sorted(gold), *sorted({letter for one in counts for letter in one.chosen} - gold)]
