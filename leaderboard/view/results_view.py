"""The pages and files of result directories, which are read again when results come or go."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aiohttp import web

from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.runs.find import require_directory, run_folders, unfinished_runs

from ..board.build import build_board
from ..verify.media import picture
from .audit_page import audit_page
from .environment import view_environment
from .library import TITLE, Library, read_library
from .live import RunProgress, UnfinishedRun
from .parquet import state_of
from .sample_list import list_file, list_page
from .sample_page import sample_page
from .static_files import DOWNLOAD, TYPES, asset_files, response

_VIEW = Path(__file__).parent
_ASSETS = asset_files(_VIEW.parent / "site", _VIEW)
_PAUSE = 2.0
"""Seconds between two looks for results that came or went."""


class View:
    """What is served: pages of the latest library, which is read again when results come or go.

    ``paths`` are result directories, or trees that contain some. Nothing is read before
    :meth:`read`; until then, pages say how far it is.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Remember the paths, which must be directories; a `UsageError` if one is not."""
        for path in paths:
            require_directory(path)
        self._paths = paths
        self._unfinished: dict[Path, UnfinishedRun] = {}
        # the two kinds of work that only one thread does at a time
        self._following = threading.Lock()
        self._reading = threading.Lock()
        self._read_once = threading.Event()
        self._ended = threading.Event()
        self._library: Library | None = None
        self._environment = view_environment(build_board((), title=TITLE))
        self._state = ""
        self._progress = "reading results"
        self._failed = ""
        self.next_look = 0.0
        """The time (monotonic) to look for results that came or went."""

    def _folders(self, find: Callable[[Path], list[Path]]) -> list[Path]:
        """The directories that ``find`` finds in the paths, each once."""
        folders: set[Path] = set()
        for path in self._paths:
            folders.update(folder.resolve() for folder in find(path))
        return sorted(folders)

    @property
    def has_results(self) -> bool:
        """Whether there is any result, or a run under way."""
        return bool(self._folders(run_folders) or self._folders(unfinished_runs))

    @property
    def first_page(self) -> str:
        """The page to open: the board, or the run under way if there is no result yet."""
        return "index.html" if self._library is None or self._library.board.runs else "live.html"

    def read(self) -> None:
        """Read the results, unless none came or went since the last time; then make the tables of
        their samples.
        """
        if not self._reading.acquire(blocking=False):
            return  # they are being read
        try:
            self.next_look = time.monotonic() + _PAUSE
            state = self._state_of_results()
            is_current = self._library is not None and state == self._state
            if self._ended.is_set() or is_current:
                return
            library = read_library(self._paths, self._report)
            self._environment = view_environment(library.board)
            self._library = library
            self._state = state
            self._read_once.set()
            self._make_tables(library)
        except Exception as error:  # shown on the page, since there is nobody else to tell
            self._failed = first_line(error)
        finally:
            self._read_once.set()
            self._reading.release()

    def _state_of_results(self) -> str:
        """The state of the results' manifests, which changes when results come or go."""
        manifests = [folder / "manifest.json" for folder in self._folders(run_folders)]
        return state_of([file for file in manifests if file.is_file()])

    def _report(self, done: int, total: int) -> None:
        """Note how many of the results are read."""
        self._progress = (
            f"reading {min(done + 1, total)} of {total}" if total else "reading results"
        )

    def _make_tables(self, library: Library) -> None:
        """Make the tables of all samples, unless the view is closed meanwhile."""
        for task in library.tasks:
            for run in library.runs_of[task]:
                if self._ended.is_set():
                    return
                with contextlib.suppress(MedtasksError):  # its page reports it
                    library.tables(run, task)

    def wait(self) -> Library:
        """Wait until the results have been read once; `MedtasksError` if they cannot be read."""
        self._read_once.wait()
        if self._library is None:
            raise MedtasksError(f"The results cannot be read: {self._failed}")
        return self._library

    def close(self) -> None:
        """End reading and indexing."""
        self._ended.set()

    def answer(self, name: str, parameters: Mapping[str, str]) -> web.Response:
        """The page or file called ``name``; `MedtasksError` if there is none, or if the parameters
        ask for something that does not exist or cannot be read.
        """
        kind = TYPES.get(Path(name).suffix, DOWNLOAD)
        if name in _ASSETS:
            return response(_ASSETS[name].read_bytes(), kind)
        if self._library is None and name.endswith(".html") and not self._failed:
            return self.page("waiting.html.j2", progress=self._progress)
        library = self.wait()
        if name in ("live.html", "live-part.html"):
            template = f"{name.replace('-', '_')}.j2"
            return self.page(template, "live.html", live=self._live_runs())
        if name == "media":
            return _media(library, parameters)
        if name in ("samples.csv", "samples.jsonl"):
            return response(list_file(library, parameters, name.rpartition(".")[2]), kind)
        # the static site has all samples on one page, and its links to them have that name
        if name == "sample.html" or (name == "samples.html" and "id" in parameters):
            return response(sample_page(library, self._environment, parameters))
        if name == "audit.html":
            return response(audit_page(library, self._environment, parameters))
        if name == "samples.html":
            return response(list_page(library, self._environment, parameters))
        if name not in library.files:
            raise UsageError("There is no such page.")
        return response(library.files[name](), kind)

    def _live_runs(self) -> list[RunProgress]:
        """The runs under way, as they are now."""
        with self._following:
            folders = self._folders(unfinished_runs)
            followed = {}
            for folder in folders:
                followed[folder] = self._unfinished.get(folder) or UnfinishedRun(folder)
            self._unfinished = followed
            return [run.now() for run in followed.values()]

    def page(
        self, template: str, page: str = "", status: int = 200, **values: object
    ) -> web.Response:
        """A page from a template; ``page`` is the name by which the navigation knows it."""
        text = self._environment.get_template(template).render(page=page, **values)
        return response(text, status=status)


def _media(library: Library, parameters: Mapping[str, str]) -> web.Response:
    """A picture or frame of a sample, as PNG, or small as JPEG."""
    task = parameters.get("task", "")
    number = parameters.get("n", "0")
    is_small = parameters.get("small") == "1"
    if not number.isdecimal() or len(number) > 6:
        raise UsageError(f"{number}: not the number of a picture.")
    run = library.run(parameters.get("run", ""), task)
    sample_id = parameters.get("id", "")
    content = picture(task, sample_id, run.manifest, int(number), is_small)
    return response(content, "image/jpeg" if is_small else "image/png")
