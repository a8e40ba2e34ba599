"""Write the site completely or not at all; it replaces an earlier site, and nothing else."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from medtasks.core.errors import UsageError
from medtasks.core.files import file_sha256, recover_directory, replace_directory, temporary_beside

from ..board.board import Board
from .data import SampleText, write_data
from .pages import pages_of

Figures = Callable[[Board, Path], Mapping[tuple[str, str], Mapping[str, str]]]
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
    made_of: str = "",
) -> None:
    """Write the pages of ``board`` to ``directory``; open its ``index.html``.

    The same arguments give the same bytes. An earlier site is replaced in one step, and files in it that
    we did not write (a ``CNAME``, say) stay.

    Args:
        directory: new, empty, or an earlier site.
        samples: texts for the comparison page; without them it compares scores only.
        figures: draws the plots as files below the directory it is given (`medtasks.leaderboard.figures.draw`).
        exports: writes other files below the directory it is given; the overview links to all of them.
        made_of: a hash of everything that the site is made of, for :func:`is_current`.

    Raises:
        UsageError: ``directory`` has files but no site of ours, or another file with the name of one of the site's.
        DataError: a sample cannot be read.
    """
    directory = directory.absolute()
    recover_directory(directory)
    others = _other_files(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as site:
        drawn = figures(board, site / "figures") if figures else {}
        if exports:
            exports(board, site / "exports")
        written = [path for path in (site / "exports").rglob("*") if path.is_file()]
        downloads = sorted(path.relative_to(site).as_posix() for path in written)
        files = {key: {kind: f"figures/{path}" for kind, path in one.items()} for key, one in drawn.items()}
        for name, page in pages_of(board, files, downloads, samples=bool(samples)).items():
            # a lone surrogate has no UTF-8; a browser shows its character reference as the replacement character
            (site / name).write_bytes(page().encode("utf-8", "xmlcharrefreplace"))
        write_data(board, site, samples)
        shutil.copytree(Path(__file__).parent / "assets", site / "assets")
        names = sorted(path.name for path in site.iterdir())
        mark: dict[str, object] = {"generator": _GENERATOR, "medtasks": board.medtasks, "holds": names}
        if made_of:
            mark |= {"made_of": made_of, "content": _content(site, names)}
        (site / _MARK).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")
        for name in others:
            if (site / name).exists():
                kind = "a directory" if (site / name).is_dir() else "a file"
                raise UsageError(f"{directory / name}: the site now has {kind} of that name; move yours.")
            if (directory / name).is_dir() and not (directory / name).is_symlink():
                shutil.copytree(directory / name, site / name, symlinks=True)
            else:
                shutil.copy2(directory / name, site / name, follow_symlinks=False)
        replace_directory(directory, site)


def is_current(directory: Path, made_of: str) -> bool:
    """Whether ``directory`` has the site that was made of this (:func:`write_site`), and all its files as written."""
    recover_directory(directory)
    try:
        mark = json.loads((directory / _MARK).read_text(encoding="utf-8"))
        return bool(mark["made_of"] == made_of and mark["content"] == _content(directory, mark["holds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _content(site: Path, names: Sequence[str]) -> str:
    """A hash of the files and directories ``names`` in ``site``."""
    digest = hashlib.sha256()
    for name in names:
        for path in sorted([site / name, *(site / name).rglob("*")]):
            if not path.is_dir():
                digest.update(f"{path.relative_to(site).as_posix()}\0{file_sha256(path)}\0".encode())
    return digest.hexdigest()


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
