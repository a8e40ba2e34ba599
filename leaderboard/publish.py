"""From result folders to the site with all its files, in one call: what the command line and the demo do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.errors import UsageError

from .board import Board
from .build import build_board
from .collect import collect
from .exports import write_exports
from .figures import FORMATS, draw_all
from .models import read_models
from .releases import Releases
from .site import samples_of, write_site

__all__ = ["Choices", "publish"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Choices:
    """How a board is made.

    Args:
        title: its heading.
        models: the organiser's file of models (`medtasks.leaderboard.models`).
        demonstration: let runs on miniature data be ranked, marked as such.
        published: show the papers' figures, apart from ranked rows.
        documents: files of document hashes, beside the data prepared here (`medtasks.leaderboard.releases`).
        figures: formats of the figures (`medtasks.leaderboard.figures.FORMATS`); none draws none.
        cache: where the digests of folders are kept; None to read every folder anew.
    """

    title: str = "medtasks leaderboard"
    models: Path | None = None
    demonstration: bool = False
    published: bool = True
    documents: tuple[Path, ...] = ()
    figures: tuple[str, ...] = FORMATS
    cache: Path | None = None


def publish(
    results: Sequence[Path], site: Path, choices: Choices | None = None, *, progress: Progress | None = None
) -> Board:
    """Read ``results``, and write pages, figures and exports to ``site``; an earlier site there is replaced.

    Args:
        results: result folders, or trees that hold some.
        site: a new or empty folder, or an earlier site.
        choices: how; the defaults where absent.
        progress: told how many folders are read, of how many.

    Raises:
        UsageError: a path is not a directory, there is no result in any, or ``site`` holds something else.
        DataError: the file of models, or one of document hashes, cannot be read.
    """
    choices = choices or Choices()
    releases = Releases(choices.documents)
    models = read_models(choices.models) if choices.models is not None else None
    digests, refused = collect(results, choices.cache, progress)
    if not digests:
        found = "; ".join(f"{one.folder}: {one.reason}" for one in refused) or "no result folder (…_medtasks)"
        raise UsageError(f"nothing to show: {found}")
    board = build_board(
        digests,
        refused,
        title=choices.title,
        models=models,
        demonstration=choices.demonstration,
        published=choices.published,
        releases=releases,
    )
    write_site(
        board,
        site,
        samples=samples_of(board, results),
        figures=(lambda board, folder: draw_all(board, folder, choices.figures)) if choices.figures else None,
        exports=write_exports,
    )
    return board
