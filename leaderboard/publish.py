"""From result directories to the board, and to the site with all its files, which is written
completely or not at all; it replaces an earlier site, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
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
    """The board of ``results``, and a hash of all that it is made of: empty if that cannot be
    known.

    All that is not listed is as in `medtasks.board`.

    Args:
        rejudged: a file of verdicts that were asked for again.
        claimed: copies of models' repositories, whose claimed scores are shown as references.
        cache: directory that keeps scored runs and the board of the same results and options.

    Raises:
        UsageError: a path is not a directory.
        DataError: the file of models, prices or verdicts cannot be read.
    """
    claims = read_claims(claimed)
    given: dict[str, Any] = {
        "title": title,
        "published": published,
        "models": models and read_by_model(models, Described),
        "prices": prices and read_by_model(prices, Price),
        "rejudged": read_rejudged(rejudged) if rejudged is not None else (),
    }
    store = RunStore(cache and cache / "scores")
    state = None if cache is None else state_of_results(results, store)
    options = repr((demonstration, given, claims))
    key = "" if state is None else store.key(options, state, code_hash(Path(__file__).parent))
    boards = TableStore(cache and cache / "boards")
    kept = boards.read(key) if key else None
    if kept is not None:
        return Board.model_validate(kept[0]), key
    runs, refused = collect(results, store, progress)
    if demonstration is None:
        demonstration = any(run.public.mini for run in runs)
        refused = [one for one in refused if runs or one.reason != NO_RUN]
    board = with_claims(build_board(runs, refused, demonstration=demonstration, **given), claims)
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
    """Read ``results``, and write pages, figures and exports to ``site``, unless all is as at the
    last build and nobody changed the site since. Arguments are those of :func:`board_of` and
    :func:`write_site`.

    Raises:
        UsageError: there are no results.
    """
    if cache is not None:
        return _publish(results, site, title, figures, cache, keeps=True, **options)
    with TemporaryDirectory(
        prefix="medtasks-"
    ) as fresh:  # the samples of runs are read after their scores
        return _publish(results, site, title, figures, Path(fresh), keeps=False, **options)


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
    """:func:`publish` with a directory for scored runs; the site is written in any case unless it
    ``keeps`` them.
    """
    board, state = board_of(results, title=title, cache=cache, **options)
    key = state if keeps else ""
    if not board.runs:
        reasons = "; ".join(
            f"{one.folder}: {one.reason.rstrip('.')}"
            for one in board.refused
            if one.reason != NO_RUN
        )
        raise UsageError(f"nothing to show: {reasons}.") if reasons else no_run(results[0])
    made_of = key and short_hash(f"{key} {' '.join(sorted(figures))}")
    recover_directory(site)
    mark = _mark(site)
    with contextlib.suppress(DataError):  # files of it are missing
        if (
            made_of
            and mark.get("made_of") == made_of
            and mark.get("content") == _content(site, mark["holds"])
        ):
            return board
    samples = samples_of(board, runs_on_board(board, results), RunStore(cache / "scores"))
    write_site(board, site, samples=samples, figures=figures, made_of=made_of)
    return board


def write_site(
    board: Board,
    directory: Path,
    *,
    samples: SampleText | None = None,
    figures: Sequence[str] = (),
    made_of: str = "",
) -> None:
    """Write the pages and exports of ``board`` to ``directory``: new, empty, or an earlier site,
    which is replaced in one step, and in which files that we did not write (a ``CNAME``, say) stay.
    The same arguments give the same bytes.

    Args:
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
    others = sorted(path.name for path in directory.iterdir()) if directory.exists() else []
    earlier = _mark(directory)
    if others and not earlier:
        raise UsageError(
            f"{directory}: has files, but no site of `medtasks leaderboard`; name a new directory."
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as site:
        links: Files = {}
        if figures:
            from .figures.draw import draw_all  # matplotlib takes a second to import

            links = draw_all(board, site, figures)
        for name, make in site_files(board, links, samples or {}).items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(make())
        shutil.copytree(Path(__file__).parent / "site" / "assets", site / "assets")
        names = sorted(path.name for path in site.iterdir())
        mark: dict[str, object] = {
            "generator": _GENERATOR,
            "medtasks": board.medtasks,
            "holds": names,
        }
        if made_of:
            mark |= {"made_of": made_of, "content": _content(site, names)}
        (site / _MARK).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")
        for name in (name for name in others if name not in {*earlier["holds"], _MARK}):
            if (site / name).exists():
                kind = "a directory" if (site / name).is_dir() else "a file"
                raise UsageError(
                    f"{directory / name}: the site now has {kind} of that name; move yours."
                )
            if (directory / name).is_dir() and not (directory / name).is_symlink():
                shutil.copytree(directory / name, site / name, symlinks=True)
            else:
                shutil.copy2(directory / name, site / name, follow_symlinks=False)
        replace_directory(directory, site)


def site_files(
    board: Board, figures: Files, samples: SampleText, *, served: bool = False
) -> dict[str, Callable[[], bytes]]:
    """Functions that make the pages, their data and the exports of a site, by path; arguments as
    `pages_of`. An export is made once, although pages state its size and the archive has it,
    too.
    """

    def encoded(name: str, make: Callable[[], str]) -> bytes:
        # a lone surrogate has no UTF-8; a browser shows its character reference as the replacement
        # character
        return make().encode("utf-8", "xmlcharrefreplace" if name.endswith(".html") else "replace")

    exports: dict[str, Callable[[], bytes]] = {}
    downloads = []
    for path, export in exports_of(board).items():
        content = cache(partial(encoded, path, export.make))
        exports[path] = content
        size = _size(content, served)
        downloads.append(Download(f"{_EXPORTS}/{path}", export.title, export.benchmark, size))
    archive = cache(partial(zip_archive, exports))
    title = "All exports of this leaderboard"
    whole = Download(f"{_EXPORTS}/{_ARCHIVE}", title, size=_size(archive, served))
    downloads.insert(0, whole)
    pages = pages_of(board, figures, downloads, samples=bool(samples), served=served)
    scripts = {
        f"data/{key}.js": partial(data_script, key, make)
        for key, make in data_values(board, samples)
    }

    texts: Mapping[str, Callable[[], str]] = {**pages, **scripts}
    files: dict[str, Callable[[], bytes]] = {}
    for name, make in texts.items():
        files[name] = partial(encoded, name, make)
    for path, make_export in exports.items():
        files[f"{_EXPORTS}/{path}"] = make_export
    files[whole.path] = archive
    return files


def _size(content: Callable[[], bytes], served: bool) -> Callable[[], int] | None:
    """The size of a file; None for `medtasks view`, which makes files when links are opened."""
    return None if served else lambda: len(content())


def _content(site: Path, names: Sequence[str]) -> str:
    """A hash of the files and directories ``names`` in ``site``."""
    files = (
        path
        for name in names
        for path in sorted([site / name, *(site / name).rglob("*")])
        if not path.is_dir()
    )
    return contents_hash({path.relative_to(site).as_posix(): path for path in files})


def _mark(directory: Path) -> dict[str, Any]:
    """What a site of ours says of itself: the entries that it ``holds``, and what it is made of;
    empty for others.
    """
    try:
        mark = json.loads((directory / _MARK).read_text(encoding="utf-8"))
        return mark if mark["generator"] == _GENERATOR and {*mark["holds"]} else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
