"""A chat server in a process of its own that logs each request it receives."""

from __future__ import annotations

import hashlib
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LATENCY = 0.1


def append_keys(log: Path, keys: list[str]) -> None:
    """Add keys of requests and the time to a log that several processes write."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, "".join(f"{key} {time.monotonic()}\n" for key in keys).encode())
    os.close(handle)


class LoggingHandler(BaseHTTPRequestHandler):
    """Answers a chat request with a letter and the hash of the request."""

    log: Path
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = hashlib.sha256(body).hexdigest()[:16]
        append_keys(self.log, [key])
        time.sleep(LATENCY)
        message = {"role": "assistant", "content": f"{'ABCDE'[int(key, 16) % 5]} {key}"}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        reply = {
            "id": key,
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "usage": usage,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        raw = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


def serve(log: Path) -> tuple[int, str]:
    """Process id and address of a server that logs the hash of each request to ``log``."""
    LoggingHandler.log = log
    server = ThreadingHTTPServer(("127.0.0.1", 0), LoggingHandler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # its client was killed
    child = os.fork()
    if not child:
        server.serve_forever()
    server.server_close()
    return child, f"http://127.0.0.1:{server.server_port}/v1"
