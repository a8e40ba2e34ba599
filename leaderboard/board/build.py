"""The board from scored runs: comparable runs are ranked, all others listed with the reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import medtasks
from medtasks.benchmarks.layout_parts import columns_of
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import BoardLayout
from medtasks.core.text import first_names
from medtasks.stats.bootstrap import CONFIDENCE

from ..intake.corrected_runs import CorrectedRuns
from ..rank.comparability import ComparabilityGroups
from ..rank.rankings import RESAMPLES, SEED
from ..schema.board import BenchmarkBoard, Board, BoardModel, BoardRun, Refused
from ..verify.conflicts import contradictions, same_responses
from ..verify.rejudging import Rejudged
from ..verify.scored_run import ScoredRun
from .benchmark_board import benchmark_board
from .corrected import corrected_notes
from .models import Models, distinct_names, model_facts
from .usage import Prices, cost_of


@dataclass(frozen=True)
class OrganiserFacts:
    """What the organiser of a board adds to its runs.

    ``models`` and ``prices`` are from files (`medtasks.leaderboard.board.models.read_by_model`);
    ``rejudged`` states how far verdicts agree with those that were asked for again, also for runs
    that are not on the board; ``corrected`` has the judged scores that people's labels correct.
    ``wrong_golds`` are the questions whose gold answers people found wrong, by task and sample id,
    sorted; ``gold_notes`` say which verdicts on gold answers are not used, and why.
    """

    models: Models = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)
    rejudged: Sequence[Rejudged] = ()
    corrected: CorrectedRuns = field(default_factory=CorrectedRuns)
    wrong_golds: Sequence[tuple[str, str]] = ()
    gold_notes: Sequence[str] = ()


def build_board(
    runs: Iterable[ScoredRun],
    refused: Iterable[Refused] = (),
    *,
    title: str,
    demonstration: bool = False,
    published: bool = True,
    organiser: OrganiserFacts | None = None,
    layouts: Iterable[BoardLayout] | None = None,
) -> Board:
    """The leaderboard of ``runs``.

    The order of the runs makes no difference, and duplicates are ignored.

    Args:
        runs: the scored runs.
        refused: directories that could not be read, and why.
        title: the board's heading.
        demonstration: rank runs on miniature data.
        published: show the figures of papers.
        organiser: what the organiser adds to the runs.
        layouts: what is shown of each benchmark; by default the installed ones.
    """
    organiser = organiser or OrganiserFacts()
    if layouts is None:
        layouts = all_layouts().values()
    distinct_runs = _distinct_runs(runs)
    groups = ComparabilityGroups(distinct_runs, demonstration=demonstration)
    models = _board_models(distinct_runs, organiser.models)
    benchmarks: list[BenchmarkBoard] = []
    for layout in layouts:
        if _has_scores(layout, distinct_runs):
            benchmark = benchmark_board(
                layout,
                distinct_runs,
                groups,
                models,
                organiser.prices,
                published=published,
                corrected=organiser.corrected.by_digest,
                wrong_golds=organiser.wrong_golds,
                gold_notes=organiser.gold_notes,
            )
            benchmarks.append(benchmark)
    board_runs = _board_runs(distinct_runs, groups, benchmarks, organiser)
    return Board(
        title=title,
        medtasks=medtasks.__version__,
        latest=max((run.public.created for run in distinct_runs), default=None),
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        seed=SEED,
        demonstration=demonstration,
        models=models,
        runs={run.key: run for run in board_runs},
        benchmarks=tuple(benchmarks),
        refused=tuple(sorted(refused, key=lambda entry: (entry.folder, entry.reason))),
        human_notes=tuple(_human_notes(organiser)),
    )


def _human_notes(organiser: OrganiserFacts) -> Iterator[str]:
    """Which labels and verdicts of people are not used; those of runs on the board are in the notes
    on the run.
    """
    for note in organiser.corrected.unused:
        yield f"labels of answers: {note}"
    for note in organiser.gold_notes:
        yield f"verdicts on gold answers: {note}"


def _distinct_runs(runs: Iterable[ScoredRun]) -> list[ScoredRun]:
    """The runs, oldest first; of runs with the same content the one whose folder sorts last."""
    by_folder = sorted(runs, key=lambda run: run.public.folder)
    by_key = {run.public.key: run for run in by_folder}
    return sorted(by_key.values(), key=lambda run: (run.public.created, run.public.key))


def _board_models(runs: Sequence[ScoredRun], described: Models) -> dict[str, BoardModel]:
    """The models of the runs, by slug, with distinct names."""
    by_slug: dict[str, BoardModel] = {}
    for run in runs:
        # facts are from the newest run, training data from all
        model = model_facts(run.public, described)
        if model.slug in by_slug:
            model = _with_training(model, by_slug[model.slug])
        by_slug[model.slug] = model
    facts = {run.public.model: run.public.model_facts for run in runs}
    names = distinct_names({slug: model.name for slug, model in by_slug.items()}, facts)
    renamed = {}
    for slug, model in sorted(by_slug.items()):
        renamed[slug] = model.model_copy(update={"name": names[slug]})
    return renamed


def _with_training(model: BoardModel, earlier: BoardModel) -> BoardModel:
    """The model, with what an earlier run of it states on its training data."""
    trained = {**earlier.trained, **model.trained}
    trained_on = {**earlier.trained_on, **model.trained_on}
    # a run without the record does not undo what another states
    trained |= dict.fromkeys(trained_on, "yes")
    return model.model_copy(update={"trained": trained, "trained_on": trained_on})


def _has_scores(layout: BoardLayout, runs: Iterable[ScoredRun]) -> bool:
    """Whether a run has a score of the layout's benchmark, or of a task in one of its columns."""
    tasks = {column.task for column in columns_of(layout)}  # its own, or of another track
    for run in runs:
        for entry in run.entries.values():
            if entry.benchmark == layout.benchmark or entry.name in tasks:
                return True
    return False


def _board_runs(
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    benchmarks: Sequence[BenchmarkBoard],
    organiser: OrganiserFacts,
) -> Iterator[BoardRun]:
    """Every run, sorted, with its cost and notes on what is not shown."""
    on_board = _runs_in_tables(benchmarks)
    replaced = _replaced_runs(groups, benchmarks)
    copies = same_responses(runs)
    contradicted = contradictions(runs)
    board_runs = [run.public for run in runs]
    for run in sorted(board_runs, key=lambda run: run.key):
        notes = []
        for newer, tasks in sorted(replaced.get(run.key, {}).items()):
            notes.append(f"superseded by {newer} in {', '.join(sorted(tasks))}")
        if not notes and run.key not in on_board:
            notes.append("none of its scores is on this board: no page shows its tasks")
        notes += corrected_notes(organiser.corrected, run.digest)
        notes += _conflict_notes(copies.get(run.key, {}), contradicted.get(run.key, {}))
        rejudged: dict[str, str] = {}
        for record in organiser.rejudged:
            if record.run == run.digest:
                rejudged[record.rubric] = str(record)
        yield run.model_copy(
            update={
                "notes": (*run.notes, *notes),
                "cost": cost_of(organiser.prices, run, run.usage),
                "rejudged": rejudged,
            }
        )


def _runs_in_tables(benchmarks: Sequence[BenchmarkBoard]) -> set[str]:
    """The keys of the runs that have a row in a table."""
    keys: set[str] = set()
    for benchmark in benchmarks:
        for table in benchmark.tables:
            for row in table.every_row:
                keys.update(row.runs)
    return keys


def _replaced_runs(
    groups: ComparabilityGroups, benchmarks: Sequence[BenchmarkBoard]
) -> dict[str, dict[str, set[str]]]:
    """By run, the runs that count instead of it, with the tasks."""
    scores: set[tuple[str, str]] = set()
    for benchmark in benchmarks:
        for table in benchmark.tables:
            scores.update((column.task, column.metric) for column in table.columns)
    replaced: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for task, metric in scores:
        for old, new in groups.of(task, metric).replaced.items():
            replaced[old][new].add(task)
    return replaced


def _conflict_notes(
    copies: Mapping[str, Sequence[str]], contradicted: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Notes on other runs with a run's responses, and on those with other documents, by tasks."""
    for run, tasks in sorted(copies.items()):
        yield f"same responses as {run}, a run of another model, in {', '.join(tasks)}"
    for run, tasks in sorted(contradicted.items()):
        yield (
            f"other questions or gold answers than {run}, which claims the same data, "
            f"in {first_names(tasks)}"
        )
