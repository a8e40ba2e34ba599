"""An HTTP server on this machine whose every response the test writes itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body; a header that is empty is left out."""


class LocalServer:
    """Answers with what ``answer`` makes of a request's path and body; a context manager. ``port``
    0 is any.
    """

    def __init__(self, answer: Callable[[str, bytes], Answer], port: int = 0) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                status, headers, body = answer(self.path, asked)
                self.send_response(status)
                for key, value in ({"Content-Length": str(len(body))} | headers).items():
                    if value:
                        self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Any:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
