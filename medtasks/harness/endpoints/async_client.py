"""The client of ``async_openai``, whose responses are kept beside what the back-end makes of them.

The back-end returns the text and the tokens alone: a response that was cut off or blocked looks
like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from medtasks.runs.replies import Reply

from .clients import takes_no_temperature
from .responses import reply_of_completion

_RESPONSES: ContextVar[list[Any]] = ContextVar("responses")
"""The responses to the request of the current task of the event loop."""


def renew_connections(lm: Any) -> None:
    """Give ``async_openai`` a client without open connections.

    The back-end runs an event loop for each of its calls. A connection of an earlier loop still
    sends a request, but the answer is never read, and the request is sent again.
    """
    from openai import DefaultAsyncHttpxClient

    client = lm.client
    http_client = DefaultAsyncHttpxClient(base_url=client.base_url, timeout=client.timeout)
    lm.client = client.copy(http_client=http_client)


@contextmanager
def responses_noted(lm: Any) -> Iterator[None]:
    """Give ``async_openai`` a client that notes responses, and sends what current models accept."""
    client = lm.client

    async def create(**payload: Any) -> Any:
        response = await client.chat.completions.create(**_accepted(payload))
        _RESPONSES.get().append(response)
        return response

    completions = SimpleNamespace(create=create)
    lm.client = SimpleNamespace(chat=SimpleNamespace(completions=completions))
    try:
        yield
    finally:
        lm.client = client


def begin_noting() -> list[Any]:
    """The list of the responses to the request that is about to be sent."""
    responses: list[Any] = []
    _RESPONSES.set(responses)
    return responses


def noted_reply(reply: Reply, responses: list[Any]) -> Reply:
    """The back-end's reply with its ending, or failed if the endpoint refused or blocked it.

    A back-end with tools asks several times: the last response is that with the answer, but the
    back-end's text and counts are those of all.
    """
    if not responses:
        return reply
    read = reply_of_completion(responses[-1])
    if read.failed is not None:
        return read
    if len(responses) > 1:
        return replace(reply, finish=read.finish)
    return read


def _accepted(payload: dict[str, Any]) -> dict[str, Any]:
    """A request as models that reason accept it: lmms-eval's ``openai`` changes the same."""
    if not takes_no_temperature(payload["model"]):
        return payload
    body = dict(payload)
    body.pop("temperature", None)
    if "max_tokens" in body:
        body["max_completion_tokens"] = body.pop("max_tokens")
    return body
