"""From result directories to the board, and to the site with all its files, which is written
completely or not at all; it replaces an earlier site, and nothing else.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from medtasks.core.errors import DataError, UsageError
from medtasks.core.files import recover_directory, replace_directory, short_hash, temporary_beside
from medtasks.runs.find import NO_RUN, no_run
from medtasks.scoring.run_cache import RunStore, TableStore, code_hash
from medtasks.scoring.run_record import contents_hash

from .board.build import build_board
from .board.claims import read_claims, with_claims
from .board.models import Described, read_by_model
from .board.usage import Price
from .exports.archive import zip_archive
from .exports.tables import exports_of
from .intake.collect import Progress, collect, state_of_results
from .schema.board import Board
from .site.data import SampleText, data_script, data_values, runs_on_board, samples_of
from .site.downloads import Download
from .site.pages import Files, pages_of
from .verify.rejudging import read_rejudged

_MARK = "site.json"
_GENERATOR = "medtasks leaderboard"
_EXPORTS = "exports"
_ARCHIVE = "all-exports.zip"
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
        "rejudged": read_rejudged(rejudged) if rejudged is not None else (),
    }
    store = RunStore(cache and cache / "scores")
    state = None if cache is None else state_of_results(results, store)
    key = ""
    if state is not None:
        code = code_hash(Path(__file__).parent)
        key = store.key(repr((demonstration, options, claims)), state, code)
    boards = TableStore(cache and cache / "boards")
    kept = boards.read(key) if key else None
    if kept is not None:
        return Board.model_validate(kept[0]), key
    runs, refused = collect(results, store, progress)
    if demonstration is None:
        demonstration = any(run.public.mini for run in runs)
        if not runs:
            refused = [entry for entry in refused if entry.reason != NO_RUN]
    board = build_board(runs, refused, demonstration=demonstration, **options)
    board = with_claims(board, claims)
    if key:
        boards.write(key, board.model_dump(mode="json"), {})
        boards.keep_newest(_BOARDS)
    return board, key


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

    Nothing is written if all is as at the last build and nobody changed the site since. Arguments
    are those of :func:`board_of` and :func:`write_site`.

    Raises:
        UsageError: there are no results.
    """
    if cache is not None:
        return _publish(results, site, title, figures, cache, keeps=True, **options)
    # the samples of runs are read after their scores
    with TemporaryDirectory(prefix="medtasks-") as directory:
        return _publish(results, site, title, figures, Path(directory), keeps=False, **options)


def _publish(
    results: Sequence[Path],
    site: Path,
    title: str,
    figures: Sequence[str],
    cache: Path,
    *,
    keeps: bool,
    **options: Any,
) -> Board:
    """:func:`publish` with a directory for scored runs.

    The site is written in any case unless it ``keeps`` them.
    """
    board, key = board_of(results, title=title, cache=cache, **options)
    if not board.runs:
        raise _nothing_to_show(board, results)
    made_of = ""
    if key and keeps:
        made_of = short_hash(f"{key} {' '.join(sorted(figures))}")
    recover_directory(site)
    if made_of and _is_unchanged(site, made_of):
        return board
    samples = samples_of(board, runs_on_board(board, results), RunStore(cache / "scores"))
    write_site(board, site, samples=samples, figures=figures, made_of=made_of)
    return board


def _nothing_to_show(board: Board, results: Sequence[Path]) -> UsageError:
    """The error that no run is on the board, with the reasons."""
    reasons = []
    for refused in board.refused:
        if refused.reason != NO_RUN:
            reasons.append(f"{refused.folder}: {refused.reason.rstrip('.')}")
    if not reasons:
        return no_run(results[0])
    return UsageError(f"nothing to show: {'; '.join(reasons)}.")


def _is_unchanged(site: Path, made_of: str) -> bool:
    """Whether the site is made of the same, and nobody changed it since."""
    mark = _mark(site)
    if mark.get("made_of") != made_of:
        return False
    try:
        return bool(mark.get("content") == _content(site, mark["holds"]))
    except DataError:  # files of it are missing
        return False


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
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory}: is a file; name a directory for the pages.")
    present = sorted(path.name for path in directory.iterdir()) if directory.exists() else []
    earlier = _mark(directory)
    if present and not earlier:
        raise UsageError(
            f"{directory}: has files, but no site of `medtasks leaderboard`; name a new directory."
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as site:
        _write_files(board, site, samples or {}, figures)
        names = sorted(path.name for path in site.iterdir())
        mark: dict[str, object] = {
            "generator": _GENERATOR,
            "medtasks": board.medtasks,
            "holds": names,
        }
        if made_of:
            mark |= {"made_of": made_of, "content": _content(site, names)}
        (site / _MARK).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")
        for name in present:
            if name != _MARK and name not in earlier["holds"]:
                _keep(directory / name, site / name)
        replace_directory(directory, site)


def _write_files(board: Board, site: Path, samples: SampleText, formats: Sequence[str]) -> None:
    """Write figures, pages, exports and assets to the empty directory ``site``."""
    figures: Files = {}
    if formats:
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


def _content(site: Path, names: Sequence[str]) -> str:
    """A hash of the files and directories ``names`` in ``site``."""
    files: dict[str, Path] = {}
    for name in names:
        for path in sorted([site / name, *(site / name).rglob("*")]):
            if not path.is_dir():
                files[path.relative_to(site).as_posix()] = path
    return contents_hash(files)


def _mark(directory: Path) -> dict[str, Any]:
    """The mark of a site of ours: the entries that it ``holds``, and what it is made of.

    Empty for other directories.
    """
    try:
        mark = json.loads((directory / _MARK).read_text(encoding="utf-8"))
        is_ours = mark["generator"] == _GENERATOR and bool({*mark["holds"]})
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return mark if is_ours else {}
