"""The stub judge with faults, drawn so that every run meets the same: each spoils one attempt at a
request.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from medtasks.judge.stub import StubJudge, completion


class FaultyJudge(StubJudge):
    """A stub judge that spoils a share of its answers.

    Args:
        seed: with the request's bytes and how often they came, it decides which fault an attempt
            meets; neither order nor concurrency moves it.
        retry_after: seconds that a 429 asks to wait.
        rates: from 0 to 1, by fault: ``too_many`` (429 with Retry-After), ``server_error`` (500),
            ``cut`` (the connection closes in the middle of the body), ``prose`` around fenced
            content, ``wrong_keys`` in the content's object, or a ``refusal``.
    """

    def __init__(self, *, seed: int = 0, retry_after: float = 0.01, **rates: float) -> None:
        super().__init__()
        self._rates, self._seed, self._retry_after = rates, seed, retry_after
        self._attempts: Counter[bytes] = Counter()
        self.counts: Counter[str] = Counter()  # of faults

    async def _respond(self, request: web.Request, body: Mapping[str, Any]) -> web.StreamResponse:
        raw = await request.read()
        self._attempts[raw] += 1
        drawn = random.Random(f"{self._seed}:{raw!r}:{self._attempts[raw]}").random()
        sums = itertools.accumulate(self._rates.values())
        fault = next(
            (fault for fault, most in zip(self._rates, sums, strict=True) if drawn < most), None
        )
        if fault is None:
            return await super()._respond(request, body)
        self.counts[fault] += 1
        if fault == "too_many":
            return web.Response(status=429, headers={"Retry-After": f"{self._retry_after:g}"})
        if fault == "server_error":
            return web.Response(status=500)
        content, refusal = self._decide(body), None
        if fault == "prose":
            content = f"Let me weigh this.\n\n```json\n{content}\n```\n\nThis is my final verdict."
        elif fault == "wrong_keys":
            content = json.dumps({f"{key}_given": one for key, one in json.loads(content).items()})
        elif fault == "refusal":
            content, refusal = "", "I cannot help with assessing medical answers."
        whole = json.dumps(completion(body, content, refusal)).encode()
        if fault != "cut":
            return web.Response(body=whole, content_type="application/json")
        response = web.StreamResponse()
        response.content_length = len(whole)
        await response.prepare(request)
        await response.write(whole[: len(whole) // 2])
        assert request.transport is not None
        request.transport.close()
        return response
