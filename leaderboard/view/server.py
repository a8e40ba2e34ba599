"""The local server: for this computer's user alone, under a random path. It serves no file but the
site's; the only thing that a page can write is a bookmark.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.runs.find import require_directory, run_folders, unfinished_runs

from ..board.build import build_board
from ..verify.media import picture
from .library import TITLE, Library, read_library
from .live import UnfinishedRun
from .pages import POLICY, bookmark_sample, list_file, list_page, sample_page, view_environment
from .parquet import state_of

HOST = "127.0.0.1"
_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Server": "medtasks",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Sent with every answer, refusals included."""
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""Media types of files; all others are downloads."""
_ASSETS = {
    f"assets/{path.name}": path
    for folder in ("site", "view")
    for path in (Path(__file__).parents[1] / folder / "assets").iterdir()
}

_BOOKMARK = "bookmark"
_LARGEST_FORM = 2**16
"""Bytes."""

_PAUSE = 2.0
"""Seconds between two looks for results that came or went."""


class View:
    """What is served: pages of the latest library, which is read again when results come or go.

    ``paths`` are result directories, or trees that contain some. Nothing is read before
    :meth:`read`; until then, pages say how far it is.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            require_directory(path)
        self._paths = paths
        self._unfinished: dict[Path, UnfinishedRun] = {}
        self._following = threading.Lock()
        self._reading = threading.Lock()
        self._read_once, self._ended = threading.Event(), threading.Event()
        self._library: Library | None = None
        self._environment = view_environment(build_board((), title=TITLE))
        self._state = ""
        self._progress = "reading results"
        self._failed = ""
        self.next_look = 0.0
        """The time (monotonic) to look for results that came or went."""

    def _found(self, find: Callable[[Path], list[Path]]) -> list[Path]:
        return sorted({folder.resolve() for path in self._paths for folder in find(path)})

    @property
    def found(self) -> bool:
        """Whether there is any result, or a run under way."""
        return bool(self._found(run_folders) or self._found(unfinished_runs))

    @property
    def first_page(self) -> str:
        """The page to open: the board, or the run under way if there is no result yet."""
        return "index.html" if self._library is None or self._library.board.runs else "live.html"

    def read(self) -> None:
        """Read the results, unless none came or went since the last time; then make the tables of
        their samples.
        """

        def report(done: int, total: int) -> None:
            self._progress = (
                f"reading {min(done + 1, total)} of {total}" if total else "reading results"
            )

        if not self._reading.acquire(blocking=False):
            return  # they are being read
        try:
            self.next_look = time.monotonic() + _PAUSE
            manifests = [folder / "manifest.json" for folder in self._found(run_folders)]
            state = state_of([file for file in manifests if file.is_file()])
            if self._ended.is_set() or (self._library is not None and state == self._state):
                return
            library = read_library(self._paths, report)
            self._environment, self._library, self._state = (
                view_environment(library.board),
                library,
                state,
            )
            self._read_once.set()
            for task in library.tasks:
                for run in library.asked[task]:
                    with contextlib.suppress(MedtasksError):  # its page reports it
                        if not self._ended.is_set():
                            library.tables(run, task)
        except Exception as error:  # shown on the page, since there is nobody else to tell
            self._failed = first_line(error)
        finally:
            self._read_once.set()
            self._reading.release()

    def wait(self) -> Library:
        """Wait until the results have been read once; `MedtasksError` if they cannot be read."""
        self._read_once.wait()
        if self._library is None:
            raise MedtasksError(f"The results cannot be read: {self._failed}")
        return self._library

    def close(self) -> None:
        """End reading and indexing."""
        self._ended.set()

    def answer(self, name: str, given: Mapping[str, str]) -> web.Response:
        """The page or file called ``name``; `MedtasksError` if there is none, or if the parameters
        ``given`` ask for something that does not exist or cannot be read.
        """
        kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
        if name in _ASSETS:
            return _response(_ASSETS[name].read_bytes(), kind)
        if self._library is None and name.endswith(".html") and not self._failed:
            return self.page("waiting.html.j2", progress=self._progress)
        library = self.wait()
        if name in (
            "samples.html",
            "sample.html",
        ):  # the static site has all on one page, and links to that
            make = list_page if name == "samples.html" and "id" not in given else sample_page
            return _response(make(library, self._environment, given))
        if name in ("samples.csv", "samples.jsonl"):
            return _response(list_file(library, given, name.rpartition(".")[2]), kind)
        if name in ("live.html", "live-part.html"):
            with self._following:
                known = self._unfinished
                folders = self._found(unfinished_runs)
                self._unfinished = {
                    folder: known.get(folder) or UnfinishedRun(folder) for folder in folders
                }
                live = [run.now() for run in self._unfinished.values()]
            return self.page(f"{name.replace('-', '_')}.j2", "live.html", live=live)
        if name == "media":
            task, number, small = (
                given.get("task", ""),
                given.get("n", "0"),
                given.get("small") == "1",
            )
            if not number.isdecimal() or len(number) > 6:
                raise UsageError(f"{number}: not the number of a picture.")
            run = library.run(given.get("run", ""), task)
            content = picture(task, given.get("id", ""), run.manifest, int(number), small)
            return _response(content, "image/jpeg" if small else "image/png")
        if name not in library.files:
            raise UsageError("There is no such page.")
        return _response(library.files[name](), kind)

    def page(
        self, template: str, page: str = "", status: int = 200, **values: object
    ) -> web.Response:
        """A page from a template; ``page`` is the name by which the navigation knows it."""
        return _response(
            self._environment.get_template(template).render(page=page, **values), status=status
        )


def _response(content: bytes | str, kind: str = "text/html", status: int = 200) -> web.Response:
    body = content.encode("utf-8", "xmlcharrefreplace") if isinstance(content, str) else content
    charset = "utf-8" if kind.startswith("text/") else None
    return web.Response(status=status, body=body, content_type=kind, charset=charset)


def application(view: View, token: str) -> web.Application:
    """The server's application, for requests below ``/<token>/`` to this host and its port."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Another site's page must not read answers, nor a renamed host reach us."""
        port = request.get_extra_info("sockname")[1]
        hosts = (f"{HOST}:{port}", f"localhost:{port}")
        origins = [f"http://{host}" for host in hosts]
        if request.headers.get("Host", "") not in hosts:
            raise web.HTTPForbidden(text="Unknown host.")
        writes = request.method == "POST" and request.path == f"/{token}/{_BOOKMARK}"
        site = request.headers.get("Sec-Fetch-Site", "none")
        # a link to a page, which reads nothing
        follows = request.headers.get("Sec-Fetch-Dest") == "document" and not writes
        own = request.headers.get("Origin", "" if writes else origins[0]) in origins
        if not own or (not follows and site not in ("same-origin", "none")):
            raise web.HTTPForbidden(text="Unknown origin.")
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except (
            Exception
        ) as error:  # ours, of code of other packages, and of files that change under our hands
            text = str(error) if isinstance(error, MedtasksError) else first_line(error)
            status = 404 if isinstance(error, UsageError) else 500
            return view.page("message.html.j2", status=status, text=text)

    async def show(request: web.Request) -> web.Response:
        if not (name := request.match_info["name"]):
            raise web.HTTPFound(f"/{token}/{view.first_page}")
        if time.monotonic() >= view.next_look:
            in_background(view.read)
        return await asyncio.to_thread(view.answer, name, request.query)

    async def write(request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        address = await asyncio.to_thread(lambda: bookmark_sample(view.wait(), request.query, form))
        return web.Response(status=303, headers={"Location": address})

    async def finish(_: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(_HEADERS)

    made = web.Application(client_max_size=_LARGEST_FORM, middlewares=[guarded])
    made.router.add_get(f"/{token}/{{name:.*}}", show)
    made.router.add_post(f"/{token}/{_BOOKMARK}", write)
    made.on_response_prepare.append(finish)
    return made


def in_background(work: Callable[[], object]) -> None:
    """Start ``work`` in a thread that does not keep the process from ending."""
    threading.Thread(target=work, daemon=True).start()


async def serve(view: View, port: int, ready: Callable[[str], None]) -> None:
    """Serve ``view`` until it is cancelled, on a ``port`` (0 for any that is free); `UsageError` if
    that is taken.

    ``ready`` is called with the address, which contains the token, once requests are answered.
    """
    token = secrets.token_urlsafe(24)
    runner = web.AppRunner(application(view, token), access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        ready(f"http://{HOST}:{runner.addresses[0][1]}/{token}/")
        in_background(view.read)
        await asyncio.Event().wait()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(
            f"--port {port}: cannot be used ({reason}); give another, or none."
        ) from error
    finally:
        await runner.cleanup()
