"""A server for this computer's user alone: under a random path, for its own pages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from aiohttp import web

from medtasks.core.errors import UsageError

from .environment import POLICY

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


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that every response has."""
    response.headers.update(_HEADERS)


def require_own_origin(request: web.Request, form_path: str) -> None:
    """Refuse requests of another site's page, and those to a renamed host.

    A link from another site may open a page, which its site cannot read; only our own pages may
    send the form to ``form_path``.
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


async def serve_application(
    application: web.Application, token: str, port: int, ready: Callable[[str], None]
) -> None:
    """Serve an application, whose paths begin with ``token``, until it is cancelled.

    Args:
        application: what is served.
        token: the beginning of its paths.
        port: the port; 0 for any that is free.
        ready: called with the address once requests are answered.

    Raises:
        UsageError: the port is taken.
    """
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        ready(f"http://{HOST}:{runner.addresses[0][1]}/{token}/")
        await asyncio.Event().wait()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(
            f"--port {port}: cannot be used ({reason}); give another, or none."
        ) from error
    finally:
        await runner.cleanup()
