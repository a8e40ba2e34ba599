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
from medtasks.scoring.run_folder import RunFolder
from medtasks.scoring.verification_outcome import VERIFIED, Verification

from ..intake.collect import find_everything
from ..schema.board import BenchmarkBoard, Board, BoardColumn, Cell, Pair, Unit
from ..schema.numbers import UNIT_LABELS, difference, direction, interval, number, safe_name
from ..verify.scored_run import scored_run
from .overview import not_comparable
from .tables import coverage_notes, subtitles

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
    key_by_digest = {facts.digest: key for key, facts in board.runs.items()}
    runs = {}
    for run in find_everything(paths).runs:
        with contextlib.suppress(DataError):
            if run.content in key_by_digest:
                runs[key_by_digest[run.content]] = run
    return runs


def samples_of(board: Board, runs: Mapping[str, RunFolder], store: RunStore) -> SampleText:
    """The samples of those of the ``runs``, by key, that ``board`` ranks, as they are scored here.

    If several runs of a model have a task, the newest is used. A track without a page of its own is
    on the page whose tables name its tasks. `DataError` if a run or a sample cannot be read when it
    is asked for.
    """
    known_tasks = load_specs().keys()
    benchmark_names = {benchmark.name for benchmark in board.benchmarks}
    scored_runs: dict[str, ScoredSamples] = {}
    samples: dict[tuple[str, str, str], Callable[[], Answers]] = {}
    for benchmark in board.benchmarks:
        track_tasks = _tasks_of_tables(benchmark)
        for model, key in _ranked_runs(board, benchmark, runs):
            if key not in scored_runs:
                scored_runs[key] = ScoredSamples(runs[key], store)
            for task in board.runs[key].counts.keys() & known_tasks:
                owner = load_spec(task).metadata.benchmark
                is_own = owner == benchmark.name
                is_track = owner not in benchmark_names and task in track_tasks
                if is_own or is_track:
                    samples[benchmark.name, task, model] = partial(scored_runs[key].of, task)
    return samples


def _ranked_runs(
    board: Board, benchmark: BenchmarkBoard, runs: Mapping[str, RunFolder]
) -> list[tuple[str, str]]:
    """The models and keys of the ``runs`` that the benchmark ranks, the newest last."""
    ranked: set[tuple[str, str]] = set()
    for table in benchmark.tables:
        for row in table.rows:
            ranked.update((row.model, key) for key in row.runs if key in runs)

    def age(model_and_key: tuple[str, str]) -> tuple[str, tuple[str, str]]:
        _, key = model_and_key
        return board.runs[key].created, model_and_key

    return sorted(ranked, key=age)


def _tasks_of_tables(benchmark: BenchmarkBoard) -> set[str]:
    """The tasks that the benchmark's tables name, with those of groups."""
    names = {column.task for table in benchmark.tables for column in table.columns}
    tasks: set[str] = set()
    for name in names & load_specs().keys():
        tasks.update(leaf_tasks(name))
    return tasks


def data_script(key: str, make: Callable[[], Any]) -> str:
    """A script that stores a value under ``key``: pages opened as files may load scripts, but not
    fetch data.

    The value is a JSON text in a string literal, both in ASCII: no text in it can end the literal,
    and no key (such as ``__proto__``) is special to JavaScript.
    """
    text = json.dumps(_shown(make()), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    name = _script_literal(key)
    literal = _script_literal(text)
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


def _script_literal(text: str) -> str:
    """A string literal of JavaScript without characters that are markup in HTML."""
    return _MARKUP.sub(_unicode_escape, json.dumps(text))


def _unicode_escape(markup: re.Match[str]) -> str:
    return f"\\u{ord(markup[0]):04x}"


def data_values(board: Board, samples: SampleText) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The keys of all scripts below ``data``, and functions that make their values: samples are
    read only then.
    """
    shows = {benchmark.name: benchmark.shows for benchmark in board.benchmarks}
    tasks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (benchmark, task), keys in groupby(sorted(samples), key=itemgetter(0, 1)):
        by_model = {model: samples[benchmark, task, model] for _, _, model in keys}
        place = f"samples/{safe_name(benchmark)}/{safe_name(task)}"
        task_samples = _TaskSamples(by_model, texts=shows[benchmark] != "nothing")
        for model in by_model:
            yield f"{place}/by-{model}", partial(task_samples.answers, model)
        yield f"{place}/questions", task_samples.questions
        tasks[benchmark].append({"task": task, "place": place, "models": list(by_model)})
    yield "index", partial(_index, board, tasks)

    reasons: dict[str, dict[str, list[str]]] = {slug: {} for slug in board.models}
    for result in not_comparable(board):
        if not result.blind:
            reasons[result.model.slug][result.benchmark.name] = list(result.reasons)
    for slug in sorted(board.models):
        yield f"model-{slug}", partial(_model_scores, board, slug, reasons[slug])


def _index(board: Board, tasks: Mapping[str, Any]) -> dict[str, Any]:
    """Models, and benchmarks with their columns and tasks."""
    models = {slug: facts.name for slug, facts in sorted(board.models.items())}
    benchmarks = [
        _indexed(benchmark, tasks.get(benchmark.name, [])) for benchmark in board.benchmarks
    ]
    return {"models": models, "benchmarks": benchmarks}


def _indexed(benchmark: BenchmarkBoard, tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
        "samples": tasks,
    }


def _column(column: BoardColumn, sub: str) -> dict[str, str]:
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


def _model_scores(board: Board, slug: str, apart: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Scores of runs with media, comparable ones first, signatures by their numbers, and the pairs
    in which the model comes first; ``apart`` says by benchmark why it is not comparable.
    """
    signatures: dict[str, int] = {}
    cells: dict[str, list[Any]] = {}
    pairs = {}
    for benchmark in board.benchmarks:
        for ranking in benchmark.rankings:
            own_pairs = [pair for pair in ranking.pairs if pair.first == slug]
            unit = ranking.column.unit
            pairs[ranking.column.key] = [_pair(pair, unit) for pair in own_pairs]
        for table in benchmark.tables:
            rows = [row for row in table.every_row if row.model == slug and not row.blind]
            for row, column in product(rows, table.columns):
                cell = row.cells.get(column.key)
                if cell is not None and column.key not in cells:
                    mark = signatures.setdefault(cell.signature, len(signatures))
                    cells[column.key] = _score(cell, column, mark)
    return {"cells": cells, "signatures": list(signatures), "pairs": pairs, "apart": apart}


def _score(cell: Cell, column: BoardColumn, mark: int) -> list[Any]:
    """A score: its text, interval and coverage, the number of its signature, why it is missing, and
    whether it is complete.
    """
    text = "" if cell.value is None else number(cell.value, column.unit)
    ends = interval(cell.low, cell.high, column.unit)
    details = [detail for detail in (ends, *coverage_notes(cell, column)) if detail]
    return [text, "; ".join(details), mark, cell.reason or "", not cell.incomplete]


def _pair(pair: Pair, unit: Unit) -> list[Any]:
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
    if value is None:
        return ""
    return difference(value, unit)


def _p_value_text(p_value: float | None) -> str:
    if p_value is None:
        return ""
    if p_value < 0.001:
        return "< 0.001"
    return f"{p_value:.3f}"


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
        """By sample the response, what was extracted, status and scores, and the place in ``doubts`` of
        what could not be verified of it.

        Texts that may not be shown are None. ``words`` has the text of each status.
        """
        answers = self._by_model[model]()
        samples = sorted(answers.samples, key=lambda sample: sample.sample_id)
        metrics = _metrics_with_values(samples)
        doubts: dict[str, int] = {}
        questions: dict[str, tuple[str, str]] = {}
        rows = []
        for sample in samples:
            if self._texts:
                questions[sample.sample_id] = (_question_text(sample), sample.target)
            response = _numbered_responses(sample) if self._texts else None
            extracted = self._extracted(sample)
            scores = [_rounded(sample.scores.get(metric)) for metric in metrics]
            row: list[Any] = [sample.sample_id, response, extracted, sample.status, scores]
            doubt = answers.verification.doubts(sample.sample_id)
            if doubt:
                row.append(doubts.setdefault(doubt, len(doubts)))
            rows.append(row)
        self._questions[model] = self._shared_questions(questions)
        statuses = {sample.status for sample in samples}
        words = {status: status_words(status) for status in sorted(statuses)}
        return {"metrics": metrics, "rows": rows, "doubts": list(doubts), "words": words}

    def _extracted(self, sample: Sample) -> str | None:
        """The extracted answer; None if it may not be shown, as it is no letter of an option."""
        if self._texts or sample.filtered in _options(sample):
            return sample.filtered
        return None

    def _shared_questions(
        self, questions: dict[str, tuple[str, str]]
    ) -> dict[str, tuple[str, str]]:
        """The questions; the same object for all models that answered the same ones, since a board may
        have a hundred.
        """
        for earlier in self._questions.values():
            if earlier == questions:
                return earlier
        return questions

    def questions(self) -> list[list[str]]:
        """Ids, questions (with their options) and references of all samples that any model
        answered.
        """
        all_questions: dict[str, tuple[str, str]] = {}
        for model in self._by_model:
            if model not in self._questions:
                self.answers(model)
            all_questions.update(self._questions[model])
        return [[name, question, target] for name, (question, target) in all_questions.items()]


def _metrics_with_values(samples: Sequence[Sample]) -> list[str]:
    metrics: set[str] = set()
    for sample in samples:
        metrics.update(metric for metric, value in sample.scores.items() if value is not None)
    return sorted(metrics)


def _options(sample: Sample) -> Mapping[str, Any]:
    """The options of a question by letter; empty for an open one."""
    choices = sample.document.get("choices")
    return choices if isinstance(choices, dict) else {}


def _question_text(sample: Sample) -> str:
    """The question with its options, a line each."""
    question = sample.document.get("question")
    lines = [question if isinstance(question, str) else sample.prompt]
    for letter, text in sorted(_options(sample).items()):
        lines.append(f"{letter}. {text}")
    return "\n".join(lines)


def _numbered_responses(sample: Sample) -> str:
    """The response; several, of repeats, are numbered."""
    if len(sample.responses) == 1:
        return sample.responses[0]
    numbered = []
    for place, text in enumerate(sample.responses, start=1):
        numbered.append(f"[response {place}] {text}")
    return "\n\n".join(numbered)


def _rounded(score: float | None) -> float | None:
    """A score with four significant digits."""
    return None if score is None else float(f"{score:.4g}")
