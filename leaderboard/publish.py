"""From result directories to a board, and to the site that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from medtasks.core.errors import UsageError
from medtasks.core.files import short_hash
from medtasks.core.replacement import recover_directory
from medtasks.judge.label_sources import labels_content
from medtasks.runs.find import no_run
from medtasks.scoring.run_cache import RunStore, TableStore, code_hash

from .board.build import OrganiserFacts, build_board
from .board.claims import read_claims, with_claims
from .board.models import Described, Models, read_by_model
from .board.usage import Price, Prices
from .intake.collect import Progress, collect, state_of_results
from .intake.corrected_runs import corrected_runs
from .schema.board import Board
from .site.checked_verdicts import checked_verdicts
from .site.run_samples import runs_on_board, samples_of
from .verify.gold_verdicts import WRONG, read_verdicts
from .verify.rejudging import Rejudged, read_rejudged
from .written_site import is_unchanged, write_site

_KEPT_BOARDS = 8
"""Number of boards in the cache; those that were not used for longest are removed."""


@dataclass(frozen=True)
class BoardOptions:
    """What a board shows besides the scores of its runs.

    ``models``, ``prices`` and ``rejudged`` are files of the organiser; the last one has the
    outcome of asking for verdicts again. ``human`` are ratings by people, a file or a folder, that
    correct judged scores. ``claimed`` are copies of models' repositories
    (``OWNER/NAME=DIRECTORY``), whose claimed scores are shown as references. ``demonstration``
    ranks runs on miniature data; None ranks them if there are any. ``published`` shows the figures
    of papers. ``wrong_golds`` are people's verdicts on gold answers
    (`medtasks.leaderboard.verify.gold_verdicts.read_verdicts`).
    """

    title: str = "medtasks leaderboard"
    models: Path | None = None
    prices: Path | None = None
    rejudged: Path | None = None
    human: Path | None = None
    claimed: Sequence[str] = ()
    demonstration: bool | None = False
    published: bool = True
    wrong_golds: Path | None = None


@dataclass(frozen=True)
class BuiltBoard:
    """A board, and a hash of everything that it is made of: results, options and code.

    The hash is empty if nothing is cached, or if one of the runs cannot be read.
    """

    board: Board
    made_of: str


def board_of(
    results: Sequence[Path],
    options: BoardOptions,
    *,
    cache: Path | None = None,
    progress: Progress = lambda _, __: None,
) -> BuiltBoard:
    """The board of ``results``, from ``cache`` if nothing that it is made of has changed.

    Args:
        results: result directories, or trees that contain some.
        options: what the board shows besides the scores of its runs.
        cache: directory that keeps scored runs and the boards used last.
        progress: called with the number of runs that are read, and of all runs.

    Raises:
        UsageError: a path is not a directory.
        DataError: the file of models, prices, verdicts or ratings cannot be read.
    """
    organiser = _read_organiser_files(options)
    claims = read_claims(options.claimed)
    labels = None if options.human is None else labels_content(options.human)
    golds = None if options.wrong_golds is None else read_verdicts(options.wrong_golds)
    choices = (options.title, options.demonstration, options.published, labels, golds)
    store = RunStore(cache and cache / "scores")
    boards = TableStore(cache and cache / "boards")
    made_of = _board_key(results, store, repr((choices, organiser, claims)))
    if made_of:
        cached = boards.read(made_of)
        if cached is not None:
            return BuiltBoard(Board.model_validate(cached.content), made_of)
    board = _board_of_runs(results, store, options, organiser, progress)
    board = with_claims(board, claims)
    if made_of:
        boards.write(made_of, board.model_dump(mode="json"), {})
        boards.keep_newest(_KEPT_BOARDS)
    return BuiltBoard(board, made_of)


def _read_organiser_files(options: BoardOptions) -> OrganiserFacts:
    """The content of the organiser's files; nothing for files that are not named."""
    models: Models = {}
    prices: Prices = {}
    rejudged: Sequence[Rejudged] = ()
    if options.models is not None:
        models = read_by_model(options.models, Described)
    if options.prices is not None:
        prices = read_by_model(options.prices, Price)
    if options.rejudged is not None:
        rejudged = read_rejudged(options.rejudged)
    return OrganiserFacts(models, prices, rejudged)


def _board_of_runs(
    results: Sequence[Path],
    store: RunStore,
    options: BoardOptions,
    organiser: OrganiserFacts,
    progress: Progress,
) -> Board:
    """The board of the runs in ``results``, without claimed scores."""
    runs, refused = collect(results, store, progress)
    demonstration = options.demonstration
    if demonstration is None:
        demonstration = any(run.public.mini for run in runs)
        if not runs:
            # nothing is finished yet: only what looks like a run is worth a line
            refused = [entry for entry in refused if entry.has_run]
    if options.human is not None:
        organiser = replace(organiser, corrected=corrected_runs(options.human, runs, results))
    if options.wrong_golds is not None:
        verdicts = checked_verdicts(options.wrong_golds, results, store)
        organiser = replace(
            organiser,
            wrong_golds=sorted(verdicts.found(WRONG)),
            gold_notes=tuple(verdicts.caveats()),
        )
    return build_board(
        runs,
        refused,
        title=options.title,
        demonstration=demonstration,
        published=options.published,
        organiser=organiser,
    )


def _board_key(results: Sequence[Path], store: RunStore, options: str) -> str:
    """`BuiltBoard.made_of` for these results and ``options``."""
    if store.folder is None:
        return ""
    state = state_of_results(results, store)
    if state is None:
        return ""
    return store.key(options, state, code_hash(Path(__file__).parent))


def publish(
    results: Sequence[Path],
    site: Path,
    options: BoardOptions,
    *,
    figures: Sequence[str] = (),
    cache: Path | None = None,
    progress: Progress = lambda _, __: None,
) -> Board:
    """Read ``results``, and write pages, figures and exports to ``site``; returns the board.

    With a ``cache``, nothing is written if everything is as at the last build, and nobody has
    changed the site since.

    Args:
        results: as for :func:`board_of`, like ``options``, ``cache`` and ``progress``.
        site: where :func:`write_site` writes.
        options: what the board shows besides the scores of its runs.
        figures: formats of figures for download.
        cache: directory that keeps scored runs and the boards used last.
        progress: called with the number of runs that are read, and of all runs.

    Raises:
        UsageError: there are no results.
    """
    with _cache_or_temporary(cache) as folder:
        built = board_of(results, options, cache=folder, progress=progress)
        board = built.board
        if not board.runs:
            raise _nothing_to_show(board, results)
        made_of = ""
        if built.made_of and cache is not None:
            made_of = short_hash(f"{built.made_of} {' '.join(sorted(figures))}")
        recover_directory(site)
        if made_of and is_unchanged(site, made_of):
            return board
        folders = runs_on_board(board, results)
        samples = samples_of(board, folders, RunStore(folder / "scores"))
        write_site(board, site, samples=samples, figures=figures, made_of=made_of)
        return board


@contextmanager
def _cache_or_temporary(cache: Path | None) -> Iterator[Path]:
    """``cache``, or a temporary directory: samples are read from it after all scores are known."""
    if cache is not None:
        yield cache
        return
    with TemporaryDirectory(prefix="medtasks-") as folder:
        yield Path(folder)


def _nothing_to_show(board: Board, results: Sequence[Path]) -> UsageError:
    """The error that no run is on the board, with the reasons."""
    reasons = []
    for refused in board.refused:
        if refused.has_run:
            reasons.append(f"{refused.folder}: {refused.reason.rstrip('.')}")
    if not reasons:
        return no_run(results[0])
    return UsageError(f"nothing to show: {'; '.join(reasons)}.")
