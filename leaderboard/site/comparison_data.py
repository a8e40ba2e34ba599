"""The data of the pages that compare models: an index, each model's scores, and samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from medtasks.metrics.facts import Unit

from ..schema.board import BenchmarkBoard, Board
from ..schema.model_rankings import Pair
from ..schema.numbers import UNIT_LABELS, difference, direction, interval, number, safe_name
from ..schema.score_tables import BoardColumn, Cell
from .overview import not_comparable
from .run_samples import SampleText
from .tables import coverage_notes, subtitles
from .task_samples import TaskSamples

MakeValue = Callable[[], Any]


def data_values(board: Board, samples: SampleText) -> Iterator[tuple[str, MakeValue]]:
    """The keys of all scripts below ``data``, and functions that make their values.

    Samples are read only when these functions are called.
    """
    shows = {benchmark.name: benchmark.shows for benchmark in board.benchmarks}
    index_entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    by_task = groupby(sorted(samples), key=attrgetter("benchmark", "task"))
    for (benchmark, task), keys in by_task:
        read_by_model = {key.model: samples[key] for key in keys}
        place = f"samples/{safe_name(benchmark)}/{safe_name(task)}"
        task_samples = TaskSamples(read_by_model, texts=shows[benchmark] != "nothing")
        for model in read_by_model:
            yield f"{place}/by-{model}", partial(task_samples.answers, model)
        yield f"{place}/questions", task_samples.questions
        entry = {"task": task, "place": place, "models": list(read_by_model)}
        index_entries[benchmark].append(entry)
    yield "index", partial(_index, board, index_entries)

    reasons = _reasons_by_model(board)
    for slug in sorted(board.models):
        yield f"model-{slug}", partial(_model_scores, board, slug, reasons[slug])


def _reasons_by_model(board: Board) -> dict[str, dict[str, list[str]]]:
    """By model and benchmark, why its results with media are not comparable."""
    reasons: dict[str, dict[str, list[str]]] = {slug: {} for slug in board.models}
    for result in not_comparable(board):
        if not result.blind:
            reasons[result.model.slug][result.benchmark.name] = list(result.reasons)
    return reasons


def _index(board: Board, samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Models, and benchmarks with their columns and the places of their ``samples``."""
    models = {slug: facts.name for slug, facts in sorted(board.models.items())}
    benchmarks = []
    for benchmark in board.benchmarks:
        benchmarks.append(_index_entry(benchmark, samples.get(benchmark.name, [])))
    return {"models": models, "benchmarks": benchmarks}


def _index_entry(benchmark: BenchmarkBoard, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A benchmark with its columns and the places of its samples."""
    tables = []
    for table in benchmark.tables:
        subs = subtitles(table.columns)
        columns = [_column(column, subs[column.key]) for column in table.columns]
        tables.append({"title": table.title, "columns": columns})
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "shows": benchmark.shows,
        "why": benchmark.why,
        "rankings": [_column(ranking.column, "") for ranking in benchmark.rankings],
        "tables": tables,
        "samples": samples,
    }


def _column(column: BoardColumn, sub: str) -> dict[str, str]:
    """A column with its unit and direction; ``sub`` tells it from columns with the same label."""
    words = [text for text in (UNIT_LABELS[column.unit], direction(column)) if text]
    best = "high" if column.higher_is_better else "low"
    if column.signed:
        best = "zero"
    return {
        **column.model_dump(include={"key", "metric", "label", "unit"}),
        "sub": sub,
        "words": ", ".join(words),
        "best": best,
    }


def _model_scores(board: Board, slug: str, reasons: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A model's scores with media and its paired differences, as a JSON value.

    Scores name their signatures by number. A pair is with the model that comes first; ``reasons``
    say by benchmark why its results are not comparable.
    """
    signatures: dict[str, int] = {}
    scores: dict[str, list[Any]] = {}
    pairs = {}
    for benchmark in board.benchmarks:
        for ranking in benchmark.rankings:
            own_pairs = [pair for pair in ranking.pairs if pair.first == slug]
            unit = ranking.column.unit
            pairs[ranking.column.key] = [_pair(pair, unit) for pair in own_pairs]
        for column, cell in _cells_with_media(benchmark, slug):
            if column.key not in scores:
                signature = signatures.setdefault(cell.signature, len(signatures))
                scores[column.key] = _score(cell, column, signature)
    return {"cells": scores, "signatures": list(signatures), "pairs": pairs, "apart": reasons}


def _cells_with_media(benchmark: BenchmarkBoard, slug: str) -> Iterator[tuple[BoardColumn, Cell]]:
    """The cells of a model's runs with media in each table, comparable ones first."""
    for table in benchmark.tables:
        for row in table.every_row:
            if row.model != slug or row.blind:
                continue
            for column in table.columns:
                if column.key in row.cells:
                    yield column, row.cells[column.key]


def _score(cell: Cell, column: BoardColumn, signature: int) -> list[Any]:
    """A score, in the order in which the script of the page reads it.

    These are its text, its interval with coverage, the number of its signature, why it is missing,
    and whether it is complete.
    """
    text = "" if cell.value is None else number(cell.value, column.unit)
    ends = interval(cell.low, cell.high, column.unit)
    details = [detail for detail in (ends, *coverage_notes(cell, column)) if detail]
    return [text, "; ".join(details), signature, cell.reason or "", not cell.incomplete]


def _pair(pair: Pair, unit: Unit) -> list[Any]:
    """A paired difference, in the order in which the script of the page reads it."""
    return [
        pair.second,
        pair.items,
        pair.clusters,
        difference(pair.difference, unit),
        _difference_text(pair.low, unit),
        _difference_text(pair.high, unit),
        _p_value_text(pair.p_value),
        _p_value_text(pair.p_holm),
        pair.wins,
        pair.losses,
        pair.reason or "",
        pair.warning or "",
    ]


def _difference_text(value: float | None, unit: Unit) -> str:
    return "" if value is None else difference(value, unit)


def _p_value_text(p_value: float | None) -> str:
    if p_value is None:
        return ""
    if p_value < 0.001:
        return "< 0.001"
    return f"{p_value:.3f}"
