"""Leaderboards as data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from tqdm import tqdm

from medtasks.catalog.board_layout import BoardLayout
from medtasks.core.cache import cache_root
from medtasks.core.errors import MachineError, MedtasksError, UsageError, first_line
from medtasks.core.text import first_names
from medtasks.leaderboard.board.build import OrganiserFacts, build_board
from medtasks.leaderboard.board.models import Described, Models, read_by_model
from medtasks.leaderboard.board.sensitivity import asked_as
from medtasks.leaderboard.board.usage import Price, Prices
from medtasks.leaderboard.exports.latex_tables import as_latex
from medtasks.leaderboard.exports.markdown_tables import as_markdown
from medtasks.leaderboard.exports.methods import methods_latex, methods_markdown, references_of
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.corrected_runs import CorrectedRuns, corrected_whole_runs
from medtasks.leaderboard.schema.board import Board, Refused
from medtasks.leaderboard.verify.gold_verdicts import WRONG, GoldVerdicts, read_verdicts
from medtasks.leaderboard.verify.question_content import QuestionKey, add_contents
from medtasks.leaderboard.verify.scored_run import RunStore, ScoredRun
from medtasks.python_api.runs import Run, Runs, open

AnyRuns: TypeAlias = Runs | Sequence[Run | str | Path] | str | Path
"""Runs, or paths of directories that contain some."""


class ExportableBoard(Board):
    """A leaderboard as data, the content of ``board.json``, with its exports as methods.

    A notebook shows its headline tables.
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
        tables = [as_markdown(self, page, page.tables[0]) for page in self.benchmarks]
        return "\n".join(tables)


def board(
    runs: AnyRuns,
    *,
    title: str = "medtasks leaderboard",
    models: str | Path | None = None,
    demonstration: bool | None = None,
    published: bool = True,
    prices: str | Path | None = None,
    human: str | Path | None = None,
    layouts: Sequence[BoardLayout] | None = None,
    without_wrong_golds: str | Path | None = None,
) -> ExportableBoard:
    """The leaderboard of runs, as ``medtasks leaderboard build`` writes it.

    Args:
        runs: runs, or directories that contain some. Unfinished ones are refused.
        title: the board's heading.
        models: the file of models.
        demonstration: rank runs on miniature data; by default if there are any.
        published: show the papers' figures.
        prices: the file of prices.
        human: ratings by people (a file, or a folder of them), which correct judged scores.
        layouts: what is shown of each benchmark; by default the installed ones.
        without_wrong_golds: people's verdicts on gold answers, as for `medtasks.audit`: adds a
            table with the headline scores and ranks without the questions that were found wrong.

    A warning names each kind of ratings by people that is not used, and the reason.

    Raises:
        UsageError: there is no run.
        DataError: the file of models or prices, or the ratings cannot be read.
        MachineError: this machine is at fault, for example because its prepared data are damaged.
    """
    opened = opened_runs(runs)
    scored, refused = _scored(opened)
    if demonstration is None:
        demonstration = any(run.public.mini for run in scored)
    described_models: Models = {}
    if models is not None:
        described_models = read_by_model(Path(models), Described)
    price_of_model: Prices = {}
    if prices is not None:
        price_of_model = read_by_model(Path(prices), Price)
    corrected = CorrectedRuns()
    if human is not None:
        whole_runs = [run.whole for run in opened if not run.unfinished]
        corrected = corrected_whole_runs(Path(human), whole_runs)
    found_wrong: Sequence[tuple[str, str]] = ()
    gold_notes: Sequence[str] = ()
    if without_wrong_golds is not None:
        verdicts = _current_verdicts(Path(without_wrong_golds), opened)
        found_wrong = sorted(verdicts.found(WRONG))
        gold_notes = tuple(verdicts.caveats())
    made = build_board(
        scored,
        refused,
        title=title,
        demonstration=demonstration,
        published=published,
        organiser=OrganiserFacts(
            described_models,
            price_of_model,
            corrected=corrected,
            wrong_golds=found_wrong,
            gold_notes=gold_notes,
        ),
        layouts=layouts,
    )
    for note in made.human_notes:
        warnings.warn(note, stacklevel=2)
    return ExportableBoard(**dict(made))


def _current_verdicts(path: Path, runs: Sequence[Run]) -> GoldVerdicts:
    """The verdicts at ``path`` that are about questions of the runs as they are now."""
    verdicts = read_verdicts(path)
    contents: dict[QuestionKey, set[str]] = {}
    for run in runs:
        if run.unfinished:
            continue
        try:
            samples = run.whole.samples
        except MachineError:
            raise
        except MedtasksError:  # the board lists it as refused
            continue
        for task in verdicts.tasks_with(samples, asked_as):
            add_contents(contents, samples[task])
    return verdicts.compared(contents).found_in(contents, asked_as)


def opened_runs(runs: AnyRuns) -> list[Run]:
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
        elif run.is_result_directory:
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
    read, unread = _collected(finished)
    return [*read, *scored], [*refused, *unread]


def _collected(folders: Sequence[Path]) -> tuple[list[ScoredRun], list[Refused]]:
    """The runs in result directories, and why others are refused, read while a bar is shown."""
    # no bar for work that is done within two seconds
    with tqdm(desc="reading results", delay=2, leave=False) as bar:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return collect(folders, RunStore(cache_root() / "scores"), update)
