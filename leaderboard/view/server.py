"""The local server: for this computer's user alone, under a random path.

It serves no file but the site's; the only thing that a page can write is a bookmark.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler

from medtasks.core.errors import MedtasksError, UsageError, first_line

from .local_server import add_headers, require_own_origin, serve_application
from .results_view import View
from .sample_page import bookmark_sample

_BOOKMARK = "bookmark"
_LARGEST_FORM = 2**16
"""Bytes."""


def application(view: View, token: str) -> web.Application:
    """The server's application, for requests below ``/<token>/`` to this host and its port."""
    handlers = _Handlers(view, token)
    server = web.Application(client_max_size=_LARGEST_FORM, middlewares=[handlers.guard])
    server.router.add_get(f"/{token}/{{name:.*}}", handlers.show)
    server.router.add_post(f"/{token}/{_BOOKMARK}", handlers.bookmark)
    server.on_response_prepare.append(add_headers)
    return server


@dataclass(frozen=True)
class _Handlers:
    """The handlers of requests for the pages of ``view``, whose addresses begin with ``token``."""

    view: View
    token: str

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests of other sites, and answer errors with a page that states them."""
        require_own_origin(request, f"/{self.token}/{_BOOKMARK}")
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


def in_background(work: Callable[[], object]) -> None:
    """Start ``work`` in a thread that does not keep the process from ending."""
    threading.Thread(target=work, daemon=True).start()


async def serve(view: View, port: int, ready: Callable[[str], None]) -> None:
    """Serve ``view`` until it is cancelled, on a ``port`` (0 for any that is free); `UsageError` if
    that is taken.

    ``ready`` is called with the address, which contains the token, once requests are answered.
    """

    def started(address: str) -> None:
        ready(address)
        in_background(view.read)

    token = secrets.token_urlsafe(24)
    await serve_application(application(view, token), token, port, started)
