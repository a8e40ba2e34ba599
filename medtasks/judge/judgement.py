"""What is put to a judge, and what became of it.

A response without a valid verdict is *unjudged*, with a reason; nothing here turns it into a score.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medtasks.judge.client import Spent
from medtasks.judge.images import ImageSource
from medtasks.judge.settings import JudgeSettings, judge_identity
from medtasks.judge.verdict import Verdict

__all__ = ["INVALID", "REFUSED", "REPAIR", "Adjudication", "Judgement", "Question", "verdict_key"]

REFUSED = "refused"
INVALID = "invalid after one repair"
REPAIR = ":repair"
"""What the key of a repair request ends in."""
_SORTED = json.JSONEncoder(sort_keys=True)


@dataclass(frozen=True)
class Question:
    """One response to judge: the sample's id, its document (with ``target``), and what the model said.

    ``images`` are shown, in their order, where rubric and judge allow it.
    """

    sample_id: str
    document: Mapping[str, Any]
    response: str
    images: tuple[ImageSource, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What became of one question.

    Args:
        key: of the first answer in the verdict store, that of a repair being ``key + REPAIR``; None where the question
            could not be put. Samples whose prompts are the same share it.
        verdict: None where the sample is unjudged.
        reason: why it is unjudged; None where there is a verdict.
        repaired: the verdict came from the repair request.
        stored: it was in the store before.
        prompt_tokens, completion_tokens: of the first and the repair answer together, as stored; 0 where none came.
    """

    key: str | None
    verdict: Verdict | None
    reason: str | None
    repaired: bool = False
    stored: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass
class Adjudication:
    """A judgement for every question, by sample id in the order of the questions, and what it took to get them."""

    # not in the repr: asyncio.run makes one of what it returns, and with thousands of judgements that takes long
    judgements: dict[str, Judgement] = field(default_factory=dict, repr=False)
    spent: Spent = field(default_factory=Spent)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """By sample id."""
        return {name: one.verdict for name, one in self.judgements.items() if one.verdict is not None}

    @property
    def unjudged(self) -> dict[str, str]:
        """Reasons by sample id."""
        return {name: one.reason for name, one in self.judgements.items() if one.reason is not None}

    @property
    def coverage(self) -> float | None:
        """Share of the questions that have a verdict; None where nothing was asked."""
        return len(self.verdicts) / len(self.judgements) if self.judgements else None

    @property
    def stored(self) -> int:
        """Samples whose verdict was there before."""
        return sum(one.stored for one in self.judgements.values() if one.verdict is not None)

    @property
    def repaired(self) -> int:
        """Samples whose verdict needed a second question, now or before."""
        return sum(one.repaired for one in self.judgements.values())

    @property
    def extra_keys(self) -> int:
        """Keys in the verdicts that nobody asked for; a verdict that several samples share counts once."""
        verdicts = {one.key: one.verdict for one in self.judgements.values() if one.verdict is not None}
        return sum(verdict.extra_keys for verdict in verdicts.values())


def verdict_key(settings: JudgeSettings, rubric: str, prompt: str, images: Sequence[str] = ()) -> str:
    """SHA-256 over everything that determines a verdict.

    Args:
        settings: of the judge; its address and prices do not count.
        rubric: hash of the rubric.
        prompt: the rendered text.
        images: keys of the images that are shown, in their order.
    """
    parts = {**judge_identity(settings, images=bool(images)), "rubric": rubric, "prompt": prompt}
    if images:
        parts["image_keys"] = list(images)
    return hashlib.sha256(_SORTED.encode(parts).encode()).hexdigest()
