"""A stub judge: a real HTTP server of OpenAI's chat API on loopback, whose verdicts follow a simple word-overlap rule.

For ``medtasks demo``, tests and benchmarks; its verdicts say nothing about medicine. It serves
``POST /v1/chat/completions`` and ``GET /v1/models``. ``python -m medtasks.judge.stub`` runs it in the foreground.

>>> with StubJudge(latency=0.05) as stub:
...     stub.url.startswith("http://127.0.0.1:"), stub.requests
(True, [])
"""

from __future__ import annotations

from medtasks.judge.stub.rule import rule_based, verdict_on
from medtasks.judge.stub.server import MODEL, Received, StubJudge

__all__ = ["MODEL", "Received", "StubJudge", "rule_based", "verdict_on"]
