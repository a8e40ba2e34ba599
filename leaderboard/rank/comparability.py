"""Comparability groups: which runs' scores are comparable, and why the others are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.runs.signature import has_unknown_prompts

from ..verify.coverage import released_share
from ..verify.scored_run import ScoredRun
from .apart import reasons_apart
from .candidates import (
    ScoreCandidate,
    VerificationLevel,
    is_blind_twin,
    refusals,
    verification_level,
)

_WHOLE = 0.95
"""The share of a release from which on a run counts as whole.

No run that claims more of the release displaces an unverified one.
"""


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
class BlindTwin:
    """Two runs of one model on the same items, asked the same with and without media."""

    seeing: ScoredRun
    blind: ScoredRun


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

    def blind_twins(self, task: str, metric: str) -> dict[str, BlindTwin]:
        """The ranked run of each model that also ran without media, with that run, by model.

        Of several runs without media, the newest counts.
        """
        ranked = self.of(task, metric).ranked
        candidates = self._candidates(task, metric)
        seeing: dict[str, ScoreCandidate] = {}
        for candidate in candidates:
            if ranked.get(candidate.model) is candidate.run:
                seeing[candidate.model] = candidate
        twins: dict[str, BlindTwin] = {}
        for blind in candidates:  # oldest first
            twin = seeing.get(blind.model)
            if twin is None or not blind.counts or blind.items != twin.items:
                continue
            if is_blind_twin(blind, twin):
                twins[blind.model] = BlindTwin(twin.run, blind.run)
        return twins

    def blind_runs(self, task: str, metric: str) -> list[ScoredRun]:
        """The newest run of each model that would be comparable if its prompts had media."""
        return [apart.run for apart in self.of(task, metric).apart if apart.only_blind]

    def _candidates(self, task: str, metric: str) -> list[ScoreCandidate]:
        """The runs that have a score for the metric, oldest first."""
        candidates = []
        for run in self._runs:
            entry = run.entries.get(task)
            score = None if entry is None else entry.scores.metrics.get(metric)
            if entry is None or score is None or not score.samples:
                continue
            candidates.append(
                ScoreCandidate(
                    run=run,
                    task=task,
                    score=score,
                    signature=entry.signatures[metric],
                    items=entry.items_hash,
                    level=verification_level(run, task),
                    share=released_share(entry),
                    refused=tuple(refusals(run, task)),
                    complete=run.complete.get(task, False),
                    mini=run.public.mini and not self._demonstration,
                )
            )
        return candidates


def _comparability_group(candidates: Sequence[ScoreCandidate]) -> ComparabilityGroup:
    """The comparability group of one score: every candidate is ranked, waiting, apart or replaced.

    ``candidates`` are all runs that have the score, oldest first.
    """
    eligible = [
        candidate for candidate in candidates if candidate.counts and not candidate.run.blind
    ]
    comparable = _comparable_candidates(eligible)
    main = comparable[0] if comparable else None  # what the others are compared with
    with_value = [candidate for candidate in comparable if candidate.score.value is not None]
    without_value = _waiting_candidates(eligible, main)
    remaining = _without(candidates, [*with_value, *without_value])

    ranked = _newest_by_model(with_value)
    waiting = _newest_by_model(without_value)
    replaced = _replacements(with_value) | _replacements(without_value)
    for model in ranked.keys() & waiting.keys():
        superseded = waiting.pop(model)
        replaced[superseded.key] = ranked[model].key

    apart: list[RunApart] = []
    for members in _by_group(remaining):
        replaced |= _replacements(members)
        for candidate in _newest_by_model(members).values():
            apart.append(RunApart(candidate.run, reasons_apart(candidate, main)))
    return ComparabilityGroup(
        signature="" if main is None else main.signature,
        ranked=_runs_by_model(ranked),
        waiting=_runs_by_model(waiting),
        apart=apart,
        replaced=replaced,
        usual=main is None or main.usual,
        level=VerificationLevel.VERIFIED if main is None else main.level,
    )


def _without(
    candidates: Iterable[ScoreCandidate], excluded: Iterable[ScoreCandidate]
) -> list[ScoreCandidate]:
    """The candidates that are not among those ``excluded``, in the same order."""
    excluded_keys = {candidate.key for candidate in excluded}
    return [candidate for candidate in candidates if candidate.key not in excluded_keys]


def _runs_by_model(candidates: Mapping[str, ScoreCandidate]) -> dict[str, ScoredRun]:
    """The runs of the candidates by model, sorted by model."""
    return {model: candidate.run for model, candidate in sorted(candidates.items())}


def _waiting_candidates(
    eligible: Sequence[ScoreCandidate], main: ScoreCandidate | None
) -> list[ScoreCandidate]:
    """The candidates asked the same as ``main`` that have no value, for example unjudged ones."""
    if main is None:
        return []
    waiting = []
    for candidate in eligible:
        if candidate.score.value is None and candidate.asked == main.asked:
            waiting.append(candidate)
    return waiting


def _comparable_candidates(eligible: Sequence[ScoreCandidate]) -> list[ScoreCandidate]:
    """The candidates that are comparable with each other, in the same order; one set of several.

    In the preferred set (`_preference`), unverified runs with a smaller share of the release are
    left out, unless they have nearly all of it.
    """
    preferred = min(_by_group(eligible), key=_preference, default=[])
    largest = max((candidate.share for candidate in preferred), default=0.0)
    least_share = min(largest, _WHOLE)
    comparable = []
    for candidate in preferred:
        is_verified = candidate.level == VerificationLevel.VERIFIED
        if is_verified or candidate.share >= least_share:
            comparable.append(candidate)
    return comparable


def _preference(members: Sequence[ScoreCandidate]) -> tuple[Any, ...]:
    """A sort key by which the preferred set of candidates is first (`ComparabilityGroups.of`)."""
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


def _by_group(candidates: Iterable[ScoreCandidate]) -> list[list[ScoreCandidate]]:
    """The candidates in sets that are comparable with each other."""
    groups: dict[tuple[str, str], list[ScoreCandidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.group_key].append(candidate)
    return list(groups.values())


def _newest_by_model(candidates: Iterable[ScoreCandidate]) -> dict[str, ScoreCandidate]:
    """The newest candidate of each model; ``candidates`` are sorted, oldest first."""
    newest: dict[str, ScoreCandidate] = {}
    for candidate in candidates:
        newest[candidate.model] = candidate  # in place of an older one
    return newest


def _replacements(candidates: Sequence[ScoreCandidate]) -> dict[str, str]:
    """For the key of each older run, that of the newest of its model; sorted, oldest first."""
    newest = _newest_by_model(candidates)
    replaced = {}
    for candidate in candidates:
        replacement = newest[candidate.model]
        if candidate is not replacement:
            replaced[candidate.key] = replacement.key
    return replaced
