"""Writing the site: whole or not at all, in place of an earlier one, never over anything else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from medtasks.errors import DataError, UsageError
from medtasks.files import temporary_beside
from medtasks.results.swap import recover, swap

from ..board import Board
from .data import write_data
from .pages import pages_of
from .plots import Figure
from .samples import SampleText
from .text import require_name

__all__ = ["write_site"]

Figures = Callable[[Board, Path], Mapping[tuple[str, str], Figure]]
Exports = Callable[[Board, Path], object]

_MARK = "site.json"
_GENERATOR = "medtasks leaderboard"


def write_site(
    board: Board,
    directory: Path,
    *,
    samples: SampleText | None = None,
    figures: Figures | None = None,
    exports: Exports | None = None,
) -> None:
    """Write the pages of ``board`` to ``directory``; open its ``index.html``.

    The same arguments give the same bytes. An earlier site there is replaced in one step: a reader or a crash sees the
    old one or the new one. Files in it that it did not write (a ``CNAME``, say) stay.

    Args:
        board: what the pages say.
        directory: where to; new, empty, or an earlier site.
        samples: texts for the comparison page; without them it compares scores alone.
        figures: draws the plots below the folder that it is given (`medtasks.leaderboard.figures.draw_all`).
        exports: writes any other files below the folder that it is given; the overview links to all of them.

    Raises:
        UsageError: ``directory`` holds something that is no site of ours, or something of another that has the name of
            a file that is to be written.
        DataError: a name that becomes a file's name is not fit for it, or a sample cannot be read.
    """
    _require_names(board)
    directory = directory.absolute()
    recover(directory)
    others = _others(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as partial:
        _write(board, partial, samples, figures, exports)
        if not directory.exists():
            partial.rename(directory)
            return
        for name in others:
            _copy(directory / name, partial / name)
        swap(partial, directory)


def _write(
    board: Board, site: Path, samples: SampleText | None, figures: Figures | None, exports: Exports | None
) -> None:
    drawn = figures(board, site / "figures") if figures else {}
    downloads: list[str] = []
    if exports:
        exports(board, site / "exports")
        downloads = sorted(
            path.relative_to(site).as_posix() for path in (site / "exports").rglob("*") if path.is_file()
        )
    for name, text in pages_of(board, drawn, downloads):
        # a lone surrogate has no UTF-8; a browser shows its character reference as the replacement character
        (site / name).write_bytes(text.encode("utf-8", "xmlcharrefreplace"))
    write_data(board, site, samples)
    shutil.copytree(Path(__file__).parent / "assets", site / "assets")
    held = sorted(path.name for path in site.iterdir())
    mark = {"generator": _GENERATOR, "medtasks": board.medtasks, "holds": held}
    (site / _MARK).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")


def _others(directory: Path) -> list[str]:
    """What lies at the top of the site in ``directory`` that no site wrote.

    Raises:
        UsageError: there is something, and it is no site.
    """
    if not directory.exists():
        return []
    if not directory.is_dir():
        raise UsageError(f"{directory}: is a file; name a folder for the pages.")
    held = sorted(path.name for path in directory.iterdir())
    if not held:
        return []
    try:
        mark = json.loads((directory / _MARK).read_text(encoding="utf-8"))
        ours = set(mark["holds"]) if mark["generator"] == _GENERATOR else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        ours = None
    if ours is None:
        raise UsageError(f"{directory}: holds files, and no site of `medtasks leaderboard`; name a new folder.")
    return [name for name in held if name not in ours | {_MARK}]


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        kind = "a folder" if target.is_dir() else "a file"
        raise UsageError(f"{source}: the site now has {kind} of that name, and did not write yours; move it.")
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _require_names(board: Board) -> None:
    """Refuse a board whose keys could leave the site's folder, or that names models and runs it does not have."""
    for slug, facts in board.models.items():
        require_name(slug, "model slug")
        if facts.slug != slug:
            raise DataError(f"board: model {slug!r} calls itself {facts.slug!r}; build the board again.")
    for key in board.runs:
        require_name(key, "run key")
    for benchmark in board.benchmarks:
        require_name(benchmark.name, "benchmark")
        for table in benchmark.tables:
            require_name(table.name, "table")
            for column in table.columns:
                require_name(column.key, "column key")
            for row in (*table.rows, *(one.row for one in table.apart)):
                if row.model not in board.models:
                    raise DataError(f"board: table {table.name!r} has {row.model!r}, which is none of its models.")
                if missing := [key for key in row.runs if key not in board.runs]:
                    raise DataError(f"board: table {table.name!r} names run {missing[0]!r}, which it does not have.")
        for plot in benchmark.plots:
            require_name(plot.name, "plot")
