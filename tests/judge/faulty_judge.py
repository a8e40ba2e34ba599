"""The stub judge with faults, drawn so that every run meets the same: each spoils one attempt at a request."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from medtasks.judge.stub import StubJudge, completion

FAULTS = {
    "too_many": "429 with Retry-After",
    "server_error": "500",
    "cut": "200, and the connection closes in the middle of the body",
    "prose": "sentences around the content, which is fenced half of the time",
    "wrong_keys": "every key of the content's object is renamed",
    "refusal": "a message.refusal",
}


class FaultyJudge(StubJudge):
    """A stub judge that spoils a share of its answers.

    Args:
        latency: as :class:`StubJudge`.
        seed: with the request's bytes and how often they came, it decides which fault an attempt meets; neither order
            nor concurrency moves it.
        retry_after: seconds that a 429 asks to wait.
        rates: by fault, 0 to 1 each.
    """

    def __init__(self, *, latency: float = 0.0, seed: int = 0, retry_after: float = 0.01, **rates: float) -> None:
        super().__init__(latency=latency)
        assert set(rates) <= set(FAULTS)
        self._rates, self._seed, self._retry_after = rates, seed, retry_after
        self._attempts: Counter[str] = Counter()

    async def _respond(self, request: web.Request, raw: bytes, body: Mapping[str, Any]) -> web.StreamResponse:
        digest = hashlib.sha256(raw).hexdigest()
        self._attempts[digest] += 1
        chance = random.Random(f"{self._seed}:{digest}:{self._attempts[digest]}")
        drawn, sums = chance.random(), itertools.accumulate(self._rates.values())
        fault = next((fault for fault, most in zip(self._rates, sums, strict=True) if drawn < most), None)
        if fault is None:
            return await super()._respond(request, raw, body)
        self.counts[fault] += 1
        if fault == "too_many":
            return web.Response(status=429, headers={"Retry-After": f"{self._retry_after:g}"})
        await asyncio.sleep(self._latency)
        if fault == "server_error":
            return web.Response(status=500)
        document = completion(body, *spoilt(fault, self._decide(body), chance))
        content = json.dumps(document).encode()
        if fault != "cut":
            return web.Response(body=content, content_type="application/json")
        response = web.StreamResponse()
        response.content_length = len(content)
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        assert request.transport is not None
        request.transport.close()
        return response


def spoilt(fault: str, content: str, chance: random.Random) -> tuple[str | None, str | None]:
    """Content and refusal of the answer under the fault."""
    if fault == "prose":
        inner = f"```json\n{content}\n```" if chance.random() < 0.5 else content
        return f"Let me weigh this step by step.\n\n{inner}\n\nThis is my final verdict.", None
    if fault == "wrong_keys":
        return json.dumps({f"{key}_given": one for key, one in json.loads(content).items()}), None
    if fault == "refusal":
        return None, "I cannot help with assessing medical answers."
    return content, None
