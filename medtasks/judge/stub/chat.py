"""OpenAI's chat API: what a request's body must be, and the documents that answer it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from medtasks.judge.stub.ledger import Received
from medtasks.judge.stub.wire import HttpError

__all__ = ["MODEL", "chat_body", "completion", "error_document", "models", "text_of"]

MODEL = "stub-judge"  # the one model that /v1/models lists; a request may name any


def chat_body(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise HttpError(400, "the body is not JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise HttpError(400, "the body has no model name", param="model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise HttpError(400, "messages is not a list of objects", param="messages")
    if not isinstance(body.get("response_format") or {}, dict):
        raise HttpError(400, "response_format is not an object", param="response_format")
    for name, served in (("stream", False), ("n", 1)):
        if body.get(name) not in (None, served):
            raise HttpError(400, f"the stub serves {name}={json.dumps(served)} only", param=name)
    return body


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a chat message, without its images."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def models() -> dict[str, Any]:
    """The list of models."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "medtasks"}]}


def completion(
    received: Received, body: Mapping[str, Any], content: str | None, refusal: str | None, finish: str
) -> dict[str, Any]:
    prompt = sum(_tokens(text_of(message)) for message in body["messages"])
    completion = _tokens(content or refusal or "")
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": f"chatcmpl-{received.digest[:16]}-{received.attempt}",
        "object": "chat.completion",
        "created": 0,  # no clock: the same request gets the same bytes
        "model": body["model"],
        "system_fingerprint": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    }


def _tokens(text: str) -> int:
    """Blanks and line ends, as a measure of length that costs nothing."""
    return text.count(" ") + text.count("\n") + 1 if text else 0


def error_document(message: str, kind: str, param: str | None) -> dict[str, Any]:
    return {"error": {"message": f"stub judge: {message}", "type": kind, "param": param, "code": None}}
