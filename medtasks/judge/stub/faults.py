"""What can go wrong on the way to a judge and back, drawn so that every run meets the same."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass

from medtasks.errors import UsageError

__all__ = ["FAULT_KINDS", "Faults", "spoilt"]

FAULT_KINDS = (
    "too_many",
    "server_error",
    "cut",
    "truncated_json",
    "prose",
    "wrong_keys",
    "refusal",
    "duplicate",
    "slow",
)


@dataclass(frozen=True)
class Faults:
    """How often which fault happens: rates 0..1 per attempt, at most one fault each, so their sum is at most 1.

    A fault depends on the seed, the request's bytes and how often these bytes came before, so neither order nor
    concurrency moves it. ``UsageError`` for a rate out of range or a sum above 1.
    """

    too_many: float = 0.0  # 429 at once, with Retry-After; also for the next ``burst - 1`` attempts of the same body
    server_error: float = 0.0  # 500
    cut: float = 0.0  # 200, and the connection closes in the middle of the body
    truncated_json: float = 0.0  # the content is its own first half, finish_reason "length"
    prose: float = 0.0  # sentences around the content, which is fenced half of the time
    wrong_keys: float = 0.0  # every key of the content's object is renamed
    refusal: float = 0.0  # message.refusal where a response_format was asked for, else "I cannot ..."
    # The whole answer arrives, then the connection breaks before the message's announced end: the client has to ask
    # again although it was answered. The attempt after a duplicate never is one, so the body is answered twice.
    duplicate: float = 0.0
    slow: float = 0.0  # a good answer after ten times the latency
    burst: int = 1  # attempts
    retry_after: float = 1.0  # seconds

    def __post_init__(self) -> None:
        rates = {kind: float(getattr(self, kind)) for kind in FAULT_KINDS}
        for kind, rate in rates.items():
            if not 0 <= rate <= 1:
                raise UsageError(f"Faults: {kind} is {rate}, expected a rate from 0 to 1")
        if math.fsum(rates.values()) > 1 + 1e-9:
            raise UsageError(f"Faults: the rates sum to {math.fsum(rates.values()):g}, expected at most 1: lower some")
        if self.burst < 1 or not 0 <= self.retry_after < math.inf:
            raise UsageError(f"Faults: burst={self.burst}, retry_after={self.retry_after}; expected >= 1 and >= 0")

    @classmethod
    def mixed(cls, share: float) -> Faults:
        """All kinds equally often, together at rate ``share``; ``UsageError`` where that is not from 0 to 1."""
        rate = share / len(FAULT_KINDS)
        return cls(rate, rate, rate, rate, rate, rate, rate, rate, rate)

    def draw(self, seed: int, digest: str, attempt: int) -> tuple[str, random.Random]:
        """The fault kind ("ok" for none) of one attempt, and the generator for whatever else it leaves to chance."""
        if self == _NONE:
            return "ok", _UNUSED  # seeding a generator takes longer than all else that the server does for a request
        chance = random.Random(f"{seed}:{digest}:{attempt}")
        left = chance.random()
        for kind in FAULT_KINDS:
            left -= getattr(self, kind)
            if left < 0:
                return kind, chance
        return "ok", chance


_NONE = Faults()
_UNUSED = random.Random(0)


def spoilt(content: str, fault: str, chance: random.Random, structured: bool) -> tuple[str | None, str | None, str]:
    """Content, refusal and finish reason of the answer under the fault."""
    if fault == "truncated_json":
        return content[: len(content) // 2], None, "length"
    if fault == "prose":
        inner = f"```json\n{content}\n```" if chance.random() < 0.5 else content
        return f"Let me weigh this step by step.\n\n{inner}\n\nThis is my final verdict.", None, "stop"
    if fault == "wrong_keys":
        try:
            loaded = json.loads(content)
        except ValueError:
            loaded = content
        renamed = (
            {f"{key}_given": one for key, one in loaded.items()} if isinstance(loaded, dict) else {"said": content}
        )
        return json.dumps(renamed, ensure_ascii=False), None, "stop"
    if fault == "refusal":
        excuse = "I cannot help with assessing medical answers."
        return (None, excuse, "stop") if structured else (excuse, None, "stop")
    return content, None, "stop"
