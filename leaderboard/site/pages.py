"""The pages as text, from autoescaped templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medtasks.core.text import visible
from medtasks.metrics.timelines import Timeline
from medtasks.runs.usage import RunUsage

from ..board.model_order import model_order
from ..board.usage import measured
from ..figures.plots import figures_of
from ..schema.board import BenchmarkBoard, Board, BoardModel
from ..schema.plot_data import LetterCounts
from ..schema.published_figures import Published
from ..schema.score_tables import BoardColumn
from .benchmark_tables import benchmark_tables
from .charts import charts, overview_charts
from .downloads import Download, DownloadGroup, downloads_of
from .html_filters import HTML_FILTERS, size_class
from .latency_text import latency_by_task
from .model_tables import model_parts
from .overview import all_models, not_comparable
from .published_tables import published_tables

Files = Mapping[tuple[str, str], Mapping[str, str]]
"""Figures as files: paths by format, by benchmark and plot."""

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; "
    "base-uri 'none'; form-action 'none'"
)
"""No inline scripts or styles, no other origins; ``file:`` is for pages opened without a server."""

_SIZES = {
    "s": "under 5B",
    "m": "5B to 15B",
    "l": "15B to 80B",
    "x": "80B and more",
    "n": "not stated",
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
    pages = [
        *_comparison_pages(board, downloads),
        *_benchmark_pages(board, figures, downloads),
        *_model_pages(board),
    ]
    if samples and not served:
        pages.append(_SitePage("samples.html", "samples", dict))
    pages.append(_SitePage("protocol.html", "protocol", dict))
    return {page.name: partial(_rendered, environment, page) for page in pages}


@dataclass(frozen=True)
class _SitePage:
    """A page's file name, its template, and a function that makes what the template shows."""

    name: str
    template: str
    make_views: Callable[[], Mapping[str, object]]


def _rendered(environment: Environment, page: _SitePage) -> str:
    template = environment.get_template(f"{page.template}.html.j2")
    return template.render(page=page.name, **page.make_views())


def _comparison_pages(board: Board, downloads: Sequence[Download]) -> Iterator[_SitePage]:
    """The overview of all models, and the comparison of two."""
    columns, rows = all_models(board)
    overview = {
        "charts": overview_charts(board),
        "columns": columns,
        "rows": rows,
        "apart": not_comparable(board),
        "choices": _choices(board.models.values()),
        "downloads": _downloads_by_benchmark(board, downloads),
    }
    yield _SitePage("index.html", "index", lambda: overview)
    # the two models to compare until others are chosen are the first two of the overview
    best = [row.model for row in rows[:2]]
    compared = {"chosen": _models_by_name(board), "best": best}
    yield _SitePage("compare.html", "compare", lambda: compared)


def _benchmark_pages(
    board: Board, figures: Files, downloads: Sequence[Download]
) -> Iterator[_SitePage]:
    """A page for each benchmark, which offers the whole archive, too."""
    archives = downloads_of(download for download in downloads if download.format == "ZIP")
    for benchmark in board.benchmarks:
        name = benchmark.name
        files = {plot: paths for (owner, plot), paths in figures.items() if owner == name}
        offered = [*archives, *downloads_of(downloads, name)]
        views = partial(_benchmark_views, board, benchmark, files, offered)
        yield _SitePage(f"benchmark-{name}.html", "benchmark", views)


def _model_pages(board: Board) -> Iterator[_SitePage]:
    for model in _models_by_name(board):
        yield _SitePage(f"model-{model.slug}.html", "model", partial(_model_views, board, model))


def _models_by_name(board: Board) -> list[BoardModel]:
    return sorted(board.models.values(), key=lambda model: (model.name.casefold(), model.slug))


def _downloads_by_benchmark(
    board: Board, downloads: Sequence[Download]
) -> dict[str, list[DownloadGroup]]:
    """The downloads of each benchmark, and those of the whole board under an empty name."""
    groups = {"": downloads_of(downloads)}
    for benchmark in board.benchmarks:
        groups[benchmark.name] = downloads_of(downloads, benchmark.name)
    return groups


def _benchmark_views(
    board: Board,
    benchmark: BenchmarkBoard,
    files: Mapping[str, Mapping[str, str]],
    downloads: Sequence[DownloadGroup],
) -> dict[str, object]:
    """What the template of a benchmark's page shows."""
    order = model_order(benchmark)

    def place_of(line: LetterCounts | Timeline) -> tuple[int, str]:
        return order.get(line.model, len(order)), line.model

    split_tables = benchmark_tables(board, benchmark)
    ordered_models = [board.models[slug] for slug in order]
    return {
        "benchmark": benchmark,
        "tables": split_tables.shown,
        "folded_tables": split_tables.folded,
        "charts": list(charts(board, benchmark)),
        "figures": figures_of(board, benchmark),
        "files": files,
        "downloads": downloads,
        "letters": sorted(benchmark.letters, key=place_of),
        "timelines": sorted(benchmark.timelines, key=place_of),
        "usage": measured([(entry.usage, entry.cost) for entry in benchmark.usage]),
        "used_for": _cost_column(benchmark),
        "published": published_tables(benchmark),
        "choices": _choices([*ordered_models, *benchmark.published]),
    }


def _cost_column(benchmark: BenchmarkBoard) -> BoardColumn | None:
    """The score that a figure plots against cost; None without such a figure."""
    plotted_keys: set[str] = set()
    for plot in benchmark.plots:
        if plot.kind == "cost":
            plotted_keys.update(plot.columns)
    for table in benchmark.tables:
        for column in table.columns:
            if column.key in plotted_keys:
                return column
    return None


def _model_views(board: Board, model: BoardModel) -> dict[str, object]:
    """What the template of a model's page shows."""
    parts = model_parts(board, model.slug)
    keys: set[str] = set()
    for part in parts:
        keys |= part.runs
    runs = [board.runs[key] for key in keys]
    runs.sort(key=lambda run: (run.created, run.key), reverse=True)
    used = [run for run in runs if run.usage != RunUsage()]
    usage = measured([(run.usage, run.cost) for run in used])
    return {"model": model, "results": parts, "runs": runs, "used": used, "usage": usage}


def _choices(rows: Iterable[BoardModel | Published]) -> dict[str, list[tuple[str, str]]]:
    """The choices of the filters above a table: values and their labels."""
    models = list(rows)
    families = {model.family for model in models}
    types = {model.type for model in models}
    sizes = {size_class(model.size) for model in models}
    return {
        "families": [(family, family) for family in sorted(families, key=str.casefold)],
        "sizes": [(name, label) for name, label in _SIZES.items() if name in sizes],
        "types": [(text, text) for text in sorted(types)],
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
    environment.globals.update(
        board=board,
        models=board.models,
        policy=POLICY,
        served=served,
        navigation=_navigation(board, samples=samples, served=served),
        count=_counted,
    )
    environment.filters.update(HTML_FILTERS)
    environment.filters["latency_by_task"] = latency_by_task
    return environment


def _shown(value: Any) -> Any:
    """The value of a template's expression; characters that a page would not show are written out.

    The filter ``forceescape`` leaves the values of a form's fields unchanged, which are sent back.
    """
    return visible(value) if type(value) is str else value


def _navigation(board: Board, *, samples: bool, served: bool) -> list[tuple[str, str]]:
    """The links of every page's navigation, with their labels."""
    links = [("index.html", "Overview")]
    for benchmark in board.benchmarks:
        links.append((f"benchmark-{benchmark.name}.html", benchmark.title))
    if len(board.models) > 1:
        links.append(("compare.html", "Compare"))
    if samples or served:
        links.append(("samples.html", "Samples"))
    if served:
        links.append(("audit.html", "Gold answers"))
        links.append(("live.html", "Live run"))
    links.append(("protocol.html", "Protocol"))
    return links


def _counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless the number is 1."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"
