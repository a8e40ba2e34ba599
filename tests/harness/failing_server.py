"""An OpenAI-compatible server on this machine that fails as it is told to; counts what it
answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import local_server

Answer = tuple[int, dict[str, Any]]


def completion(content: str | None, tokens: int = 1) -> Answer:
    """A chat completion."""
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content},
        "finish_reason": "stop",
    }
    about = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
    return 200, {**about, "choices": [choice], "usage": usage}


def error(status: int, message: str) -> Answer:
    """An error body as such servers write it."""
    return status, {
        "error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}
    }


class FailingServer(local_server.LocalServer):
    """Answers every chat request with what ``answer`` makes of its text; ``asked`` are the texts so
    far.
    """

    def __init__(self, answer: Callable[[str], Answer], port: int = 0) -> None:
        self.asked: list[str] = []

        def respond(_: str, body: bytes) -> local_server.Answer:
            content = json.loads(body)["messages"][-1]["content"]
            text = (
                content
                if isinstance(content, str)
                else "\n".join(part.get("text", "") for part in content)
            )
            self.asked.append(text)
            status, payload = answer(text)
            return status, {"Content-Type": "application/json"}, json.dumps(payload).encode()

        super().__init__(respond, port)
        self.url += "/v1"
