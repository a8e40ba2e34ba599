"""An OpenAI-compatible server on this machine that fails as it is told to; counts what it answered."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]


def completion(content: str | None, tokens: int = 1) -> Answer:
    """A chat completion."""
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return 200, {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def error(status: int, message: str) -> Answer:
    """An error body as such servers write it."""
    return status, {"error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}}


class FailingServer:
    """Answers every chat request with what ``answer`` makes of its text; ``asked`` are the texts so far.

    ``port`` is any that is free unless given.
    """

    def __init__(self, answer: Callable[[str], Answer], port: int = 0) -> None:
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                content = body["messages"][-1]["content"]
                text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
                server.asked.append(text)
                status, payload = answer(text)
                raw = json.dumps(payload).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FailingServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
