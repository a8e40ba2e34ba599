"""Write the site completely or not at all; it replaces an earlier site, and nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.errors import UsageError
from medtasks.files import temporary_beside
from medtasks.results.swap import recover, swap

from ..board import Board
from .data import write_data
from .pages import pages_of
from .samples import SampleText
from .text import require_name

if TYPE_CHECKING:
    from ..figures import FigureFiles

    Figures = Callable[[Board, Path], Mapping[tuple[str, str], FigureFiles]]
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
    served: bool = False,
) -> None:
    """Write the pages of ``board`` to ``directory``; open its ``index.html``.

    The same arguments give the same bytes. An earlier site is replaced in one step, and files in it that
    we did not write (a ``CNAME``, say) stay.

    Args:
        directory: new, empty, or an earlier site.
        samples: texts for the comparison page; without them it compares scores only.
        figures: draws the plots below the directory it is given (`medtasks.leaderboard.figures.draw_all`).
        exports: writes other files below the directory it is given; the overview links to all of them.
        served: whether `medtasks view` serves the site, and adds pages of its own.

    Raises:
        UsageError: ``directory`` has files but no site of ours, or another file with the name of one of the site's.
        DataError: a name cannot be part of a file name, or a sample cannot be read.
    """
    _require_names(board)
    directory = directory.absolute()
    recover(directory)
    others = _other_files(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as partial:
        _write(board, partial, samples, figures, exports, served)
        if not directory.exists():
            partial.rename(directory)
            return
        for name in others:
            _copy(directory / name, partial / name)
        swap(partial, directory)


def _write(
    board: Board,
    site: Path,
    samples: SampleText | None,
    figures: Figures | None,
    exports: Exports | None,
    served: bool,
) -> None:
    drawn = figures(board, site / "figures") if figures else {}
    downloads: list[str] = []
    if exports:
        exports(board, site / "exports")
        downloads = sorted(
            path.relative_to(site).as_posix() for path in (site / "exports").rglob("*") if path.is_file()
        )
    for name, text in pages_of(board, drawn, downloads, samples=bool(samples), served=served):
        # a lone surrogate has no UTF-8; a browser shows its character reference as the replacement character
        (site / name).write_bytes(text.encode("utf-8", "xmlcharrefreplace"))
    write_data(board, site, samples)
    shutil.copytree(Path(__file__).parent / "assets", site / "assets")
    names = sorted(path.name for path in site.iterdir())
    mark = {"generator": _GENERATOR, "medtasks": board.medtasks, "holds": names}
    (site / _MARK).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")


def _other_files(directory: Path) -> list[str]:
    """The entries of ``directory`` that do not belong to the site.

    Raises:
        UsageError: it is a file, or has files but no site.
    """
    if not directory.exists():
        return []
    if not directory.is_dir():
        raise UsageError(f"{directory}: is a file; name a directory for the pages.")
    names = sorted(path.name for path in directory.iterdir())
    if not names:
        return []
    try:
        mark = json.loads((directory / _MARK).read_text(encoding="utf-8"))
        ours = set(mark["holds"]) if mark["generator"] == _GENERATOR else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        ours = None
    if ours is None:
        raise UsageError(f"{directory}: has files, but no site of `medtasks leaderboard`; name a new directory.")
    return [name for name in names if name not in ours | {_MARK}]


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        kind = "a directory" if target.is_dir() else "a file"
        raise UsageError(f"{source}: the site now has {kind} of that name; move yours.")
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _require_names(board: Board) -> None:
    """Refuse a board whose keys could leave the site's directory."""
    names = [("model slug", slug) for slug in board.models] + [("run key", key) for key in board.runs]
    for benchmark in board.benchmarks:
        names.append(("benchmark", benchmark.name))
        for table in benchmark.tables:
            names += [("table", table.name), *(("column key", column.key) for column in table.columns)]
        names += [("plot", plot.name) for plot in benchmark.plots]
    for what, name in names:
        require_name(name, what)
