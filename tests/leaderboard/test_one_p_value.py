"""Whoever asks how two runs differ gets the same answer: ``score --against``, ``compare``, and the leaderboard."""

from __future__ import annotations

from functools import cache

import pytest
from invented_runs import Invented, make_run
from medtasks.leaderboard.board.board import BoardColumn, Pair
from medtasks.leaderboard.rank.compare import Line, compare_runs
from medtasks.leaderboard.rank.rankings import rank_models
from medtasks.leaderboard.verify.scored_run import ScoredRun

from medtasks.metrics.registry import get_metric, unit_of
from medtasks.runs.comparisons import Paired, same_tasks
from medtasks.runs.record import RunRecord
from medtasks.stats.paired import PairedDifference
from medtasks.verify.scored import scored_record

TASKS = ("mi_cxr_icr", "kvasir_vqa_x1_level1", "medstreambench_proactive", "med_cmr_mcq_cr")


@cache
def records() -> tuple[RunRecord, RunRecord]:
    models = (Invented("lab/Careful", "noisy_oracle", seed=1, accuracy=0.8), Invented("lab/Guess", "uniform", seed=3))
    first, second = (make_run(model, list(TASKS)) for model in models)
    return first, second


@cache
def digests() -> tuple[ScoredRun, ScoredRun]:
    first, second = (
        ScoredRun.of(scored_record(record.manifest, record.samples), f"run{number}")
        for number, record in enumerate(records())
    )
    return first, second


@cache
def against() -> dict[str, Paired]:
    return same_tasks(*(record.tables for record in records()))


@cache
def lines() -> dict[tuple[str, str], Line]:
    return {(line.task, line.metric): line for line in compare_runs(*digests()).lines}


def on_the_board(task: str, metric: str) -> Pair:
    entries = [digest.entries[task] for digest in digests()]
    assert entries[0].items == entries[1].items
    column = BoardColumn(key="c", task=task, metric=metric, label=metric, unit=unit_of(metric),
                         higher_is_better=get_metric(metric).higher_is_better)  # fmt: skip
    tables = {name: entry.statistics[metric] for name, entry in zip(("first", "second"), entries, strict=True)}
    (pair,) = rank_models(column, tables, entries[0].clusters, cluster="c", signature="s", resamples=20).pairs
    return pair


@pytest.mark.parametrize("task", TASKS)
def test_one_question_has_one_number(task: str) -> None:
    found = against()[f"{task} (both)"].metrics
    assert found
    seen = 0
    for metric, score in found.items():
        line = lines()[task, metric]
        assert line.pair is not None
        assert same(score, line)
        pair = on_the_board(task, metric)
        sign = 1 if pair.first == "first" else -1
        assert (sign * pair.difference, pair.p_value) == (score.difference, score.p_value)
        assert (pair.items, pair.clusters, pair.warning) == (score.items, score.clusters, score.warning)
        seen += score.p_value not in (None, 1.0)
    assert seen


def same(score: PairedDifference, line: Line) -> bool:
    pair = line.pair
    assert pair is not None
    ends = None if pair.low is None or pair.high is None else (pair.low, pair.high)
    told = line.first, line.second, pair.difference, ends, pair.p_value, pair.items, pair.clusters
    return told == (
        score.first, score.second, score.difference, score.interval, score.p_value, score.items, score.clusters
    )  # fmt: skip
