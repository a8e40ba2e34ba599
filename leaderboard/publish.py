"""From result directories to the board, and to the site with all its files."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from medtasks.core.errors import UsageError, reading
from medtasks.core.files import canonical_json, file_sha256
from medtasks.runs.find import NO_RUN, no_run
from medtasks.runs.table_file import TableStore

from .board.board import Board
from .board.build import RESAMPLES, build_board
from .board.claimed import read_claims, with_claims
from .board.models import Described, read_by_model
from .board.usage import Price
from .exports import write_exports
from .intake.collect import collect, state_of_results
from .site.data import samples_of
from .site.write import is_current, write_site
from .verify.rejudging import read_rejudged
from .verify.scored_run import RunStore

Progress = Callable[[int, int], None]
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
    progress: Progress | None = None,
) -> tuple[Board, str]:
    """The board of ``results``, and a hash of all that it is made of: empty if that cannot be known.

    Args:
        results: result directories, or trees that contain some.
        title: heading of the board.
        models: the file of models.
        demonstration: rank runs on miniature data too; None ranks them if there are any.
        published: show the papers' figures.
        prices: the file of prices.
        claimed: copies of models' repositories, whose claimed scores are shown as references.
        rejudged: the file of verdicts asked again (``medtasks leaderboard check --rejudged``).
        cache: directory that keeps scored runs and the board of the same results and options; None reads every
            directory again.
        progress: called with the number of directories read, and of all.

    Raises:
        UsageError: a path is not a directory.
        DataError: the file of models, prices or verdicts cannot be read.
    """
    claims = read_claims(claimed)
    store = RunStore(None if cache is None else cache / "scores")
    state = state_of_results(results, store) if store.is_kept else None
    hashes = [_hash(path) for path in (models, prices, rejudged)]
    options = [title, demonstration, published, RESAMPLES, *hashes, [asdict(claim) for claim in claims]]
    key = "" if state is None else store.key(canonical_json(options), state)
    boards = TableStore(None if cache is None else cache / "boards")
    kept = boards.read(key) if key else None
    if kept is not None:
        return Board.model_validate(kept[0]), key
    described = read_by_model(models, Described) if models is not None else None
    runs, refused = collect(results, store, progress)
    if demonstration is None:
        demonstration = any(run.public.mini for run in runs)
        refused = [one for one in refused if runs or one.reason != NO_RUN]
    board = build_board(
        runs,
        refused,
        title=title,
        models=described,
        demonstration=demonstration,
        published=published,
        prices=read_by_model(prices, Price) if prices is not None else None,
        rejudged=read_rejudged(rejudged) if rejudged is not None else (),
    )
    board = with_claims(board, claims)
    if key:
        boards.write(key, board.model_dump(mode="json"), {})
        boards.keep_newest(_BOARDS)
    return board, key


def _hash(path: Path | None) -> str:
    if path is None:
        return ""
    with reading(path, "name another file"):
        return file_sha256(path)


def publish(
    results: Sequence[Path],
    site: Path,
    *,
    title: str = "medtasks leaderboard",
    demonstration: bool = False,
    figures: Sequence[str] = (),
    **options: Any,
) -> Board:
    """Read ``results``, and write pages, figures and exports to ``site``; an earlier site there is replaced.

    If all is as at the last build, and nobody changed the site since, nothing is written.

    Args:
        results: result directories, or trees that contain some.
        site: a new or empty directory, or an earlier site.
        title: heading of the board.
        demonstration: rank runs on miniature data too.
        figures: formats of figures for download; none draws none.
        options: further arguments of :func:`board_of`.

    Raises:
        UsageError: a path is not a directory, there are no results, or ``site`` has other files.
        DataError: the file of models or prices cannot be read.
    """
    board, key = board_of(results, title=title, demonstration=demonstration, **options)
    if not board.runs:
        reasons = "; ".join(f"{one.folder}: {one.reason.rstrip('.')}" for one in board.refused if one.reason != NO_RUN)
        raise UsageError(f"nothing to show: {reasons}.") if reasons else no_run(results[0])
    made_of = key and hashlib.sha256(f"{key} {' '.join(sorted(figures))}".encode()).hexdigest()
    if made_of and is_current(site, made_of):
        return board
    draw = None
    if figures:
        from .figures.draw import draw_all  # matplotlib takes a second to import

        draw = functools.partial(draw_all, formats=figures)
    write_site(board, site, samples=samples_of(board, results), figures=draw, exports=write_exports, made_of=made_of)
    return board
