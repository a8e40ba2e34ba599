"""The local server: for this computer's user alone, under a random path.

It serves no file but the site's; the only thing that a page can write is a bookmark.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler

from medtasks.core.errors import MedtasksError, UsageError, first_line

from .environment import POLICY
from .results_view import View
from .sample_page import bookmark_sample

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
_BOOKMARK = "bookmark"
_LARGEST_FORM = 2**16
"""Bytes."""


def application(view: View, token: str) -> web.Application:
    """The server's application, for requests below ``/<token>/`` to this host and its port."""
    handlers = _Handlers(view, token)
    server = web.Application(client_max_size=_LARGEST_FORM, middlewares=[handlers.guard])
    server.router.add_get(f"/{token}/{{name:.*}}", handlers.show)
    server.router.add_post(f"/{token}/{_BOOKMARK}", handlers.bookmark)
    server.on_response_prepare.append(_add_headers)
    return server


@dataclass(frozen=True)
class _Handlers:
    """The handlers of requests for the pages of ``view``, whose addresses begin with ``token``."""

    view: View
    token: str

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests of other sites, and answer errors with a page that states them."""
        _require_own_origin(request, f"/{self.token}/{_BOOKMARK}")
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except Exception as error:  # also of other packages, and of files that change meanwhile
            text = str(error) if isinstance(error, MedtasksError) else first_line(error)
            status = 404 if isinstance(error, UsageError) else 500
            return self.view.page("message.html.j2", status=status, text=text)

    async def show(self, request: web.Request) -> web.Response:
        """The page or file that an address names; look for new results if it is time to."""
        name = request.match_info["name"]
        if not name:
            raise web.HTTPFound(f"/{self.token}/{self.view.first_page}")
        if time.monotonic() >= self.view.next_look:
            in_background(self.view.read)
        return await asyncio.to_thread(self.view.answer, name, request.query)

    async def bookmark(self, request: web.Request) -> web.Response:
        """Write the bookmark of a form, and redirect to the sample's page."""
        fields = await request.post()
        form = {name: str(value) for name, value in fields.items()}
        library = await asyncio.to_thread(self.view.wait)
        address = await asyncio.to_thread(bookmark_sample, library, request.query, form)
        return web.Response(status=303, headers={"Location": address})


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that every response has."""
    response.headers.update(_HEADERS)


def _require_own_origin(request: web.Request, form_path: str) -> None:
    """Refuse requests of another site's page, and those to a renamed host.

    A link from another site may open a page, which its site cannot read; only our own pages may
    send a form.
    """
    port = request.get_extra_info("sockname")[1]
    hosts = (f"{HOST}:{port}", f"localhost:{port}")
    if request.headers.get("Host", "") not in hosts:
        raise web.HTTPForbidden(text="Unknown host.")
    origins = [f"http://{host}" for host in hosts]
    sends_form = request.method == "POST" and request.path == form_path
    default_origin = "" if sends_form else origins[0]
    is_own = request.headers.get("Origin", default_origin) in origins
    opens_page = request.headers.get("Sec-Fetch-Dest") == "document" and not sends_form
    is_same_site = request.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
    if not is_own or not (opens_page or is_same_site):
        raise web.HTTPForbidden(text="Unknown origin.")


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
