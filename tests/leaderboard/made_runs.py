"""Digests made by hand: a run's statistics as arrays, its scores computed of them, signatures as a
test wants them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.schema.board import BenchmarkBoard, Board, BoardRun
from medtasks.leaderboard.schema.score_tables import BoardRow
from medtasks.leaderboard.verify.claimed_latency import NO_LATENCY
from medtasks.leaderboard.verify.entries import Entry
from medtasks.leaderboard.verify.protocols import protocols_today
from medtasks.leaderboard.verify.scored_run import ScoredRun

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.runs.manifest import DataFacts, RunManifest
from medtasks.runs.run_signatures import versions_today
from medtasks.runs.signature import format_signature
from medtasks.scoring.columns import ItemState, MetricColumn
from medtasks.scoring.group_scores import score_table
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.latency import RunLatency
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import Letters

CLUSTERS = tuple(f"p{number // 4:03d}" for number in range(240))
ITEMS = tuple(f"q{number:03d}" for number in range(240))


def right(share: float, seed: int) -> np.ndarray:
    """Right and wrong answers to 240 questions about 60 patients, some of whom are harder than
    others.
    """
    draw = np.random.default_rng(seed)
    ease = draw.normal(0, 0.15, 60).repeat(4)
    return np.column_stack([draw.random(240) < np.clip(share + ease, 0, 1), np.ones(240)]).astype(
        np.float64
    )


def signed(metric: str, task: str, **changes: str | None) -> str:
    """A signature of a score by today's task files; a part is changed by name, or left out by
    None.
    """
    versions = versions_today(leaf_tasks(task))
    parts = {
        "metric": metric,
        "task": task,
        **versions,
        "protocol": "p0",
        "data": "d0",
        "items": "240-i0",
    }
    return format_signature(
        {key: value for key, value in {**parts, **changes}.items() if value is not None}
    )


def entry(
    task: str,
    tables: Mapping[str, np.ndarray],
    *,
    clusters: Sequence[str] = CLUSTERS,
    breakdowns: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
    letters: Letters | None = None,
    timelines: tuple[Any, ...] = (),
    **changes: str | None,
) -> Entry:
    """An entry of a run; ``breakdowns`` maps a group to its rows, ``changes`` change its
    signatures.

    Rows of NaN in a table await a judge.
    """
    count, benchmark = len(clusters), load_spec(task).benchmark
    unjudged = {name: np.isnan(one).any(axis=1) for name, one in tables.items()}
    limits = np.tile([[0.0, 1.0], [1.0, 1.0]], (count, 1, 1))
    table = ItemTable(
        benchmark,
        metrics=tuple(tables),
        breakdowns=tuple(breakdowns or {}),
        items=ITEMS[:count],
        tasks=(task,) * count,
        clusters=tuple(clusters),
        samples=tuple((item,) for item in ITEMS[:count]),
        complete=np.ones(count, dtype=bool),
        groups={
            name: tuple(
                tuple(key for key, members in one.items() if row in members) for row in range(count)
            )
            for name, one in (breakdowns or {}).items()
        },
        columns={
            name: MetricColumn(
                one,
                np.where(unjudged[name], ItemState.AWAITING, ItemState.PRESENT),
                limits if unjudged[name].any() else None,
            )
            for name, one in tables.items()
        },
        statuses=(("ok",),) * count,
        target=tuple(
            (benchmark.options or "A")[row % max(1, len(benchmark.options))] for row in range(count)
        ),
        chosen=("A",) * count,
        options=(len(benchmark.options),) * count,
    )
    scores = score_table(table, threshold=0).model_copy(update={"letters": letters})
    return Entry(
        task, scores, table, {name: signed(name, task, **changes) for name in tables}, timelines
    )


def facts(model: str, key: str | None = None, **changes: Any) -> BoardRun:
    """Facts of a run of ``model``; of ``created`` the order of its key's runs follows."""
    empty = ("versions", "settings", "generation", "protocols", "prompts", "judges", "counts")
    plain: dict[str, Any] = {
        **{name: {} for name in empty},
        "key": key or f"run-{model}",
        "folder": "20261101_000000_medtasks",
        "digest": "0" * 64,
        "created": "2026-11-01T00:00:00+00:00",
        "model": model,
        "model_facts": {"name": f"lab/{model}"},
        "data": {"mi_cxr": "d0"},
        "commands": (),
        "mini": False,
    }
    return BoardRun.model_validate({**plain, **changes})


def run(
    model: str,
    entries: Sequence[Entry],
    key: str | None = None,
    *,
    blind: bool = False,
    complete: bool = True,
    prepared: dict[str, DataFacts] | None = None,
    latency: RunLatency = NO_LATENCY,
    **more: Any,
) -> ScoredRun:
    """A run, by today's task files where ``protocols`` does not say another."""
    tasks = [leaf for one in entries for leaf in leaf_tasks(one.name)]
    protocols = {task: sorted(protocols_today(task))[0] for task in tasks}
    empty: dict[str, Any] = {
        name: {} for name in ("versions", "model", "settings", "tasks", "groups")
    }
    scores = {one.name: one.scores for one in entries}
    manifest = RunManifest(created="", processes=1, data=prepared or {}, **empty)
    found = ScoredRun(RunRecord(manifest, {}, scores, {}), latency=latency)
    found.__dict__.update(  # what follows from the manifest of a real run
        public=facts(model, key, **{"protocols": protocols, "latency": latency, **more}),
        model=model,
        blind=blind,
        entries={one.name: one for one in entries},
        complete={one.name: complete for one in entries},
    )
    return found


KEY = "mi_cxr.accuracy"


def cxr(share: float, seed: int, **changes: Any) -> Any:
    return entry("mi_cxr", {"accuracy": right(share, seed)}, **changes)


def board(*runs: ScoredRun, **options: Any) -> Board:
    return build_board(runs, title="Made by hand", **{"published": False, **options})


def page(*runs: ScoredRun, **options: Any) -> BenchmarkBoard:
    (found,) = board(*runs, **options).benchmarks
    return found


def ranked(found: BenchmarkBoard, number: int = 0) -> list[str]:
    return [one.model for one in found.rankings[number].ranked]


def apart(found: BenchmarkBoard) -> dict[str, BoardRow]:
    return {one.runs[0]: one for one in found.tables[0].apart}


GOOD, FAIR, POOR = (run(name, [cxr(share, seed)]) for seed, (name, share) in enumerate(
    [("good", 0.8), ("fair", 0.6), ("poor", 0.3)]
))  # fmt: skip
