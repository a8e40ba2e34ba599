"""Questions to a judge and their outcomes.

A response without a valid verdict is *unjudged*, with a reason; it never gets a score.
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

REFUSED = "refused"
INVALID = "invalid after one repair"
REPAIR = ":repair"
"""Suffix of the key of a repair request."""
_SORTED = json.JSONEncoder(sort_keys=True)


@dataclass(frozen=True)
class Question:
    """One response to judge: the sample's id, its document (with ``target``), and the response.

    ``images`` are shown, in their order, if rubric and judge allow it.
    """

    sample_id: str
    document: Mapping[str, Any]
    response: str
    images: tuple[ImageSource, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """The outcome of one question.

    Args:
        key: of the first answer in the verdict store; a repair has ``key + REPAIR``. None if there was no prompt.
            Samples with the same prompt share it.
        verdict: None if the sample is unjudged.
        reason: why it is unjudged; None if there is a verdict.
        repaired: the verdict came from the repair request.
        prompt_tokens, completion_tokens: sum over the first answer and the repair, as stored.
    """

    key: str | None
    verdict: Verdict | None
    reason: str | None
    repaired: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass
class Adjudication:
    """A judgement for every question, by sample id in the order of the questions, and the tokens spent."""

    # not in the repr: asyncio.run computes one of its result, which is slow for thousands of judgements
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
    def repaired(self) -> int:
        """Number of samples whose verdict needed a repair, now or before."""
        return sum(one.repaired for one in self.judgements.values())

    @property
    def extra_keys(self) -> int:
        """Number of unknown keys in the verdicts; a verdict that several samples share counts once."""
        verdicts = {one.key: one.verdict for one in self.judgements.values() if one.verdict is not None}
        return sum(verdict.extra_keys for verdict in verdicts.values())


def verdict_key(settings: JudgeSettings, rubric: str, prompt: str, images: Sequence[str] = ()) -> str:
    """SHA-256 over everything that determines a verdict.

    That is the judge's identity, the rubric's hash, the rendered prompt, and the keys of the images in their order.
    """
    parts = {**judge_identity(settings, images=bool(images)), "rubric": rubric, "prompt": prompt}
    if images:
        parts["image_keys"] = list(images)
    return hashlib.sha256(_SORTED.encode(parts).encode()).hexdigest()
