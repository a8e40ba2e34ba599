"""From result directories to the site with all its files, for the command line and the demo."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from medtasks.errors import UsageError

from .board import Board
from .build import build_board
from .collect import collect
from .exports import write_exports
from .figures import FORMATS, draw_all
from .models import Described, read_by_model
from .releases import Releases
from .site import samples_of, write_site
from .usage import Price


def publish(
    results: Sequence[Path],
    site: Path,
    *,
    title: str = "medtasks leaderboard",
    models: Path | None = None,
    demonstration: bool = False,
    published: bool = True,
    documents: Sequence[Path] = (),
    prices: Path | None = None,
    figures: Sequence[str] = FORMATS,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Board:
    """Read ``results``, and write pages, figures and exports to ``site``; an earlier site there is replaced.

    Args:
        results: result directories, or trees that contain some.
        site: a new or empty directory, or an earlier site.
        title: heading of the board.
        models: the file of models.
        demonstration: rank runs on miniature data too.
        published: show the papers' figures.
        documents: files of document hashes.
        prices: the file of prices.
        figures: formats of figures; none draws none.
        cache: keeps the digests of directories; None reads every directory again.
        progress: called with the number of directories read, and of all.

    Raises:
        UsageError: a path is not a directory, there are no results, or ``site`` has other files.
        DataError: the file of models or prices, or one of document hashes, cannot be read.
    """
    releases = Releases(documents)
    described = read_by_model(models, Described) if models is not None else None
    digests, refused = collect(results, cache, progress)
    if not digests:
        reasons = "; ".join(f"{one.folder}: {one.reason.rstrip('.')}" for one in refused)
        raise UsageError(f"nothing to show: {reasons or 'no result directory (…_medtasks)'}.")
    board = build_board(
        digests,
        refused,
        title=title,
        models=described,
        demonstration=demonstration,
        published=published,
        releases=releases,
        prices=read_by_model(prices, Price) if prices is not None else None,
    )
    write_site(
        board,
        site,
        samples=samples_of(board, results),
        figures=functools.partial(draw_all, formats=figures) if figures else None,
        exports=write_exports,
    )
    return board
