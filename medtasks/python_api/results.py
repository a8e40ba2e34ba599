"""What the commands compute of runs, as objects: comparisons, plans, ranks, boards, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tqdm import tqdm

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import BoardLayout, Column
from medtasks.catalog.spec import load_spec
from medtasks.core.cache import cache_root
from medtasks.core.errors import MachineError, MedtasksError, UsageError, first_line
from medtasks.core.replacement import replaced
from medtasks.core.text import TextTable, first_names
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.board.findings import finding
from medtasks.leaderboard.board.models import Described, read_by_model
from medtasks.leaderboard.board.usage import Price
from medtasks.leaderboard.exports.latex_tables import as_latex
from medtasks.leaderboard.exports.markdown_tables import as_markdown
from medtasks.leaderboard.exports.methods import methods_latex, methods_markdown, references_of
from medtasks.leaderboard.figures.figure import Figure
from medtasks.leaderboard.figures.plots import figures_of
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.rank.compare import compare_runs
from medtasks.leaderboard.rank.comparison import Comparison
from medtasks.leaderboard.rank.plan_basis import ICC
from medtasks.leaderboard.rank.planning import SHARES, Plan, default_metric, plan_task
from medtasks.leaderboard.schema.board import FORMATS, Cell, Ranking, Refused
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
    label = _headline_label(task, metric)
    benchmark = load_spec(task).metadata.benchmark
    layout = BoardLayout(benchmark, headline=(Column(task, metric, label),))
    made = board(runs, demonstration=demonstration, published=False, layouts=[layout])
    tables = [page.tables[0] for page in made.benchmarks]
    rankings = [ranking for page in made.benchmarks for ranking in page.rankings]
    if not rankings:
        reasons = [refused.reason for refused in made.refused]
        for table in tables:
            for row in table.apart:
                reasons += row.reasons
        why = first_names(reasons) or "none has this score"
        raise UsageError(f"{task}, {metric}: no run can be ranked ({why}).")
    (ranking,) = rankings
    cells = {row.model: row.cells[ranking.column.key] for row in tables[0].rows}
    notes = [finding(ranking, made.models, cells)]
    for model, reason in ranking.unranked.items():
        notes.append(f"not ranked: {made.models[model].name} ({reason})")
    columns = (
        "rank",
        "95 % interval",
        "model",
        f"{label} ({column_note(ranking.column)})",
        "95 % interval",
        "group",
    )
    rows = _rank_rows(ranking, made, cells)
    return Ranks(ranking, notes[0], TextTable(columns, rows, f"{task}, {metric}", notes))


def _headline_label(task: str, metric: str) -> str:
    """What the board of the task's benchmark calls the score; its metric if it does not show it."""
    layout = all_layouts().get(load_spec(task).metadata.benchmark)
    if layout is not None:
        for column in layout.headline:
            if (column.task, column.metric) == (task, metric):
                return column.label
    return metric


def _rank_rows(
    ranking: Ranking, made: Board, cells: Mapping[str, Cell]
) -> list[tuple[str, str, str, str, str, str]]:
    unit = ranking.column.unit
    rows = []
    for ranked in ranking.ranked:
        cell = cells[ranked.model]
        rank_interval = "" if ranked.best is None else f"{ranked.best}–{ranked.worst}"
        value = "" if cell.value is None else number(cell.value, unit)
        name = made.models[ranked.model].name
        score_interval = interval(cell.low, cell.high, unit)
        letters = ", ".join(ranked.letters)
        rows.append((f"{ranked.rank}", rank_interval, name, value, score_interval, letters))
    return rows


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
        names: list[str] = []
        for page in self.benchmarks:
            for content in page.tables:
                if (page.name, content.name) == (benchmark, table):
                    return str(as_latex(self, page, content, intervals=intervals))
                names.append(f"{content.name} of {page.name}")
        raise UsageError(
            f"table {table} of {benchmark}: not on this board, which has {first_names(names, 12)}."
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
        pages = {page.name: page for page in self.benchmarks}
        if benchmark not in pages:
            names = first_names(pages, 12) or "none"
            raise UsageError(f"benchmark {benchmark}: not on this board, which has {names}.")
        return str(makers[form](self, pages[benchmark]))

    def _repr_markdown_(self) -> str:
        return "\n".join(as_markdown(self, page, page.tables[0]) for page in self.benchmarks)


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
    scored, refused = _scored(_opened(runs))
    if demonstration is None:
        demonstration = any(run.public.mini for run in scored)
    made = build_board(
        scored,
        refused,
        title=title,
        models=None if models is None else read_by_model(Path(models), Described),
        demonstration=demonstration,
        published=published,
        prices=None if prices is None else read_by_model(Path(prices), Price),
        layouts=layouts,
    )
    return Board(**dict(made))


def _opened(runs: AnyRuns) -> list[Run]:
    """The runs, those in directories last."""
    if isinstance(runs, str | Path):
        return list(open(runs))
    opened: list[Run] = []
    paths: list[str | Path] = []
    for run in runs:
        if isinstance(run, Run):
            opened.append(run)
        else:
            paths.append(run)
    if paths:
        opened += open(paths)
    return opened


def _scored(runs: Sequence[Run]) -> tuple[list[ScoredRun], list[Refused]]:
    """The scored runs, those in result directories first, and why the others are not shown."""
    scored: list[ScoredRun] = []
    refused: list[Refused] = []
    finished: list[Path] = []
    for run in runs:
        if run.unfinished:
            refused.append(Refused(folder=run.name, reason="it is unfinished: repeat its command"))
        elif run._load is None:
            assert run.path is not None
            finished.append(run.path)
        else:
            try:
                scored.append(run.scored)
            except MachineError:
                raise
            except MedtasksError as error:
                refused.append(Refused(folder=run.name, reason=first_line(error)))
    if not finished:
        return scored, refused
    # no bar for work that is done within two seconds
    with tqdm(desc="reading results", delay=2, leave=False) as bar:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        read, unread = collect(finished, RunStore(cache_root() / "scores"), update)
    return [*read, *scored], [*refused, *unread]


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
    fitting: list[Figure] = []
    names: list[str] = []
    names_of_benchmark: list[str] = []
    for page in board.benchmarks:
        for plot_name, figure in figures_of(board, page).items():
            names.append(f"{plot_name} of {page.name}")
            if page.name == benchmark:
                names_of_benchmark.append(names[-1])
            if benchmark in (None, page.name) and name in (None, plot_name):
                fitting.append(figure)
    if not fitting:
        listed = first_names(names_of_benchmark or names, 12) or "none"
        raise UsageError(
            f"plot {name or ''} of {benchmark or 'any benchmark'}: not on this board, which has "
            f"{listed}."
        )
    figure = fitting[0]
    return Picture(figure.plot.name, figure.alt, board, figure)
