"""Asking a client of a small server, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tiny_endpoint import TinyEndpoint

from medtasks.judge.client import JudgeAnswer, JudgeClient, JudgeSettings, Spent, Unanswered

KEY = "planted-key-1234567890"
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


class JudgeRequest(NamedTuple):
    key: str
    messages: Any
    schema: dict[str, Any] | None


def question(text: str, schema: dict[str, Any] | None = None) -> JudgeRequest:
    return JudgeRequest(f"key of {text}", ({"role": "user", "content": text},), schema)


def questions(count: int) -> list[JudgeRequest]:
    return [question(f"q{number}") for number in range(count)]


@dataclass
class Asked:
    """What became of several requests, by the text of their last message, in the order of the outcomes."""

    client: JudgeClient
    outcomes: dict[str, JudgeAnswer | Unanswered] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)

    def text(self, name: str) -> str:
        answer = self.outcomes[name]
        assert isinstance(answer, JudgeAnswer), answer
        return answer.text

    def reason(self, name: str) -> str:
        failure = self.outcomes[name]
        assert isinstance(failure, Unanswered), failure
        return str(failure)


async def ask(client: JudgeClient, requests: Iterable[JudgeRequest]) -> Asked:
    """Ask all at once."""
    asked, before = Asked(client), replace(client.spent)

    async def one(request: JudgeRequest) -> None:
        name = request.key if callable(request.messages) else request.messages[-1]["content"]
        try:
            asked.outcomes[name] = await client.answer(*request)
        except Unanswered as failure:
            asked.outcomes[name] = failure

    async with client:
        await asyncio.gather(*map(one, requests))
    asked.spent = client.spent.since(before)
    return asked


def client_of(server: TinyEndpoint, **settings: Any) -> JudgeClient:
    return JudgeClient(JudgeSettings(base_url=server.url, model="judge", **{"backoff": 0.01, **settings}))


def run(server: TinyEndpoint, requests: Iterable[JudgeRequest], **settings: Any) -> Asked:
    """Ask, once, of a server that lives as long."""

    async def main() -> Asked:
        async with server:
            return await ask(client_of(server, **settings), requests)

    return asyncio.run(main())
