"""The pages as text: templates, autoescaped, with the views that they print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..board import BenchmarkBoard, Board, LetterCounts, ModelFacts, Published, Round
from .model_page import model_page
from .numbers import number
from .overview import all_models, leaders, set_apart
from .plots import Figure, letters_by_task, plot_views, rounds_by_item
from .protocols import protocol_sets, ranking_signatures
from .published import published_tables
from .tables import benchmark_tables, size_class, size_order, trained_of
from .text import paper_link, safe_link

__all__ = ["POLICY", "pages_of"]

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; base-uri 'none'; "
    "form-action 'none'"
)
"""No inline script or style, nothing from elsewhere; ``file:`` is for pages that are opened without a server."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DIFFERENCES = {"fraction": "percentage points", "points": "points", "seconds": "s", "score": "score"}
_SIZES = {"s": "under 5B", "m": "5B to 15B", "l": "15B to 80B", "x": "80B and more", "n": "not stated"}


def pages_of(
    board: Board, figures: Mapping[tuple[str, str], Figure], downloads: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """File names and texts of all pages, one after the other.

    Args:
        board: what they say.
        figures: the drawn figures, by benchmark and plot.
        downloads: paths of other files of the site that the overview links to.
    """
    environment = _environment()
    titles = {benchmark.name: benchmark.title for benchmark in board.benchmarks}
    environment.filters["trained_on"] = lambda model: [titles[it] for it in titles if model.trained.get(it) == "yes"]
    shared = {"board": board, "policy": POLICY, "navigation": _navigation(board)}

    def page(name: str, template: str, **views: object) -> tuple[str, str]:
        return name, environment.get_template(template).render(**shared, page=name, **views)

    models = sorted(board.models.items(), key=lambda one: (one[1].name.casefold(), one[0]))
    yield page(
        "index.html",
        "index.html.j2",
        leaders=leaders(board),
        models=all_models(board),
        apart=set_apart(board),
        choices=_choices(board.models.values()),
        downloads=downloads,
    )
    for benchmark in board.benchmarks:
        yield page(
            f"benchmark-{benchmark.name}.html",
            "benchmark.html.j2",
            benchmark=benchmark,
            tables=benchmark_tables(board, benchmark),
            plots=plot_views(board, benchmark, figures),
            letters=letters_by_task(board, benchmark),
            items=rounds_by_item(board, benchmark),
            published=published_tables(benchmark),
            choices=_choices([*_models_of(board, benchmark), *benchmark.published]),
        )
    for slug, _ in models:
        yield page(f"model-{slug}.html", "model.html.j2", one=model_page(board, slug))
    yield page("compare.html", "compare.html.j2", models=models)
    sets = protocol_sets(board)
    yield page(
        "protocol.html",
        "protocol.html.j2",
        signatures=ranking_signatures(board),
        sets=sets,
        numbers={run.key: one.number for one in sets for run in one.runs},
        runs=sorted(board.runs.values(), key=lambda run: (run.model, run.created, run.key)),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["count"] = _count
    environment.filters.update(
        by_time=_by_time,
        day=_day,
        difference_unit=_DIFFERENCES.__getitem__,
        letters=_letters,
        number=number,
        paper_link=paper_link,
        safe_link=safe_link,
        size_class=size_class,
        size_order=size_order,
        trained=trained_of,
        trained_any=_trained_any,
    )
    return environment


def _navigation(board: Board) -> list[tuple[str, str]]:
    benchmarks = [(f"benchmark-{one.name}.html", one.title) for one in board.benchmarks]
    return [
        ("index.html", "Overview"),
        *benchmarks,
        *([("compare.html", "Compare")] if len(board.models) > 1 else []),
        ("protocol.html", "Protocol"),
    ]


def _models_of(board: Board, benchmark: BenchmarkBoard) -> list[ModelFacts]:
    held = {row.model for table in benchmark.tables for row in (*table.rows, *(one.row for one in table.apart))}
    return [board.models[slug] for slug in sorted(held)]


def _choices(rows: Iterable[ModelFacts | Published]) -> dict[str, list[tuple[str, str]]]:
    """What the filters offer: values with their labels."""
    found = list(rows)
    sizes = {size_class(one.size) for one in found}
    return {
        "families": [(text, text) for text in sorted({one.family for one in found}, key=str.casefold)],
        "sizes": [(name, label) for name, label in _SIZES.items() if name in sizes],
        "types": [(text, text) for text in sorted({one.type for one in found})],
        "trained": [(text, text) for text in ("yes", "no", "unknown")],
    }


def _trained_any(model: ModelFacts) -> str:
    """Over all benchmarks: ``yes`` for any of them, ``no`` where that was said of each that is spoken of."""
    said = set(model.trained.values())
    return "yes" if "yes" in said else "no" if said == {"no"} else "unknown"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _day(created: str) -> str:
    """The day of a time stamp; other text stays."""
    return created[:10] if _DAY.match(created) else created


def _letters(counts: LetterCounts) -> list[str]:
    return [*sorted(counts.gold), *sorted(set(counts.chosen) - set(counts.gold))]


def _by_time(rounds: Sequence[Round]) -> dict[float, Round]:
    return {one.time: one for one in rounds}
