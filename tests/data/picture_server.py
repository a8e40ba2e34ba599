"""Pictures over HTTP on this machine, with servers' usual troubles, and a count of what was asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


class PictureServer:
    """Answers with what ``answer`` makes of a name and of how often it was asked for before; a context manager."""

    def __init__(self, answer: Callable[[str, int], Answer]) -> None:
        self.asked: Counter[str] = Counter()
        server, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.removeprefix("/")
                with lock:
                    before = server.asked[name]
                    server.asked[name] += 1
                status, headers, body = answer(name, before)
                self.send_response(status)
                for key, value in ({"Content-Length": str(len(body))} | headers).items():
                    if value:  # an empty one is left out
                        self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> PictureServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
