"""Files that pages load, and HTTP answers with their media types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aiohttp import web

TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""Media types of files; all others are downloads."""
DOWNLOAD = "application/octet-stream"


def asset_files(*packages: Path) -> Mapping[str, Path]:
    """The files in the folders ``assets`` of these packages, by their paths on the server."""
    return {
        f"assets/{file.name}": file
        for package in packages
        for file in (package / "assets").iterdir()
    }


def response(content: bytes | str, kind: str = "text/html", status: int = 200) -> web.Response:
    """An answer with this content; text is sent as UTF-8."""
    body = content.encode("utf-8", "xmlcharrefreplace") if isinstance(content, str) else content
    charset = "utf-8" if kind.startswith("text/") else None
    return web.Response(status=status, body=body, content_type=kind, charset=charset)
