"""The files of a site: written completely or not at all, over an earlier site and nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from medtasks.core.errors import DataError, UsageError
from medtasks.core.extras import needs
from medtasks.core.replacement import recover_directory, replace_directory, temporary_beside
from medtasks.scoring.run_folder import contents_hash

from .exports.archive import zip_archive
from .exports.board_files import exports_of
from .schema.board import Board
from .site.comparison_data import data_values
from .site.data_scripts import data_script
from .site.downloads import Download
from .site.pages import Files, pages_of
from .site.run_samples import SampleText

_MARK = "site.json"
_GENERATOR = "medtasks leaderboard"
_EXPORTS = "exports"
_ARCHIVE = "all-exports.zip"


def write_site(
    board: Board,
    directory: Path,
    *,
    samples: SampleText | None = None,
    figures: Sequence[str] = (),
    made_of: str = "",
) -> None:
    """Write the pages and exports of ``board`` to ``directory``.

    The directory is new, empty, or has an earlier site, which is replaced in one step, and in which
    files that we did not write (a ``CNAME``, say) stay. The same arguments give the same bytes.

    Args:
        board: the board to show.
        directory: where to write it.
        samples: texts for the comparison page; without them it compares scores only.
        figures: formats of figures for download.
        made_of: a hash of everything that the site is made of, by which :func:`publish` knows it.

    Raises:
        UsageError: ``directory`` has files but no site of ours, or another file with the name of
            one of the site's.
        DataError: a sample cannot be read.
    """
    directory = directory.absolute()
    recover_directory(directory)
    present = _present_names(directory)
    earlier = _mark(directory)
    if present and not earlier:
        raise UsageError(
            f"{directory}: has files, but no site of `medtasks leaderboard`; name a new directory."
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as site:
        _write_files(board, site, samples or {}, figures)
        _write_mark(board, site, made_of)
        for name in present:
            if name != _MARK and name not in earlier["holds"]:
                _keep(directory / name, site / name)
        replace_directory(directory, site)


def _present_names(directory: Path) -> list[str]:
    """The names in a directory; none if it does not exist."""
    if not directory.exists():
        return []
    if not directory.is_dir():
        raise UsageError(f"{directory}: is a file; name a directory for the pages.")
    return sorted(path.name for path in directory.iterdir())


def _write_mark(board: Board, site: Path, made_of: str) -> None:
    """Write the file by which a directory is known as a site of ours."""
    names = sorted(path.name for path in site.iterdir())
    mark: dict[str, object] = {
        "generator": _GENERATOR,
        "medtasks": board.medtasks,
        "holds": names,
    }
    if made_of:
        mark["made_of"] = made_of
        mark["content"] = _content(site, names)
    (site / _MARK).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")


def _write_files(board: Board, site: Path, samples: SampleText, formats: Sequence[str]) -> None:
    """Write figures, pages, exports and assets to the empty directory ``site``."""
    figures: Files = {}
    if formats:
        with needs("figures", "drawing figures as files"):
            from .figures.draw import draw_all  # matplotlib takes a second to import

        figures = draw_all(board, site, formats)
    for name, make in site_files(board, figures, samples).items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(make())
    shutil.copytree(Path(__file__).parent / "site" / "assets", site / "assets")


def _keep(path: Path, copy: Path) -> None:
    """Copy a file or directory that is not ours from the earlier site.

    Raises:
        UsageError: the site now has an entry of that name.
    """
    if copy.exists():
        kind = "a directory" if copy.is_dir() else "a file"
        raise UsageError(f"{path}: the site now has {kind} of that name; move yours.")
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, copy, symlinks=True)
    else:
        shutil.copy2(path, copy, follow_symlinks=False)


def site_files(
    board: Board, figures: Files, samples: SampleText, *, served: bool = False
) -> dict[str, Callable[[], bytes]]:
    """Functions that make the files of a site (pages, their data, exports), by path.

    Arguments are those of `pages_of`. An export is made once, although pages state its size and the
    archive has it, too.
    """
    exports: dict[str, Callable[[], bytes]] = {}
    downloads = []
    for path, export in exports_of(board).items():
        content = cache(partial(_encoded, path, export.make))
        exports[path] = content
        size = _size(content, served)
        downloads.append(Download(f"{_EXPORTS}/{path}", export.title, export.benchmark, size))
    archive = cache(partial(zip_archive, exports))
    title = "All exports of this leaderboard"
    whole = Download(f"{_EXPORTS}/{_ARCHIVE}", title, size=_size(archive, served))
    downloads.insert(0, whole)

    texts = dict(pages_of(board, figures, downloads, samples=bool(samples), served=served))
    for key, make in data_values(board, samples):
        texts[f"data/{key}.js"] = partial(data_script, key, make)
    files: dict[str, Callable[[], bytes]] = {}
    for path, make_text in texts.items():
        files[path] = partial(_encoded, path, make_text)
    for path, make_export in exports.items():
        files[f"{_EXPORTS}/{path}"] = make_export
    files[whole.path] = archive
    return files


def _encoded(path: str, make: Callable[[], str]) -> bytes:
    """The text as UTF-8.

    A lone surrogate has no UTF-8; a browser shows its character reference as the replacement
    character.
    """
    return make().encode("utf-8", "xmlcharrefreplace" if path.endswith(".html") else "replace")


def _size(content: Callable[[], bytes], served: bool) -> Callable[[], int] | None:
    """The size of a file; None for `medtasks view`, which makes files when links are opened."""
    return None if served else lambda: len(content())


def is_unchanged(site: Path, made_of: str) -> bool:
    """Whether the site is made of the same, and nobody changed it since."""
    mark = _mark(site)
    if mark.get("made_of") != made_of:
        return False
    try:
        return bool(mark.get("content") == _content(site, mark["holds"]))
    except DataError:  # files of it are missing
        return False


def _content(site: Path, names: Sequence[str]) -> str:
    """A hash of the files and directories ``names`` in ``site``."""
    files: dict[str, Path] = {}
    for name in names:
        for path in sorted([site / name, *(site / name).rglob("*")]):
            if not path.is_dir():
                files[path.relative_to(site).as_posix()] = path
    return contents_hash(files)


def _mark(directory: Path) -> dict[str, Any]:
    """The content of the file that marks a site of ours; empty for other directories.

    Its ``holds`` lists the site's entries.
    """
    try:
        mark = json.loads((directory / _MARK).read_text(encoding="utf-8"))
        entries = set(mark["holds"])
        is_ours = mark["generator"] == _GENERATOR and len(entries) > 0
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return mark if is_ours else {}
