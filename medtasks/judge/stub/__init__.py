"""A stub judge: a real HTTP server of OpenAI's chat API on loopback, with rule-based verdicts and faults to switch on.

For tests, benchmarks and ``medtasks demo``; its verdicts say nothing about medicine. It serves
``POST /v1/chat/completions`` and ``GET /v1/models`` over persistent HTTP/1.1 connections.
``python -m medtasks.judge.stub`` runs it in the foreground.

>>> with StubJudge(faults=Faults(server_error=0.05), latency=0.05) as stub:
...     stub.url.startswith("http://127.0.0.1:"), stub.requests, stub.peak
(True, [], 0)
"""

from __future__ import annotations

from medtasks.judge.stub.chat import MODEL
from medtasks.judge.stub.faults import FAULT_KINDS, Faults
from medtasks.judge.stub.ledger import Received
from medtasks.judge.stub.rule import rule_based, verdict_on
from medtasks.judge.stub.server import StubJudge

__all__ = ["FAULT_KINDS", "MODEL", "Faults", "Received", "StubJudge", "rule_based", "verdict_on"]
