"""Comparability groups: which runs' scores are comparable, and why the others are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.runs.signature import (
    changed_signature,
    differences,
    has_unknown_prompts,
    parse_signature,
    versions_today,
)
from medtasks.scoring.scores import MetricScore

from ..verify.coverage import released_share
from ..verify.protocols import protocols_today
from ..verify.run_notes import coverage_prefix
from ..verify.scored_run import ScoredRun

BLIND = "blind: prompts without media"
_WHOLE = 0.95
"""The share of a release from which on a run counts as whole.

No run that claims more of the release displaces an unverified one.
"""
MINIATURE = "miniature data: a demonstration, not a benchmark result"
OTHER_ITEMS = "items or clusters differ from those of other runs with the same signature"
UNVERIFIED = (
    "not verified: the data are not prepared where the board was built, as they are for other runs"
)
SMALLER = "fewer items than other runs of the release"

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


@dataclass(frozen=True)
class RunApart:
    """A run whose score is not comparable with the ranked ones, and why."""

    run: ScoredRun
    reasons: tuple[str, ...]

    @property
    def only_blind(self) -> bool:
        """Whether the score would be comparable if the prompts had media."""
        return self.run.blind and len(self.reasons) == 1


@dataclass(frozen=True)
class ComparabilityGroup:
    """The comparable runs of one metric of one task or group, by model.

    ``ranked`` have a value; ``waiting`` were asked the same but have none. ``apart`` are the runs
    whose score is not comparable, and ``replaced`` gives by run the other run of the same model
    that counts instead. ``usual`` is False if the comparable runs do not follow today's task files.
    """

    signature: str
    ranked: dict[str, ScoredRun]
    waiting: dict[str, ScoredRun]
    apart: list[RunApart]
    replaced: dict[str, str]
    usual: bool
    level: VerificationLevel


@dataclass(frozen=True, eq=False)
class _Candidate:
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


class ComparabilityGroups:
    """The comparability groups of several runs; ``demonstration`` allows miniature data."""

    def __init__(self, runs: Iterable[ScoredRun], *, demonstration: bool) -> None:
        self._runs = sorted(runs, key=lambda run: (run.public.created, run.public.key))
        self._demonstration = demonstration
        self._groups: dict[tuple[str, str], ComparabilityGroup] = {}

    def of(self, task: str, metric: str) -> ComparabilityGroup:
        """The comparability group of one metric of one task or group.

        Its runs are complete, not blind, not on miniature data, not refused, and have equal
        signatures and items. If there are several such sets, one with values is preferred, then all
        clusters, verified runs, known prompts, today's task files, most of the release
        (`released_share`), most models, and the first signature. Runs that are not verified are
        ranked only if no run is, and among themselves whatever data and items they claim: nobody
        can tell here which are right, so none may displace another. Only the newest comparable run
        per model is used.
        """
        score = (task, metric)
        if score not in self._groups:
            self._groups[score] = _comparability_group(self._candidates(task, metric))
        return self._groups[score]

    def blind_twins(self, task: str, metric: str) -> dict[str, tuple[ScoredRun, ScoredRun]]:
        """By ranked model, its run and its newest one without media, otherwise asked the same.

        Both are on the same items.
        """
        ranked = self.of(task, metric).ranked
        candidates = self._candidates(task, metric)
        seeing: dict[str, _Candidate] = {}
        for candidate in candidates:
            if ranked.get(candidate.model) is candidate.run:
                seeing[candidate.model] = candidate
        twins: dict[str, tuple[ScoredRun, ScoredRun]] = {}
        for blind in candidates:  # oldest first
            twin = seeing.get(blind.model)
            if twin is None or not blind.counts or blind.items != twin.items:
                continue
            if _is_blind_twin(blind, twin):
                twins[blind.model] = (twin.run, blind.run)
        return twins

    def blind_runs(self, task: str, metric: str) -> list[ScoredRun]:
        """The newest run of each model that would be comparable if its prompts had media."""
        return [apart.run for apart in self.of(task, metric).apart if apart.only_blind]

    def _candidates(self, task: str, metric: str) -> list[_Candidate]:
        """The runs that have a score for the metric, oldest first."""
        candidates = []
        for run in self._runs:
            entry = run.entries.get(task)
            score = None if entry is None else entry.scores.metrics.get(metric)
            if entry is None or score is None or not score.samples:
                continue
            candidates.append(
                _Candidate(
                    run=run,
                    task=task,
                    score=score,
                    signature=entry.signatures[metric],
                    items=entry.items_hash,
                    level=_verification_level(run, task),
                    share=released_share(entry),
                    refused=tuple(_refusals(run, task)),
                    complete=run.complete.get(task, False),
                    mini=run.public.mini and not self._demonstration,
                )
            )
        return candidates


def _verification_level(run: ScoredRun, task: str) -> VerificationLevel:
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


def _refusals(run: ScoredRun, task: str) -> Iterator[str]:
    """Why tasks of a task or group were refused."""
    for leaf in leaf_tasks(task):
        verification = run.verification.get(leaf)
        if verification is not None and verification.outcome == "refused":
            yield verification.reason if leaf == task else f"{leaf}: {verification.reason}"


def _comparability_group(candidates: Sequence[_Candidate]) -> ComparabilityGroup:
    """The group of the comparable candidates, and what happened to the others."""
    eligible = [
        candidate for candidate in candidates if candidate.counts and not candidate.run.blind
    ]
    comparable = _comparable_candidates(eligible)
    main = comparable[0] if comparable else None
    with_value, without_value = [], []
    for candidate in comparable:
        if candidate.score.value is not None:
            with_value.append(candidate)
    for candidate in eligible:
        if main is not None and candidate.score.value is None and candidate.asked == main.asked:
            without_value.append(candidate)
    ranked, replaced = _newest(with_value)
    waiting, replaced_waiting = _newest(without_value)
    replaced |= replaced_waiting
    for model in ranked.keys() & waiting.keys():
        replaced[waiting.pop(model).key] = ranked[model].key

    placed = {candidate.key for candidate in (*ranked.values(), *waiting.values())}
    placed |= replaced.keys()
    apart = []
    for members in _by_group([other for other in candidates if other.key not in placed]):
        newest, replaced_apart = _newest(members)
        replaced |= replaced_apart
        for candidate in newest.values():
            apart.append(RunApart(candidate.run, _reasons(candidate, main)))
    return ComparabilityGroup(
        signature="" if main is None else main.signature,
        ranked={model: candidate.run for model, candidate in sorted(ranked.items())},
        waiting={model: candidate.run for model, candidate in sorted(waiting.items())},
        apart=apart,
        replaced=replaced,
        usual=main is None or main.usual,
        level=VerificationLevel.VERIFIED if main is None else main.level,
    )


def _comparable_candidates(eligible: Sequence[_Candidate]) -> list[_Candidate]:
    """The candidates of the preferred set of comparable ones."""
    preferred = min(_by_group(eligible), key=_preference, default=[])
    largest = max((candidate.share for candidate in preferred), default=0.0)
    least_share = min(largest, _WHOLE)
    comparable = []
    for candidate in preferred:
        is_verified = candidate.level == VerificationLevel.VERIFIED
        if is_verified or candidate.share >= least_share:
            comparable.append(candidate)
    return comparable


def _preference(members: Sequence[_Candidate]) -> tuple[Any, ...]:
    """A sort key: the preferred set of comparable candidates is first (`ComparabilityGroups.of`)."""
    first = members[0]
    models = {candidate.model for candidate in members if candidate.score.value is not None}
    return (
        not models,
        "subset" in first.asked,
        first.level,
        has_unknown_prompts(first.signature),
        not first.usual,
        -max(candidate.share for candidate in members),
        -len(models),
        first.group_key,
    )


def _by_group(candidates: Iterable[_Candidate]) -> list[list[_Candidate]]:
    groups: dict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.group_key].append(candidate)
    return list(groups.values())


def _newest(candidates: Sequence[_Candidate]) -> tuple[dict[str, _Candidate], dict[str, str]]:
    """The newest run of each model, and the one that replaces each older run."""
    newest = {candidate.model: candidate for candidate in candidates}
    replaced = {}
    for candidate in candidates:
        if candidate is not newest[candidate.model]:
            replaced[candidate.key] = newest[candidate.model].key
    return newest, replaced


def _is_blind_twin(blind: _Candidate, seeing: _Candidate) -> bool:
    """Whether the first run had no media, and differs from the second only in that.

    It has another protocol hash, which covers both `blind` and the generation settings; those are
    compared themselves.
    """
    if not blind.run.blind:
        return False
    here, there = parse_signature(blind.signature), parse_signature(seeing.signature)
    differing = {key for key in {*here, *there} if here.get(key) != there.get(key)}
    if not differing <= {"blind", "protocol"}:
        return False
    settings = blind.run.public.generation
    others_settings = seeing.run.public.generation
    return all(settings.get(leaf) == others_settings.get(leaf) for leaf in leaf_tasks(blind.task))


def _reasons(candidate: _Candidate, main: _Candidate | None) -> tuple[str, ...]:
    """Why the run is not comparable with ``main``, the first of those that are."""
    run, task = candidate.run, candidate.task
    reasons = list(candidate.refused)
    if main is not None and candidate.level > main.level:
        reasons += _unverified_reasons(candidate)
    if run.blind:
        reasons.append(BLIND)
    if candidate.mini:
        reasons.append(MINIATURE)
    if not candidate.complete:
        reasons.append(_incomplete_reason(run, task))
    usual_notes = [] if main is None else coverage_notes(main.run, task)
    reasons += [note for note in coverage_notes(run, task) if note not in usual_notes]
    if main is not None and not _is_blind_twin(candidate, main):
        reasons += _differences(candidate, main)
    return tuple(dict.fromkeys(reasons))


def _unverified_reasons(candidate: _Candidate) -> list[str]:
    """Why a run is less verified than others."""
    if candidate.level == VerificationLevel.SUBMITTED_DOCUMENTS:
        return [UNVERIFIED]
    reasons = []
    for leaf in leaf_tasks(candidate.task):
        verification = candidate.run.verification.get(leaf)
        if verification is not None and verification.claimed:
            reasons.append(verification.reason)
    return reasons


def _incomplete_reason(run: ScoredRun, task: str) -> str:
    """What an incomplete run lacks of a task or group."""
    leaves = leaf_tasks(task)
    lacking = [leaf for leaf in leaves if leaf not in run.public.counts]
    if lacking:
        return f"run without {', '.join(lacking)}"
    answered = sum(run.public.counts[leaf].get("answered", 0) for leaf in leaves)
    asked = sum(run.public.counts[leaf].get("asked", 0) for leaf in leaves)
    if answered >= asked:
        return "streaming items without all of their rounds"
    documents = f"{answered:,} of {asked:,} documents"
    return f"run with --limit: {documents}" if "limit" in run.public.settings else documents


def _differences(candidate: _Candidate, main: _Candidate) -> list[str]:
    """How a run's items and signature differ from those of ``main``."""
    reasons = []
    is_unverified = candidate.level != VerificationLevel.VERIFIED
    if is_unverified and candidate.group_key == main.group_key and candidate.share < main.share:
        reasons.append(SMALLER)
    signature = candidate.signature
    if not candidate.complete:
        # an incomplete run has other items in any case
        items = parse_signature(main.signature).get("items", "none")
        signature = changed_signature(signature, items=items)
    reasons += differences(signature, main.signature)
    if candidate.signature == main.signature and candidate.items != main.items:
        reasons.append(OTHER_ITEMS)
    return reasons


def coverage_notes(run: ScoredRun, task: str) -> list[str]:
    """The run's notes about media that were missing when the task's data were prepared."""
    prefix = coverage_prefix(load_spec(task).metadata.benchmark)
    return [note for note in run.public.notes if note.startswith(prefix)]
