"""Scores of runs as candidates for a ranking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from medtasks.catalog.spec import leaf_tasks
from medtasks.runs.run_signatures import versions_today
from medtasks.runs.signature import changed_signature, parse_signature
from medtasks.scoring.scores import MetricScore

from ..verify.protocols import protocols_today
from ..verify.scored_run import ScoredRun

_ASKED = (
    "task",
    "group",
    "version",
    "filters",
    "prompt",
    "protocol",
    "data",
    "items",
    "subset",
    "blind",
    "pace",
    "harness",
)
"""Parts of a signature that describe what was asked; runs without a score are compared by these."""
_CLAIMED = {"items": "", "data": ""}
"""Parts of a signature that only the data could confirm.

Runs that are not verified may differ in them.
"""


class VerificationLevel(IntEnum):
    """How far the runs of a group are verified; a lower level is better."""

    VERIFIED = 0
    """In full."""
    SUBMITTED_DOCUMENTS = 1
    """Scored from the responses, but with the documents that were submitted."""
    SUBMITTED_SCORES = 2
    """With scores that were submitted."""


@dataclass(frozen=True, eq=False)
class ScoreCandidate:
    """One run's score of the metric.

    ``items`` is a hash of the items, ``share`` their share of the release, and ``refused`` says why
    the run was refused, if it was. ``complete`` is whether every document was asked, ``mini``
    whether the run is on miniature data, which are not allowed.
    """

    run: ScoredRun
    task: str
    score: MetricScore
    signature: str
    items: str
    level: VerificationLevel
    share: float
    refused: tuple[str, ...]
    complete: bool
    mini: bool

    @property
    def key(self) -> str:
        return str(self.run.public.key)

    @property
    def model(self) -> str:
        return self.run.model

    @property
    def counts(self) -> bool:
        """Whether the score may be compared with others."""
        return self.complete and not self.mini and not self.refused

    @cached_property
    def group_key(self) -> tuple[str, str]:
        """Equal for comparable runs."""
        if self.level == VerificationLevel.VERIFIED:
            return self.signature, self.items
        return changed_signature(self.signature, **_CLAIMED), str(int(self.level))

    @cached_property
    def asked(self) -> dict[str, str]:
        """The parts of the signature that describe what was asked."""
        parts = parse_signature(self.signature)
        return {key: parts[key] for key in _ASKED if key in parts}

    @cached_property
    def usual(self) -> bool:
        """Whether the run follows today's task files."""
        protocols = self.run.public.protocols
        leaves = [leaf for leaf in leaf_tasks(self.task) if leaf in protocols]
        # a hash alone can be claimed, so versions are compared, too
        outdated = versions_today(leaves).items() - self.asked.items()
        if "harness" in self.asked or outdated:
            return False
        return all(protocols[leaf] in protocols_today(leaf) for leaf in leaves)


def verification_level(run: ScoredRun, task: str) -> VerificationLevel:
    """How far the least verified task of a task or group is verified."""
    level = VerificationLevel.VERIFIED
    for leaf in leaf_tasks(task):
        verification = run.verification.get(leaf)
        if verification is None:
            continue
        if verification.claimed:
            return VerificationLevel.SUBMITTED_SCORES
        if verification.outcome == "unverifiable":
            level = VerificationLevel.SUBMITTED_DOCUMENTS
    return level


def refusals(run: ScoredRun, task: str) -> Iterator[str]:
    """Why tasks of a task or group were refused."""
    for leaf in leaf_tasks(task):
        verification = run.verification.get(leaf)
        if verification is not None and verification.outcome == "refused":
            yield verification.reason if leaf == task else f"{leaf}: {verification.reason}"


def is_blind_twin(blind: ScoreCandidate, seeing: ScoreCandidate) -> bool:
    """Whether the run ``blind`` had no media, and differs from ``seeing`` in nothing else.

    Their protocol hashes differ, because these cover `blind`. They also cover the generation
    settings, so the settings themselves are compared.
    """
    if not blind.run.blind:
        return False
    blind_parts = parse_signature(blind.signature)
    seeing_parts = parse_signature(seeing.signature)
    for part in blind_parts.keys() | seeing_parts.keys():
        is_same = blind_parts.get(part) == seeing_parts.get(part)
        if not is_same and part not in ("blind", "protocol"):
            return False
    blind_settings = blind.run.public.generation
    seeing_settings = seeing.run.public.generation
    for leaf in leaf_tasks(blind.task):
        if blind_settings.get(leaf) != seeing_settings.get(leaf):
            return False
    return True
