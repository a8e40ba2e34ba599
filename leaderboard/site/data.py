"""The data of the comparison page: an index, and files for one model, or for one task of one model.
Samples have only what a benchmark's licence allows, and never media.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.catalog.statuses import status_words
from medtasks.core.errors import DataError
from medtasks.core.text import visible
from medtasks.runs.samples import Sample, SampleFile, without_garbage_collection
from medtasks.scoring.amended import samples_as_scored
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_record import VERIFIED, RunFolder, Verification

from ..intake.collect import find_everything
from ..schema.board import Board, BoardColumn, Pair, Unit
from ..schema.numbers import UNIT_LABELS, difference, direction, interval, number, safe_name
from ..verify.scored_run import scored_run
from .tables import coverage_notes, not_comparable, subtitles

_MARKUP = re.compile("[<>&]")


@dataclass(frozen=True)
class Answers:
    """The samples of one task of a run as they are scored here, and what could be verified of
    them.
    """

    samples: Sequence[Sample]
    verification: Verification = VERIFIED


SampleText = Mapping[tuple[str, str, str], Callable[[], Answers]]
"""Functions that read samples, by benchmark, task and model: only those of one task of one model
are in memory.
"""


class ScoredSamples:
    """The samples of a run as they are scored here; of the run, only what is needed to read them is
    held.
    """

    def __init__(self, folder: RunFolder, store: RunStore) -> None:
        self._folder = folder
        self._store = store

    @cached_property
    def _known(self) -> tuple[Mapping[str, Verification], Mapping[str, bytes]]:
        run = scored_run(self._folder, self._store)
        return run.verification, run.amended

    def of(self, task: str) -> Answers:
        """Those of a task."""
        verification, amended = self._known
        file = SampleFile(self._folder.directory / "samples" / f"{task}.jsonl")
        return Answers([*samples_as_scored(file, amended.get(task, b""))], verification[task])


def runs_on_board(board: Board, paths: Sequence[Path]) -> dict[str, RunFolder]:
    """The board's runs in ``paths`` by key, found by their contents; the board reports those that
    are unreadable.
    """
    keys = {facts.digest: key for key, facts in board.runs.items()}
    found = {}
    for run in find_everything(paths).runs:
        with contextlib.suppress(DataError):
            if run.content in keys:
                found[keys[run.content]] = run
    return found


def samples_of(board: Board, runs: Mapping[str, RunFolder], store: RunStore) -> SampleText:
    """The samples of those of the ``runs``, by key, that ``board`` ranks, as they are scored here.

    If several runs of a model have a task, the newest is used. A track without a page of its own is
    on the page whose tables name its tasks. `DataError` if a run or a sample cannot be read when it
    is asked for.
    """
    ranked = {
        one.name: {
            (row.model, run)
            for table in one.tables
            for row in table.rows
            for run in runs.keys() & row.runs
        }
        for one in board.benchmarks
    }
    files = {
        key: ScoredSamples(runs[key], store)
        for key in {key for pairs in ranked.values() for _, key in pairs}
    }
    samples: dict[tuple[str, str, str], Callable[[], Answers]] = {}
    for benchmark in board.benchmarks:
        named = {
            column.task for table in benchmark.tables for column in table.columns
        } & load_specs().keys()
        other_tasks = {leaf for name in named for leaf in leaf_tasks(name)}
        for model, run in sorted(
            ranked[benchmark.name], key=lambda one: (board.runs[one[1]].created, one)
        ):
            for task in board.runs[run].counts.keys() & load_specs().keys():
                owner = load_spec(task).metadata.benchmark
                if owner == benchmark.name or (owner not in ranked and task in other_tasks):
                    samples[benchmark.name, task, model] = partial(files[run].of, task)
    return samples


def data_script(key: str, make: Callable[[], Any]) -> str:
    """A script that stores a value under ``key``: pages opened as files may load scripts, but not
    fetch data.

    The value is a JSON text in a string literal, both in ASCII: no text in it can end the literal,
    and no key (such as ``__proto__``) is special to JavaScript.
    """
    text = json.dumps(_shown(make()), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    name, literal = (
        _MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(one)) for one in (key, text)
    )
    return f"(window.medtasks??={{}})[{name}]=JSON.parse({literal});\n"


def _shown(value: Any) -> Any:
    """A JSON value, in whose texts nothing is invisible on a page."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(key): _shown(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(inner) for inner in value]
    return value


def data_values(board: Board, samples: SampleText) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The keys of all scripts below ``data``, and functions that make their values: samples are
    read only then.
    """
    shows = {one.name: one.shows for one in board.benchmarks}
    tasks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (benchmark, task), of_task in groupby(sorted(samples), key=itemgetter(0, 1)):
        by_model = {key[2]: samples[key] for key in of_task}
        place = f"samples/{safe_name(benchmark)}/{safe_name(task)}"
        made = _TaskSamples(by_model, texts=shows[benchmark] != "nothing")
        for model in by_model:
            yield f"{place}/by-{model}", partial(made.answers, model)
        yield f"{place}/questions", made.questions
        tasks[benchmark].append({"task": task, "place": place, "models": [*by_model]})
    yield "index", partial(_index, board, tasks)
    apart = not_comparable(board)
    for slug in sorted(board.models):
        reasons = {
            one.benchmark.name: list(one.reasons)
            for one in apart
            if one.model.slug == slug and not one.blind
        }
        yield f"model-{slug}", partial(_model, board, slug, reasons)


def _index(board: Board, tasks: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "models": {slug: facts.name for slug, facts in sorted(board.models.items())},
        "benchmarks": [
            {
                "name": one.name,
                "title": one.title,
                "shows": one.shows,
                "why": one.why,
                "rankings": [_column(ranking.column, "") for ranking in one.rankings],
                "tables": [
                    {
                        "title": table.title,
                        "columns": [_column(one, sub[one.key]) for one in table.columns],
                    }
                    for table, sub in ((table, subtitles(table.columns)) for table in one.tables)
                ],
                "samples": tasks.get(one.name, []),
            }
            for one in board.benchmarks
        ],
    }


def _column(column: BoardColumn, sub: str) -> dict[str, str]:
    words = ", ".join(filter(None, (UNIT_LABELS[column.unit], direction(column))))
    best = "zero" if column.signed else "high" if column.higher_is_better else "low"
    return {
        **column.model_dump(include={"key", "metric", "label", "unit"}),
        "sub": sub,
        "words": words,
        "best": best,
    }


def _model(board: Board, slug: str, apart: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Scores of runs with media, comparable ones first, signatures by their numbers, and the pairs
    in which the model comes first; ``apart`` says by benchmark why it is not comparable.

    A score is its text, interval and coverage, the number of its signature, why it is missing,
    whether it is complete.
    """
    signatures: dict[str, int] = {}
    cells: dict[str, list[Any]] = {}
    pairs = {}
    for benchmark in board.benchmarks:
        for ranking in benchmark.rankings:
            unit = ranking.column.unit
            pairs[ranking.column.key] = [
                _pair(pair, unit) for pair in ranking.pairs if pair.first == slug
            ]
        for table in benchmark.tables:
            rows = [row for row in table.every_row if row.model == slug and not row.blind]
            for row, column in product(rows, table.columns):
                cell = row.cells.get(column.key)
                if cell is None or column.key in cells:
                    continue
                text = "" if cell.value is None else number(cell.value, column.unit)
                ends = interval(cell.low, cell.high, column.unit)
                details = "; ".join(filter(None, (ends, *coverage_notes(cell, column))))
                mark = signatures.setdefault(cell.signature, len(signatures))
                cells[column.key] = [text, details, mark, cell.reason or "", not cell.incomplete]
    return {"cells": cells, "signatures": list(signatures), "pairs": pairs, "apart": apart}


def _pair(pair: Pair, unit: Unit) -> list[Any]:
    ends = ["" if end is None else difference(end, unit) for end in (pair.low, pair.high)]
    chances = [
        "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
        for p in (pair.p_value, pair.p_holm)
    ]
    return [
        pair.second, pair.items, pair.clusters, difference(pair.difference, unit), *ends, *chances,
        pair.wins, pair.losses, pair.reason or "", pair.warning or "",
    ]  # fmt: skip


class _TaskSamples:
    """The samples of one task, read once for each model: its answers, and the questions of all.
    Without ``texts``, only ids, extracted options, statuses and scores may be shown.
    """

    def __init__(self, by_model: Mapping[str, Callable[[], Answers]], texts: bool) -> None:
        self._by_model = by_model
        self._texts = texts
        self._questions: dict[str, dict[str, tuple[str, str]]] = {}

    @without_garbage_collection()
    def answers(self, model: str) -> dict[str, Any]:
        """By sample the response (several, of repeats, are numbered), what was extracted, status
        and scores, and the place in ``doubts`` of what could not be verified of it; None for texts
        that may not be shown. ``words`` has what is said of each status.
        """
        answers = self._by_model[model]()
        samples = sorted(answers.samples, key=lambda one: one.sample_id)
        doubts: dict[str, int] = {}
        metrics = sorted(
            {metric for one in samples for metric, value in one.scores.items() if value is not None}
        )
        questions: dict[str, tuple[str, str]] = {}
        rows = []
        for one in samples:
            choices, question = one.document.get("choices"), one.document.get("question")
            options = choices if isinstance(choices, dict) else {}
            response, extracted = (
                None,
                one.filtered if self._texts or one.filtered in options else None,
            )
            if self._texts:
                lines = [question if isinstance(question, str) else one.prompt]
                lines += [f"{letter}. {text}" for letter, text in sorted(options.items())]
                questions[one.sample_id] = ("\n".join(lines), one.target)
                numbered = (
                    f"[response {number}] {text}" for number, text in enumerate(one.responses, 1)
                )
                response = one.responses[0] if len(one.responses) == 1 else "\n\n".join(numbered)
            values = [one.scores.get(metric) for metric in metrics]
            scores = [None if value is None else float(f"{value:.4g}") for value in values]
            row: list[Any] = [one.sample_id, response, extracted, one.status, scores]
            if doubt := answers.verification.doubts(one.sample_id):
                row.append(doubts.setdefault(doubt, len(doubts)))
            rows.append(row)
        # models that answered the same questions share them, since a board may have a hundred
        self._questions[model] = next(
            (one for one in self._questions.values() if one == questions), questions
        )
        words = {status: status_words(status) for status in sorted({one.status for one in samples})}
        return {"metrics": metrics, "rows": rows, "doubts": [*doubts], "words": words}

    def questions(self) -> list[list[str]]:
        """Ids, questions (with their options) and references of all samples that any model
        answered.
        """
        found: dict[str, tuple[str, str]] = {}
        for model in self._by_model:
            if model not in self._questions:
                self.answers(model)
            found.update(self._questions[model])
        return [[name, *found[name]] for name in found]
