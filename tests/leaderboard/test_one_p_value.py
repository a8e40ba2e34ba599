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
from medtasks.verify.scored import scored_record

TASKS = ("mi_cxr_icr", "kvasir_vqa_x1_level1", "medstreambench_proactive", "med_cmr_mcq_cr")


@cache
def answers() -> tuple[dict[str, Paired], dict[tuple[str, str], Line], list[ScoredRun]]:
    """How two runs differ: by ``score --against``, and by ``compare``; last the runs."""
    models = (Invented("lab/Careful", "noisy_oracle", seed=1, accuracy=0.8), Invented("lab/Guess", "uniform", seed=3))
    records = [make_run(model, list(TASKS)) for model in models]
    runs = [ScoredRun.of(scored_record(one.manifest, one.samples), f"run{n}") for n, one in enumerate(records)]
    lines = {(line.task, line.metric): line for line in compare_runs(*runs).lines}
    return same_tasks(*(record.tables for record in records)), lines, runs


def on_the_board(task: str, metric: str) -> Pair:
    entries = [run.entries[task] for run in answers()[2]]
    assert entries[0].items == entries[1].items
    column = BoardColumn(key="c", task=task, metric=metric, label=metric, unit=unit_of(metric),
                         higher_is_better=get_metric(metric).higher_is_better)  # fmt: skip
    tables = {name: entry.statistics[metric] for name, entry in zip(("first", "second"), entries, strict=True)}
    (pair,) = rank_models(column, tables, entries[0].clusters, cluster="c", signature="s", resamples=20).pairs
    return pair


@pytest.mark.parametrize("task", TASKS)
def test_one_question_has_one_number(task: str) -> None:
    against, lines, _ = answers()
    found = against[f"{task} (both)"].metrics
    for metric, score in found.items():
        line, pair = lines[task, metric], on_the_board(task, metric)
        assert line.pair is not None
        for one in (line.pair, pair):
            assert (one.items, one.clusters, one.p_value) == (score.items, score.clusters, score.p_value)
        assert (line.first, line.second) == (score.first, score.second)
        assert (line.pair.difference, line.pair.low, line.pair.high) == (score.difference, score.low, score.high)
        assert (1 if pair.first == "first" else -1) * pair.difference == score.difference
        assert pair.warning == score.warning
    assert any(score.p_value not in (None, 1.0) for score in found.values())
