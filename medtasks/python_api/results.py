"""What the commands compute of runs, as objects: comparisons, ranks, plans, boards and their
figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tqdm import tqdm

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.benchmark import BoardLayout, Column
from medtasks.catalog.spec import load_spec
from medtasks.core.cache import cache_root
from medtasks.core.errors import MachineError, MedtasksError, UsageError, first_line
from medtasks.core.files import replaced
from medtasks.core.text import TextTable, first_names
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.board.findings import finding
from medtasks.leaderboard.board.models import Described, read_by_model
from medtasks.leaderboard.board.usage import Price
from medtasks.leaderboard.exports.latex_tables import as_latex
from medtasks.leaderboard.exports.methods import methods_latex, methods_markdown, references_of
from medtasks.leaderboard.exports.tables import as_markdown
from medtasks.leaderboard.figures.plots import Figure, figures_of
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.rank.compare import compare_runs
from medtasks.leaderboard.rank.comparison import Comparison
from medtasks.leaderboard.rank.plan_basis import ICC
from medtasks.leaderboard.rank.planning import SHARES, Plan, default_metric, plan_task
from medtasks.leaderboard.schema.board import FORMATS, Ranking, Refused
from medtasks.leaderboard.schema.board import Board as BoardData
from medtasks.leaderboard.schema.numbers import column_note, interval, number
from medtasks.leaderboard.verify.scored_run import RunStore, ScoredRun
from medtasks.python_api.runs import Run, Runs, open, scored_of

AnyRun: TypeAlias = Run | ScoredRun | str | Path
"""A run, or the path of a directory that contains one."""
AnyRuns: TypeAlias = Runs | Sequence[Run | str | Path] | str | Path
"""Runs, or paths of directories that contain some."""


def compare(
    first: AnyRun,
    second: AnyRun,
    *,
    task: str | None = None,
    metric: str | None = None,
    progress: Any = None,
) -> Comparison:
    """The comparison of two runs item by item, as ``medtasks compare`` prints it.

    Args:
        first: a run, or a directory that contains one.
        second: another.
        task: only this task or group.
        metric: only this metric.
        progress: called with (done, total).

    Raises:
        UsageError: the runs have no task in common, or lack ``task`` or ``metric``.
        MedtasksError: a run cannot be read.
    """
    return compare_runs(
        scored_of(first), scored_of(second), task=task, metric=metric, progress=progress
    )


def plan(
    task: str,
    metric: str | None = None,
    *,
    pilots: Sequence[AnyRun] = (),
    score: float | None = None,
    icc: float = ICC,
    difference: float | None = None,
    shares: Sequence[float] = SHARES,
) -> Plan:
    """The minimum detectable differences of subsets of a task or group, as ``medtasks plan`` prints
    them.

    Arguments and errors are those of `medtasks.leaderboard.rank.planning.plan_task`.
    """
    scored = [scored_of(pilot) for pilot in pilots]
    return plan_task(
        task, metric, scored, score=score, icc=icc, difference=difference, shares=shares
    )


@dataclass(frozen=True)
class Ranks:
    """The models ranked by one score, best first, with the board's ``ranking`` and what it shows in
    a sentence.
    """

    ranking: Ranking
    finding: str
    table: TextTable

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def rank(
    runs: AnyRuns, task: str, metric: str | None = None, *, demonstration: bool | None = None
) -> Ranks:
    """The models of comparable runs ranked by one score, as on a board: values, rank intervals,
    groups, all pairs.

    Args:
        runs: runs, or directories that contain some.
        task: a task or group.
        metric: by default the first headline score.
        demonstration: rank runs on miniature data; by default if there are any.

    Raises:
        UsageError: there is no such task or metric, or no run to rank by it.
    """
    metric = metric or default_metric(task)
    benchmark = load_spec(task).metadata.benchmark
    headline: Sequence[Column] = getattr(all_layouts().get(benchmark), "headline", ())
    label = next(
        (one.label for one in headline if (one.task, one.metric) == (task, metric)), metric
    )
    layout = BoardLayout(benchmark, headline=(Column(task, metric, label),))
    made = board(runs, demonstration=demonstration, published=False, layouts=[layout])
    tables = [one.tables[0] for one in made.benchmarks]
    rankings = [ranking for one in made.benchmarks for ranking in one.rankings]
    if not rankings:
        reasons = [one.reason for one in made.refused]
        reasons += [reason for table in tables for row in table.apart for reason in row.reasons]
        raise UsageError(
            f"{task}, {metric}: no run can be ranked ({first_names(reasons) or 'none has this score'})."
        )
    (ranking,) = rankings
    cells = {row.model: row.cells[ranking.column.key] for row in tables[0].rows}
    rows = []
    for one in ranking.ranked:
        cell, unit = cells[one.model], ranking.column.unit
        ends = "" if one.best is None else f"{one.best}–{one.worst}"
        value = "" if cell.value is None else number(cell.value, unit)
        name, letters = made.models[one.model].name, ", ".join(one.letters)
        rows.append(
            (f"{one.rank}", ends, name, value, interval(cell.low, cell.high, unit), letters)
        )
    notes = [finding(ranking, made.models, cells)]
    notes += [
        f"not ranked: {made.models[model].name} ({reason})"
        for model, reason in ranking.unranked.items()
    ]
    columns = (
        "rank",
        "95 % interval",
        "model",
        f"{label} ({column_note(ranking.column)})",
        "95 % interval",
        "group",
    )
    return Ranks(ranking, notes[0], TextTable(columns, rows, f"{task}, {metric}", notes))


class Board(BoardData):
    """A leaderboard as data, the content of ``board.json``; a notebook shows its headline
    tables.
    """

    def latex(self, benchmark: str, table: str = "headline", *, intervals: bool = True) -> str:
        """A table of a benchmark in LaTeX (``booktabs``), as the board's own exports, with
        intervals or without.

        Raises:
            UsageError: the board has no such table; the message lists those that it has.
        """
        known = {
            f"{content.name} of {one.name}": (one, content)
            for one in self.benchmarks
            for content in one.tables
        }
        if found := known.get(f"{table} of {benchmark}"):
            return str(as_latex(self, *found, intervals=intervals))
        raise UsageError(
            f"table {table} of {benchmark}: not on this board, which has {first_names(known, 12)}."
        )

    def methods(
        self, benchmark: str, form: Literal["markdown", "latex", "bibtex"] = "markdown"
    ) -> str:
        """How the headline scores of a benchmark were made, for the methods section of a paper.

        Args:
            benchmark: the name of a benchmark on this board.
            form: the text in Markdown or LaTeX, or the BibTeX entries that it cites.

        Raises:
            UsageError: the board has no such benchmark, or there is no such form.
        """
        makers = {"markdown": methods_markdown, "latex": methods_latex, "bibtex": references_of}
        if form not in makers:
            raise UsageError(f"form is {form!r}, expected one of {', '.join(makers)}.")
        known = {one.name: one for one in self.benchmarks}
        if benchmark not in known:
            listed = first_names(known, 12) or "none"
            raise UsageError(f"benchmark {benchmark}: not on this board, which has {listed}.")
        return str(makers[form](self, known[benchmark]))

    def _repr_markdown_(self) -> str:
        return "\n".join(as_markdown(self, one, one.tables[0]) for one in self.benchmarks)


def board(
    runs: AnyRuns,
    *,
    title: str = "medtasks leaderboard",
    models: str | Path | None = None,
    demonstration: bool | None = None,
    published: bool = True,
    prices: str | Path | None = None,
    layouts: Sequence[BoardLayout] | None = None,
) -> Board:
    """The leaderboard of runs, as ``medtasks leaderboard build`` writes it.

    Args:
        runs: runs, or directories that contain some. Unfinished ones are refused.
        title: the board's heading.
        models: the file of models.
        demonstration: rank runs on miniature data; by default if there are any.
        published: show the papers' figures.
        prices: the file of prices.
        layouts: what is shown of each benchmark; by default the installed ones.

    Raises:
        UsageError: there is no run.
        DataError: the file of models or prices cannot be read.
        MachineError: this machine is at fault, for example because its prepared data are damaged.
    """
    given = [runs] if isinstance(runs, str | Path) else [*runs]
    chosen = [run for run in given if isinstance(run, Run)]
    if paths := [path for path in given if not isinstance(path, Run)]:
        chosen += open(paths)
    scored: list[ScoredRun] = []
    refused: list[Refused] = []
    for run in chosen:
        if run.unfinished:
            refused.append(Refused(folder=run.name, reason="it is unfinished: repeat its command"))
        elif run._load is not None:
            try:
                scored.append(run.scored)
            except MachineError:
                raise
            except MedtasksError as error:
                refused.append(Refused(folder=run.name, reason=first_line(error)))
    finished = [run.path for run in chosen if run._load is None and run.path is not None]
    if finished:
        with tqdm(
            desc="reading results", delay=2, leave=False
        ) as bar:  # none for work done within two seconds

            def update(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            read, unread = collect(finished, RunStore(cache_root() / "scores"), update)
        scored, refused = [*read, *scored], [*refused, *unread]
    made = build_board(
        scored,
        refused,
        title=title,
        models=None if models is None else read_by_model(Path(models), Described),
        demonstration=any(one.public.mini for one in scored)
        if demonstration is None
        else demonstration,
        published=published,
        prices=None if prices is None else read_by_model(Path(prices), Price),
        layouts=layouts,
    )
    return Board(**{name: getattr(made, name) for name in type(made).model_fields})


@dataclass(frozen=True)
class Picture:
    """A figure of a board: its ``name`` there, and ``alt``, what it shows in words."""

    name: str
    alt: str
    _board: Board = field(repr=False)
    _figure: Figure = field(repr=False)

    def draw(self, kind: str) -> bytes:
        """The content of a file in a format: svg, png or pdf."""
        from medtasks.leaderboard.figures.draw import draw  # matplotlib takes a second to import

        content: bytes = draw(self._board, self._figure, (kind,))[kind]
        return content

    def save(self, path: str | Path) -> Path:
        """Write the figure as SVG, PNG or PDF, by the file's suffix.

        Raises:
            UsageError: the suffix is another.
        """
        target = Path(path)
        kind = target.suffix.removeprefix(".")
        if kind not in FORMATS:
            found = kind or "a file without a suffix"
            raise UsageError(f"a figure is written as {', '.join(FORMATS)}, not as {found}.")
        content = self.draw(kind)
        with replaced(target) as partial:
            partial.write_bytes(content)
        return target

    def _repr_svg_(self) -> str:
        return self.draw("svg").decode()


def plot(board: Board, name: str | None = None, benchmark: str | None = None) -> Picture:
    """One figure of a board, such as bars of scores or a score against its cost.

    Args:
        board: made by :func:`board`.
        name: of the figure; by default the first.
        benchmark: by default the first that has the figure.

    Raises:
        UsageError: there is no such figure; the message lists those of the board.
    """
    known = [
        (one.name, plot, figure)
        for one in board.benchmarks
        for plot, figure in figures_of(board, one).items()
    ]
    fitting = [one for one in known if benchmark in (None, one[0]) and name in (None, one[1])]
    if not fitting:
        near = [one for one in known if benchmark == one[0]] or known
        listed = first_names((f"{plot} of {of}" for of, plot, _ in near), 12) or "none"
        raise UsageError(
            f"plot {name or ''} of {benchmark or 'any benchmark'}: not on this board, which has {listed}."
        )
    figure = fitting[0][2]
    return Picture(figure.plot.name, figure.alt, board, figure)
