"""A server on this machine that speaks the protocols of closed models: chat completions, responses,
messages and generateContent.

What it answers is decided by a function of the question: an answer (also one that is cut off,
refused, or comes with thoughts), an HTTP error, or a connection that is closed. Written by the
public descriptions of the protocols, and tried with the vendors' own packages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

COMPLETIONS = "chat completions"
RESPONSES = "responses"
MESSAGES = "messages"
CONTENT = "generateContent"
PATHS = {
    "/chat/completions": COMPLETIONS,
    "/responses": RESPONSES,
    "/messages": MESSAGES,
    ":generateContent": CONTENT,
}
"""Protocols by the end of the path."""


@dataclass(frozen=True)
class Question:
    """A request: its texts, and the SHA-256 of its pictures in their order."""

    protocol: str
    text: str
    pictures: tuple[str, ...]
    body: dict[str, Any] = field(repr=False, hash=False)
    headers: dict[str, str] = field(repr=False, hash=False)

    @property
    def key(self) -> str:
        """A short hash of texts and pictures."""
        return hashlib.sha256("\0".join((self.text, *self.pictures)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Answer:
    """A response; ``ending`` is stop, length, refused (a safety block) or prompt (a blocked
    prompt), and ``reasoning`` the number of tokens of ``thoughts``.
    """

    text: str = "A"
    ending: str = "stop"
    thoughts: str = ""
    input_tokens: int = 100
    output_tokens: int = 2
    reasoning: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Problem:
    """An HTTP error."""

    status: int
    message: str = "out of order"
    headers: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Closed:
    """A connection that is closed without a response, after some seconds."""

    seconds: float = 0.0


Outcome: TypeAlias = "Answer | Problem | Closed"


class ClosedModels:
    """The server, a context manager; ``asked`` are the questions in the order of their arrival, and
    ``answered`` those whose answer was written.
    """

    def __init__(self, decide: Callable[[Question], Outcome], port: int = 0) -> None:
        self.asked: list[Question] = []
        self.answered: list[Question] = []
        self._decide = decide
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a killed client
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                question = question_in(self.path, raw, dict(self.headers))
                server.asked.append(question)
                outcome = server._decide(question)
                if isinstance(outcome, (Answer, Closed)) and outcome.seconds:
                    time.sleep(outcome.seconds)
                if isinstance(outcome, Closed):
                    self.close_connection = True
                    return
                status, headers, body = written(question.protocol, outcome)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                if isinstance(outcome, Answer):
                    server.answered.append(question)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> ClosedModels:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def question_in(path: str, raw: bytes, headers: dict[str, str]) -> Question:
    """The question in a request.

    Raises:
        ValueError: the path is that of no protocol.
    """
    route = path.partition("?")[0]
    for ending, protocol in PATHS.items():
        if route.endswith(ending):
            body = json.loads(raw)
            texts, pictures = [], []
            for part in parts_of(protocol, body):
                (pictures if isinstance(part, bytes) else texts).append(part)
            digests = tuple(hashlib.sha256(picture).hexdigest() for picture in pictures)
            return Question(protocol, "\n".join(texts), digests, body, headers)
    raise ValueError(f"no protocol has the path {path}")


def parts_of(protocol: str, body: dict[str, Any]) -> Iterator[str | bytes]:
    """Yield the texts and the pictures of a request, without its system prompt."""
    turns = body[
        "contents" if protocol == CONTENT else "input" if protocol == RESPONSES else "messages"
    ]
    for turn in turns:
        if turn.get("role") == "system":
            continue
        content = turn["parts"] if protocol == CONTENT else turn["content"]
        if isinstance(content, str):
            yield content
            continue
        for part in content:
            yield part["text"] if part.get("text") is not None else picture_in(part)


def picture_in(part: dict[str, Any]) -> bytes:
    """The picture in a part of a request."""
    inline_data = part.get("inlineData", part.get("inline_data"))  # the API takes either
    if inline_data is not None:
        encoded = inline_data["data"]
        # generateContent takes either alphabet
        return base64.urlsafe_b64decode(encoded.replace("+", "-").replace("/", "_"))
    if "source" in part:
        return base64.b64decode(part["source"]["data"])
    address = part["image_url"]
    if isinstance(address, dict):
        address = address["url"]
    return base64.b64decode(address.partition(",")[2])


def written(protocol: str, outcome: Answer | Problem) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a reply."""
    headers = {"Content-Type": "application/json"}
    if isinstance(outcome, Problem):
        status = outcome.status
        headers |= outcome.headers
        reply = problem_body(protocol, outcome)
    else:
        status = 200
        reply = ANSWERS[protocol](outcome)
    raw = json.dumps(reply).encode()
    headers["Content-Length"] = str(len(raw))
    return status, headers, raw


def problem_body(protocol: str, problem: Problem) -> dict[str, Any]:
    """The body of an error, as each vendor writes it."""
    if protocol == MESSAGES:
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(problem.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": problem.message}}
    if protocol == CONTENT:
        status = {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}.get(problem.status, "INTERNAL")
        error = {"code": problem.status, "message": problem.message, "status": status}
        return {"error": error}
    error = {"message": problem.message, "type": "error", "code": None, "param": None}
    return {"error": error}


def completion(answer: Answer) -> dict[str, Any]:
    """A chat completion; one that was refused has the text before the filter ended it."""
    endings = {"stop": "stop", "length": "length", "refused": "content_filter"}
    message = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.ending == "prompt":
        message |= {"content": None, "refusal": "I cannot help with this."}
    if answer.thoughts:
        message["reasoning_content"] = answer.thoughts
    output_tokens = answer.output_tokens + answer.reasoning
    usage = {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": answer.input_tokens + output_tokens,
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
    }
    finish = endings.get(answer.ending, "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }


def model_response(answer: Answer) -> dict[str, Any]:
    """A response of OpenAI's responses API."""
    content = {"type": "output_text", "text": answer.text, "annotations": []}
    if answer.ending in ("refused", "prompt"):
        content = {"type": "refusal", "refusal": "I cannot help with this."}
    output: list[dict[str, Any]] = []
    if answer.thoughts:
        summary = [{"type": "summary_text", "text": answer.thoughts}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [content]}
    output.append(message | {"status": "completed"})
    output_tokens = answer.output_tokens + answer.reasoning
    is_cut = answer.ending == "length"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.reasoning},
            "total_tokens": answer.input_tokens + output_tokens,
        },
    }


def message(answer: Answer) -> dict[str, Any]:
    """A message of Anthropic's API, whose output tokens include those of thinking."""
    content: list[dict[str, Any]] = []
    if answer.thoughts:
        content.append({"type": "thinking", "thinking": answer.thoughts, "signature": "s"})
    if answer.ending in ("stop", "length") and answer.text:
        content.append({"type": "text", "text": answer.text})
    endings = {"stop": "end_turn", "length": "max_tokens"}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": endings.get(answer.ending, "refusal"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.input_tokens - 10,
            "cache_creation_input_tokens": 6,
            "cache_read_input_tokens": 4,
            "output_tokens": answer.output_tokens + answer.reasoning,
        },
    }


def generated_content(answer: Answer) -> dict[str, Any]:
    """A response of Gemini's API, whose candidates do not count the tokens of thoughts."""
    usage = {
        "promptTokenCount": answer.input_tokens,
        "totalTokenCount": answer.input_tokens + answer.output_tokens + answer.reasoning,
    }
    if answer.ending == "prompt":
        feedback = {"blockReason": "PROHIBITED_CONTENT"}
        return {"promptFeedback": feedback, "usageMetadata": usage, "modelVersion": "m"}
    usage["candidatesTokenCount"] = answer.output_tokens
    if answer.reasoning:
        usage["thoughtsTokenCount"] = answer.reasoning
    parts: list[dict[str, Any]] = []
    if answer.thoughts:
        parts.append({"text": answer.thoughts, "thought": True})
    if answer.ending != "refused" and answer.text:
        parts.append({"text": answer.text})
    endings = {"stop": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}
    candidate = {"index": 0, "finishReason": endings[answer.ending]}
    candidate["content"] = {"role": "model", "parts": parts}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}


ANSWERS: dict[str, Callable[[Answer], dict[str, Any]]] = {
    COMPLETIONS: completion,
    RESPONSES: model_response,
    MESSAGES: message,
    CONTENT: generated_content,
}
"""The body of an answer, by protocol."""
