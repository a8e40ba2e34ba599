"""The data of the comparison page: an index, and files for one model, or for one task of one model. Samples have only
what a benchmark's licence allows, and never media."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.catalog.spec import leaf_tasks, load_specs
from medtasks.core.errors import DataError
from medtasks.runs.samples import Sample, without_garbage_collection

from ..board.board import Board, BoardColumn, Cell, Pair, Unit
from ..board.numbers import UNIT_LABELS, difference, direction, interval, number, safe_name
from ..intake.collect import find_everything
from ..intake.sources import Source
from .tables import coverage_notes, first_click, not_comparable, subtitles

_MARKUP = re.compile("[<>&]")


class SampleKey(NamedTuple):
    """Identifies the samples of one task answered by one model."""

    benchmark: str
    task: str
    model: str


@dataclass(frozen=True)
class SampleRow:
    """What may be shown of one sample; texts that may not be shown are None.

    ``question`` includes the options, ``target`` is the reference answer or the correct letter, ``response`` joins
    repeated responses, ``extracted`` is what was scored; a score is None for metrics without a value per sample.
    """

    sample_id: str
    extracted: str | None
    status: str
    scores: Mapping[str, float | None]
    question: str | None = None
    target: str | None = None
    response: str | None = None


SampleText = Mapping[SampleKey, Callable[[], Sequence[SampleRow]]]
"""Functions that read samples, so that only those of one task of one model are in memory."""


def samples_of(board: Board, paths: Sequence[Path]) -> SampleText:
    """The samples of the runs that ``board`` ranks, found in ``paths`` by their digests.

    If several runs of a model have a task, the newest is used. A track without a page of its own is on the page whose
    tables name its tasks.

    Args:
        board: made of the runs in ``paths`` (`medtasks.leaderboard.intake.collect`).
        paths: result directories, or trees that contain some.

    Raises:
        UsageError: one of the paths is not a directory.
        DataError: a run cannot be read; on reading rows, a sample cannot.
    """
    ranked = {
        one.name: {(row.model, run) for table in one.tables for row in table.rows if not row.blind for run in row.runs}
        for one in board.benchmarks
    }
    on_board = runs_on_board(board, {run for pairs in ranked.values() for _, run in pairs}, find_everything(paths).runs)
    found = {key: source.read() for key, source in on_board.items()}
    samples: dict[SampleKey, Callable[[], Sequence[SampleRow]]] = {}
    for benchmark in board.benchmarks:
        named = {column.task for table in benchmark.tables for column in table.columns} & load_specs().keys()
        other_tasks = {leaf for name in named for leaf in leaf_tasks(name)}
        for model, run in sorted(ranked[benchmark.name], key=lambda one: (board.runs[one[1]].created, one)):
            if run not in found:
                continue
            manifest, by_task = found[run]
            for task in by_task:  # asking whether it has a task would read that task's samples
                owner = manifest.tasks[task].benchmark if task in manifest.tasks else ""
                if owner == benchmark.name or (owner and owner not in ranked and task in other_tasks):
                    read = partial(_sample_rows, by_task, task, benchmark.shows != "nothing")
                    samples[SampleKey(benchmark.name, task, model)] = read
    return samples


@without_garbage_collection()
def _sample_rows(by_task: Mapping[str, Sequence[Sample]], task: str, texts: bool) -> list[SampleRow]:
    return sorted((sample_row(one, texts) for one in by_task[task]), key=lambda row: row.sample_id)


def runs_on_board(board: Board, keys: Iterable[str], runs: Iterable[Source]) -> dict[str, Source]:
    """The runs with these keys, found by their contents; the board reports those that are unreadable."""
    wanted = {board.runs[key].digest: key for key in keys}
    found = {}
    for run in runs:
        with contextlib.suppress(DataError):
            if key := wanted.get(run.content):
                found[key] = run
    return found


def sample_row(sample: Sample, texts: bool) -> SampleRow:
    """What may be shown of ``sample``; without ``texts`` only its id, extracted option, status and scores."""
    choices = sample.document.get("choices")
    options = dict(choices) if isinstance(choices, dict) else {}
    shown = SampleRow(
        sample_id=sample.sample_id,
        extracted=sample.filtered if texts or sample.filtered in options else None,
        status=sample.status,
        scores=dict(sample.scores),
    )
    if not texts:
        return shown
    question = sample.document.get("question")
    lines = [question if isinstance(question, str) else sample.prompt]
    lines += [f"{letter}. {text}" for letter, text in sorted(options.items())]
    responses = sample.responses
    if len(responses) != 1:
        responses = tuple(f"[response {number}] {text}" for number, text in enumerate(responses, 1))
    return replace(shown, question="\n".join(lines), target=sample.target, response="\n\n".join(responses))


def write_data(board: Board, site: Path, samples: SampleText | None) -> None:
    """Write ``data/*.js`` below ``site``; scripts load them when they are needed."""
    for key, value in data_scripts(board, samples or {}):
        path = site / "data" / f"{key}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data_script(key, value()), encoding="utf-8")


def data_script(key: str, value: Any) -> str:
    """A script that stores ``value`` under ``key``: pages opened as files may load scripts, but not fetch data.

    The value is a JSON text in a string literal, both in ASCII: no text in it can end the literal, and no key (such as
    ``__proto__``) is special to JavaScript.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    name, literal = (_MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(one)) for one in (key, text))
    return f"(window.medtasks??={{}})[{name}]=JSON.parse({literal});\n"


def data_scripts(board: Board, samples: SampleText) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The keys of all scripts below ``data``, and functions that make their values: samples are read only then."""
    tasks: dict[str, list[dict[str, Any]]] = {}
    by_task: dict[tuple[str, str], list[SampleKey]] = {}
    for key in sorted(samples):
        by_task.setdefault((key.benchmark, key.task), []).append(key)
    for (benchmark, task), keys in sorted(by_task.items()):
        place = f"samples/{safe_name(benchmark)}/{safe_name(task)}"
        made = _TaskSamples(samples, keys)
        for key in keys:
            yield f"{place}/by-{key.model}", partial(made.answers, key)
        yield f"{place}/questions", made.questions
        tasks.setdefault(benchmark, []).append({"task": task, "place": place, "models": [key.model for key in keys]})
    yield "index", partial(_index, board, tasks)
    apart = not_comparable(board)
    for slug in sorted(board.models):
        reasons = {one.benchmark.name: list(one.reasons) for one in apart if one.model.slug == slug and not one.blind}
        yield f"model-{slug}", partial(_model, board, slug, reasons)


def _index(board: Board, tasks: Mapping[str, Any]) -> dict[str, Any]:
    every = (column for one in board.benchmarks for table in one.tables for column in table.columns)
    columns = sorted(every, key=lambda column: column.metric)
    return {
        "models": {slug: facts.name for slug, facts in sorted(board.models.items())},
        # which values are best; more is better for the other metrics
        "best": {
            one.metric: "zero" if one.signed else "low" for one in columns if one.signed or not one.higher_is_better
        },
        "units": {column.metric: column.unit for column in columns},
        "benchmarks": [
            {
                "name": one.name,
                "title": one.title,
                "shows": one.shows,
                "why": one.why,
                "rankings": [_column(ranking.column, "") for ranking in one.rankings],
                "tables": [
                    {"title": table.title, "columns": [_column(one, sub[one.key]) for one in table.columns]}
                    for table, sub in ((table, subtitles(table.columns)) for table in one.tables)
                ],
                "samples": tasks.get(one.name, []),
            }
            for one in board.benchmarks
        ],
    }


def _column(column: BoardColumn, sub: str) -> dict[str, str]:
    unit = ", ".join(filter(None, (UNIT_LABELS[column.unit], direction(column))))
    best = "" if column.signed else "low" if first_click(column) == "up" else "high"
    return {"key": column.key, "metric": column.metric, "label": column.label, "sub": sub, "unit": unit, "best": best}


def _model(board: Board, slug: str, apart: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Scores of runs with media (`_cell`), comparable ones first, signatures by their numbers, and the pairs in which
    the model comes first; ``apart`` says by benchmark why it is not comparable."""
    signatures: dict[str, int] = {}
    cells: dict[str, list[Any]] = {}
    for table in (table for benchmark in board.benchmarks for table in benchmark.tables):
        for row in (*table.rows, *(one.row for one in table.apart)):
            for column in table.columns if row.model == slug and not row.blind else ():
                if (cell := row.cells.get(column.key)) is not None and column.key not in cells:
                    mark = signatures.setdefault(cell.signature, len(signatures))
                    cells[column.key] = _cell(column, cell, mark)
    pairs = {
        ranking.column.key: [_pair(pair, ranking.column.unit) for pair in ranking.pairs if pair.first == slug]
        for benchmark in board.benchmarks
        for ranking in benchmark.rankings
    }
    return {"cells": cells, "signatures": list(signatures), "pairs": pairs, "apart": apart}


def _cell(column: BoardColumn, cell: Cell, signature: int) -> list[Any]:
    """Score as printed, interval and coverage, number of the signature, why it is missing, whether it is complete."""
    text = "" if cell.value is None else number(cell.value, column.unit)
    details = "; ".join(filter(None, (interval(cell.low, cell.high, column.unit), *coverage_notes(cell, column))))
    return [text, details, signature, cell.reason or "", not cell.incomplete]


def _pair(pair: Pair, unit: Unit) -> list[Any]:
    ends = ["" if end is None else difference(end, unit) for end in (pair.low, pair.high)]
    return [
        pair.second, pair.items, pair.clusters, difference(pair.difference, unit), *ends, _p_value(pair.p_value),
        _p_value(pair.p_holm), pair.wins, pair.losses, pair.reason or "", pair.warning or "",
    ]  # fmt: skip


def _p_value(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


class _TaskSamples:
    """The samples of one task, read once for each model: its answers, and the questions of all."""

    def __init__(self, samples: SampleText, keys: Sequence[SampleKey]) -> None:
        self._samples = samples
        self._keys = keys
        self._questions: dict[SampleKey, dict[str, tuple[str | None, str | None]]] = {}

    def answers(self, key: SampleKey) -> dict[str, Any]:
        rows = self._samples[key]()
        found: dict[str, tuple[str | None, str | None]] = {
            row.sample_id: (row.question, row.target) for row in rows if row.question is not None
        }
        # models that answered the same questions share them, since a board may have a hundred
        self._questions[key] = next((one for one in self._questions.values() if one == found), found)
        metrics = sorted({metric for row in rows for metric, value in row.scores.items() if value is not None})
        answers = []
        for row in rows:
            values = [row.scores.get(metric) for metric in metrics]
            scores = [None if value is None else float(f"{value:.4g}") for value in values]
            answers.append([row.sample_id, row.response, row.extracted, row.status, scores])
        return {"metrics": metrics, "rows": answers}

    def questions(self) -> list[list[str | None]]:
        """Ids, questions and references of all samples that any model answered."""
        found: dict[str, tuple[str | None, str | None]] = {}
        for key in self._keys:
            if key not in self._questions:
                self.answers(key)
            found.update(self._questions[key])
        return [[name, *found[name]] for name in found]
