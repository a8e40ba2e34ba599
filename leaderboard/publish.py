"""From result directories to the site with all its files, for the command line and the demo."""

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

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Choices:
    """How a board is made: the options of ``medtasks leaderboard build``.

    ``models`` is the file of models, ``documents`` are files of document hashes, ``figures`` the formats of figures,
    ``cache`` keeps the digests of directories (None reads every directory again).
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
        results: result directories, or trees that contain some.
        site: a new or empty directory, or an earlier site.
        choices: options, by default those of `Choices`.
        progress: called with the number of directories read, and of all.

    Raises:
        UsageError: a path is not a directory, there are no results, or ``site`` has other files.
        DataError: the file of models, or one of document hashes, cannot be read.
    """
    choices = choices or Choices()
    releases = Releases(choices.documents)
    models = read_models(choices.models) if choices.models is not None else None
    digests, refused = collect(results, choices.cache, progress)
    if not digests:
        found = "; ".join(f"{one.folder}: {one.reason}" for one in refused) or "no result directory (…_medtasks)"
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
