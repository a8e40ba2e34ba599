"""The board from scored runs: comparable runs are ranked, all others listed with the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import medtasks
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import BoardLayout
from medtasks.stats.bootstrap import CONFIDENCE

from ..rank.comparability import ComparabilityGroups, same_responses
from ..rank.over_models import with_models
from ..rank.rankings import SEED
from ..verify.rejudging import Rejudged
from ..verify.scored_run import ScoredRun
from .benchmark_board import benchmark_board, is_shown
from .board import BenchmarkBoard, Board, BoardModel, BoardRun, Refused
from .models import Models, distinct_names, model_facts
from .usage import Prices, cost_of

RESAMPLES = 1000


def build_board(
    runs: Iterable[ScoredRun],
    refused: Iterable[Refused] = (),
    *,
    title: str,
    models: Models | None = None,
    demonstration: bool = False,
    published: bool = True,
    prices: Prices | None = None,
    rejudged: Sequence[Rejudged] = (),
    resamples: int = RESAMPLES,
    layouts: Iterable[BoardLayout] | None = None,
) -> Board:
    """The leaderboard of the runs; their order makes no difference.

    Args:
        runs: of the result directories (`medtasks.leaderboard.intake.collect`); duplicates are ignored.
        refused: directories that could not be read, and why.
        title: the board's heading.
        models: the organiser's facts about models (`medtasks.leaderboard.board.models.read_by_model`).
        demonstration: rank runs on miniature data too.
        published: show the papers' figures.
        prices: of models, as ``models``; without them there are no costs.
        rejudged: how far verdicts agree with those asked again, of any runs.
        resamples: number of resamples for rank intervals.
        layouts: what is shown of each benchmark; by default the installed ones.

    Raises:
        UsageError: a run's items and statistics do not match.
    """
    by_key = {run.public.key: run for run in sorted(runs, key=lambda run: (run.public.key, run.public.folder))}
    runs = sorted(by_key.values(), key=lambda run: (run.public.created, run.public.key))
    groups = ComparabilityGroups(runs, demonstration=demonstration)
    known = _models(runs, models)
    boards = tuple(
        with_models(
            benchmark_board(layout, runs, groups, published=published, resamples=resamples, prices=prices), known
        )
        for layout in (all_layouts().values() if layouts is None else layouts)
        if is_shown(layout, runs)
    )
    return Board(
        title=title,
        medtasks=medtasks.__version__,
        latest=max((run.public.created for run in runs), default=None),
        confidence=CONFIDENCE,
        resamples=resamples,
        seed=SEED,
        demonstration=demonstration,
        models=known,
        runs={facts.key: facts for facts in _runs(runs, groups, boards, prices or {}, rejudged)},
        benchmarks=boards,
        refused=tuple(sorted(refused, key=lambda one: (one.folder, one.reason))),
    )


def _models(runs: Sequence[ScoredRun], models: Models | None) -> dict[str, BoardModel]:
    """Models by slug, with distinct names; facts are from the newest run, training data from all."""
    found: dict[str, BoardModel] = {}
    for run in runs:
        facts = model_facts(run.public, models)
        trained = {**found[facts.slug].trained, **facts.trained} if facts.slug in found else facts.trained
        found[facts.slug] = facts.model_copy(update={"trained": trained})
    model_facts_of = {run.public.model: run.public.model_facts for run in runs}
    names = distinct_names({slug: facts.name for slug, facts in found.items()}, model_facts_of)
    return {slug: facts.model_copy(update={"name": names[slug]}) for slug, facts in sorted(found.items())}


def _runs(
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    boards: Sequence[BenchmarkBoard],
    prices: Prices,
    rejudged: Sequence[Rejudged],
) -> list[BoardRun]:
    """Every run, sorted, with its cost and notes on what is not shown."""
    tables = [table for board in boards for table in board.tables]
    shown = {key for table in tables for row in (*table.rows, *(one.row for one in table.apart)) for key in row.runs}
    columns = {(column.task, column.metric) for table in tables for column in table.columns}
    instead: dict[str, dict[str, set[str]]] = {}
    for task, metric in sorted(columns):
        for old, new in groups.of(task, metric).replaced.items():
            instead.setdefault(old, {}).setdefault(new, set()).add(task)
    copies = same_responses(runs)
    found = []
    for run in runs:
        key = run.public.key
        notes = []
        for new, tasks in sorted(instead.get(key, {}).items()):
            notes.append(f"superseded by {new} in {', '.join(sorted(tasks))}")
        if not notes and key not in shown:
            notes.append("none of its scores is on this board: no page shows its tasks")
        for other, same in sorted(copies.get(key, {}).items()):
            notes.append(f"same responses as {other}, a run of another model, in {', '.join(same)}")
        cost = cost_of(prices, run.public, run.public.usage)
        again = {one.rubric: str(one) for one in rejudged if one.run == run.public.digest}
        told = {"notes": (*run.public.notes, *notes), "cost": cost, "rejudged": again}
        found.append(run.public.model_copy(update=told))
    return sorted(found, key=lambda facts: facts.key)
