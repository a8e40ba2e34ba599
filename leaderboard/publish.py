"""From result directories to a board, and to the site that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from medtasks.core.errors import UsageError
from medtasks.core.files import short_hash
from medtasks.core.replacement import recover_directory
from medtasks.runs.find import no_run
from medtasks.scoring.run_cache import RunStore, TableStore, code_hash

from .board.build import build_board
from .board.claims import read_claims, with_claims
from .board.models import Described, read_by_model
from .board.usage import Price
from .intake.collect import Progress, collect, state_of_results
from .schema.board import Board
from .site.run_samples import runs_on_board, samples_of
from .verify.rejudging import read_rejudged
from .written_site import is_unchanged, write_site

_BOARDS = 8
"""Boards that are kept; those used last."""


def board_of(
    results: Sequence[Path],
    *,
    title: str,
    models: Path | None = None,
    demonstration: bool | None = False,
    published: bool = True,
    prices: Path | None = None,
    claimed: Sequence[str] = (),
    rejudged: Path | None = None,
    cache: Path | None = None,
    progress: Progress = lambda _, __: None,
) -> tuple[Board, str]:
    """The board of ``results``, and a hash of all that it is made of.

    The hash is empty if that cannot be known. All that is not listed is as in `medtasks.board`.

    Args:
        results: result directories, or trees that contain some.
        rejudged: a file of verdicts that were asked for again.
        claimed: copies of models' repositories, whose claimed scores are shown as references.
        cache: directory that keeps scored runs and the board of the same results and options.

    Raises:
        UsageError: a path is not a directory.
        DataError: the file of models, prices or verdicts cannot be read.
    """
    claims = read_claims(claimed)
    options: dict[str, Any] = {
        "title": title,
        "published": published,
        "models": models and read_by_model(models, Described),
        "prices": prices and read_by_model(prices, Price),
        "rejudged": () if rejudged is None else read_rejudged(rejudged),
    }
    store = RunStore(cache and cache / "scores")
    boards = TableStore(cache and cache / "boards")
    key = _board_key(results, store, repr((demonstration, options, claims)))
    kept = boards.read(key) if key else None
    if kept is not None:
        return Board.model_validate(kept.content), key
    runs, refused = collect(results, store, progress)
    if demonstration is None:
        demonstration = any(run.public.mini for run in runs)
        if not runs:
            refused = [entry for entry in refused if entry.has_run]
    board = build_board(runs, refused, demonstration=demonstration, **options)
    board = with_claims(board, claims)
    if key:
        boards.write(key, board.model_dump(mode="json"), {})
        boards.keep_newest(_BOARDS)
    return board, key


def _board_key(results: Sequence[Path], store: RunStore, options: str) -> str:
    """A hash of all that a board is made of: results, options and code.

    Empty if nothing is cached, or if a run cannot be read.
    """
    if store.folder is None:
        return ""
    state = state_of_results(results, store)
    if state is None:
        return ""
    return store.key(options, state, code_hash(Path(__file__).parent))


def publish(
    results: Sequence[Path],
    site: Path,
    *,
    title: str = "medtasks leaderboard",
    figures: Sequence[str] = (),
    cache: Path | None = None,
    **options: Any,
) -> Board:
    """Read ``results``, and write pages, figures and exports to ``site``.

    With a ``cache``, nothing is written if all is as at the last build and nobody changed the site
    since. Other arguments are those of :func:`board_of` and :func:`write_site`.

    Raises:
        UsageError: there are no results.
    """
    with ExitStack() as stack:
        # the samples of runs are read after their scores
        folder = cache
        if folder is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="medtasks-")))
        board, key = board_of(results, title=title, cache=folder, **options)
        if not board.runs:
            raise _nothing_to_show(board, results)
        made_of = ""
        if key and cache is not None:
            made_of = short_hash(f"{key} {' '.join(sorted(figures))}")
        recover_directory(site)
        if made_of and is_unchanged(site, made_of):
            return board
        samples = samples_of(board, runs_on_board(board, results), RunStore(folder / "scores"))
        write_site(board, site, samples=samples, figures=figures, made_of=made_of)
        return board


def _nothing_to_show(board: Board, results: Sequence[Path]) -> UsageError:
    """The error that no run is on the board, with the reasons."""
    reasons = []
    for refused in board.refused:
        if refused.has_run:
            reasons.append(f"{refused.folder}: {refused.reason.rstrip('.')}")
    if not reasons:
        return no_run(results[0])
    return UsageError(f"nothing to show: {'; '.join(reasons)}.")
