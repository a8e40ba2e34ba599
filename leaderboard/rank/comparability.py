"""Comparability groups: which runs' scores of one metric are comparable, and why the others are
not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.runs.signature import (
    changed_signature,
    differences,
    has_unknown_prompts,
    parse_signature,
    versions_today,
)
from medtasks.scoring.scores import MetricScore

from ..verify.coverage import released_share
from ..verify.entries import Entry
from ..verify.protocols import protocols_today
from ..verify.scored_run import ScoredRun

BLIND = "blind: prompts without media"
_WHOLE = 0.95
"""The share of a release from which on no run that claims more of it displaces an unverified
one.
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
"""Parts of a signature that describe what was asked; runs without a score are compared by these
only.
"""
_CLAIMED = {"items": "", "data": ""}
"""Parts of a signature that only the data could confirm: runs that are not verified may differ in
them.
"""


@dataclass(frozen=True)
class ComparabilityGroup:
    """The comparable runs of one metric of one task or group, by model, and what happened to the
    others. ``ranked`` have a value; ``waiting`` were asked the same but have none. ``apart`` are
    the runs whose score is not comparable, and why; ``replaced`` gives by run the other run of the
    same model that counts instead. ``usual`` is False if the comparable runs do not follow today's
    task files. ``level`` is how far they are verified: 0 in full, 1 scored from the responses, but
    with the documents that were submitted, 2 with scores that were submitted.
    """

    signature: str
    ranked: dict[str, ScoredRun]
    waiting: dict[str, ScoredRun]
    apart: list[tuple[ScoredRun, tuple[str, ...]]]
    replaced: dict[str, str]
    usual: bool
    level: int


class _Candidate(NamedTuple):
    """One run's score of the metric; ``items`` is a hash, ``group_key`` is equal for comparable
    runs, ``share`` is that of the release, ``counts`` whether the run is complete, not refused and,
    unless allowed, not on miniature data.
    """

    run: ScoredRun
    score: MetricScore
    signature: str
    items: str
    level: int
    group_key: tuple[str, str]
    share: float
    refused: list[str]
    counts: bool

    @property
    def key(self) -> str:
        return str(self.run.public.key)


class ComparabilityGroups:
    """The comparability groups of several runs; ``demonstration`` allows miniature data."""

    def __init__(self, runs: Iterable[ScoredRun], *, demonstration: bool) -> None:
        self._runs = sorted(runs, key=lambda one: (one.public.created, one.public.key))
        self._demonstration = demonstration
        self._known: dict[tuple[str, str], ComparabilityGroup] = {}

    def of(self, task: str, metric: str) -> ComparabilityGroup:
        """The comparability group of one metric of one task or group.

        Its runs are complete, not blind, not on miniature data, not refused, and have equal
        signatures and items. If there are several such sets, one with values is preferred, then all
        clusters, verified runs, known prompts, today's task files, most of the release
        (:func:`released_share`), most models, and the first signature. Runs that are not verified
        are ranked only if no run is, and among themselves whatever data and items they claim:
        nobody can tell here which are right, so none may displace another. Only the newest
        comparable run per model is used.
        """
        if (task, metric) in self._known:
            return self._known[task, metric]
        runs = self._candidates(task, metric)
        eligible = [one for one in runs if one.counts and not one.run.blind]

        def order(members: list[_Candidate]) -> tuple[Any, ...]:
            first, valued = (
                members[0],
                {one.run.model for one in members if one.score.value is not None},
            )
            share = max(one.share for one in members)
            unknown_prompts = has_unknown_prompts(first.signature)
            usual = _is_usual(first, task)
            quality = (
                not valued,
                "subset" in _asked(first),
                first.level,
                unknown_prompts,
                not usual,
                -share,
            )
            return *quality, -len(valued), first.group_key

        best = min(_by_group(eligible), key=order, default=[])
        most = max((one.share for one in best), default=0.0)
        main = [one for one in best if not one.level or one.share >= min(most, _WHOLE)]
        ranked, replaced = _newest([one for one in main if one.score.value is not None])
        waiting, older = _newest(
            [one for one in eligible if one.score.value is None and _asked(one) == _asked(main[0])]
        )
        replaced |= older
        for model in ranked.keys() & waiting.keys():
            replaced[waiting.pop(model).key] = ranked[model].key
        placed = {one.key for one in (*ranked.values(), *waiting.values())} | replaced.keys()
        apart: list[tuple[ScoredRun, tuple[str, ...]]] = []
        for members in _by_group([one for one in runs if one.key not in placed]):
            others, older = _newest(members)
            replaced |= older
            apart += [(one.run, self._reasons(one, task, *main[:1])) for one in others.values()]
        signature, level = (main[0].signature, main[0].level) if main else ("", 0)
        usual = not main or _is_usual(main[0], task)
        counted, without = (
            {model: one.run for model, one in sorted(of.items())} for of in (ranked, waiting)
        )
        self._known[task, metric] = ComparabilityGroup(
            signature, counted, without, apart, replaced, usual, level
        )
        return self._known[task, metric]

    def blind_twins(self, task: str, metric: str) -> dict[str, tuple[ScoredRun, ScoredRun]]:
        """By ranked model, its run and its newest one without media on the same items, otherwise
        asked the same.
        """
        ranked, candidates = (
            self.of(task, metric).ranked,
            self._candidates(task, metric),
        )  # oldest first
        seeing = {one.run.model: one for one in candidates if ranked.get(one.run.model) is one.run}
        pairs = [
            (seeing[one.run.model], one)
            for one in candidates
            if one.counts and one.run.model in seeing
        ]
        twins = [
            (one, other)
            for one, other in pairs
            if one.items == other.items and _is_blind_twin(other, one, task)
        ]
        return {one.run.model: (one.run, blind.run) for one, blind in twins}

    def blind_runs(self, task: str, metric: str) -> list[ScoredRun]:
        """The newest run of each model that is comparable but for its prompts, which have no
        media.
        """
        return [
            run for run, reasons in self.of(task, metric).apart if run.blind and reasons == (BLIND,)
        ]

    def _candidates(self, task: str, metric: str) -> list[_Candidate]:
        """The runs that have a score for the metric, oldest first."""
        candidates = []
        for run in self._runs:
            entry = run.entries.get(task)
            score = None if entry is None else entry.scores.metrics.get(metric)
            if entry is None or score is None or not score.samples:
                continue
            signature, items = entry.signatures[metric], entry.items_hash
            outcomes = {
                leaf: run.verification[leaf]
                for leaf in leaf_tasks(task)
                if leaf in run.verification
            }
            level = max(
                [
                    2 * one.claimed or int(one.outcome == "unverifiable")
                    for one in outcomes.values()
                ],
                default=0,
            )
            group_key = (
                (changed_signature(signature, **_CLAIMED), str(level))
                if level
                else (signature, items)
            )
            no = {leaf: one.reason for leaf, one in outcomes.items() if one.outcome == "refused"}
            refused = [
                reason if leaf == task else f"{leaf}: {reason}" for leaf, reason in no.items()
            ]
            counts = run.complete.get(task, False) and not self._is_miniature(run) and not refused
            share = released_share(entry)
            candidates.append(
                _Candidate(run, score, signature, items, level, group_key, share, refused, counts)
            )
        return candidates

    def _is_miniature(self, run: ScoredRun) -> bool:
        return run.public.mini and not self._demonstration

    def _reasons(
        self, candidate: _Candidate, task: str, main: _Candidate | None = None
    ) -> tuple[str, ...]:
        """Why the run is not comparable with ``main``, the first of those that are."""
        run, reasons, leaves = candidate.run, [*candidate.refused], leaf_tasks(task)
        if main is not None and candidate.level > main.level:
            known = [run.verification[leaf] for leaf in leaves if leaf in run.verification]
            reasons += (
                [one.reason for one in known if one.claimed]
                if candidate.level == 2
                else [UNVERIFIED]
            )
        reasons += [BLIND] if run.blind else []
        reasons += [MINIATURE] if self._is_miniature(run) else []
        if unasked := not run.complete.get(task, False):
            counts = [run.public.counts[leaf] for leaf in leaves if leaf in run.public.counts]
            answered, asked = (
                sum(one.get(what, 0) for one in counts) for what in ("answered", "asked")
            )
            if lacking := [leaf for leaf in leaves if leaf not in run.public.counts]:
                reasons.append(f"run without {', '.join(lacking)}")
            elif answered < asked:
                limited = "run with --limit: " if "limit" in run.public.settings else ""
                reasons.append(f"{limited}{answered:,} of {asked:,} documents")
            else:
                reasons.append("streaming items without all of their rounds")
        usual = coverage_notes(main.run, task) if main is not None else []
        reasons += [note for note in coverage_notes(run, task) if note not in usual]
        if main is not None and not _is_blind_twin(candidate, main, task):
            here, there = candidate.signature, main.signature
            if (
                candidate.level
                and candidate.group_key == main.group_key
                and candidate.share < main.share
            ):
                reasons.append(SMALLER)
            # that an incomplete run has other items goes without saying
            if unasked:
                here = changed_signature(here, items=parse_signature(there).get("items", "none"))
            reasons += differences(here, there)
            if candidate.signature == main.signature and candidate.items != main.items:
                reasons.append(OTHER_ITEMS)
        return tuple(dict.fromkeys(reasons))


def coverage_notes(run: ScoredRun, task: str) -> list[str]:
    """The run's notes about media that were missing when the task's data were prepared."""
    benchmark = load_spec(task).metadata.benchmark
    return [note for note in run.public.notes if note.startswith(f"{benchmark}: coverage ")]


def on_common_items(
    entries: Mapping[str, Entry], metric: str
) -> tuple[dict[str, Array], Sequence[str]]:
    """The statistics of all models on the same items, and the cluster of each. Verified runs have
    equal items. Others may claim any: each row is then an item in a cluster, and a run without it
    has no value there. Runs that contradict each other about the question of an item share no row:
    the items on which they agree are a choice of one of them."""
    first, *others = entries.values()
    claimed = (first.items, first.clusters, first.questions)
    if all((one.items, one.clusters, one.questions) == claimed for one in others):
        return {model: one.statistics(metric) for model, one in entries.items()}, first.clusters
    party_of = _parties(entries)
    names: dict[str, list[tuple[str, str, int]]] = {}
    for model, entry in entries.items():
        names[model] = [
            (*name, party_of[model]) for name in zip(entry.items, entry.first_items, strict=True)
        ]
    row_of = {
        name: row
        for row, name in enumerate(sorted({name for found in names.values() for name in found}))
    }
    tables = {}
    for model, entry in entries.items():
        table = np.full((len(row_of), get_metric(metric).width), np.nan)
        table[[row_of[name] for name in names[model]]] = entry.statistics(metric)
        tables[model] = table
    return tables, [cluster for _, cluster, _ in row_of]


def _parties(entries: Mapping[str, Entry]) -> dict[str, int]:
    """The number of each model's party: within one, no two runs contradict each other about a
    question."""
    parties: list[list[Entry]] = []
    party_of: dict[str, int] = {}
    for model, entry in entries.items():
        agreeing = (
            number
            for number, members in enumerate(parties)
            if not any(map(entry.contradicts, members))
        )
        number = next(agreeing, len(parties))
        if number == len(parties):
            parties.append([])
        parties[number].append(entry)
        party_of[model] = number
    return party_of


def _by_group(runs: Iterable[_Candidate]) -> list[list[_Candidate]]:
    groups: dict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    for one in runs:
        groups[one.group_key].append(one)
    return [*groups.values()]


def _newest(runs: Sequence[_Candidate]) -> tuple[dict[str, _Candidate], dict[str, str]]:
    """The newest run of each model, and the one that replaces each older run."""
    newest = {one.run.model: one for one in runs}
    return newest, {
        one.key: newest[one.run.model].key for one in runs if one is not newest[one.run.model]
    }


def _asked(candidate: _Candidate) -> dict[str, str]:
    parts = parse_signature(candidate.signature)
    return {key: parts[key] for key in _ASKED if key in parts}


def _is_blind_twin(blind: _Candidate, seeing: _Candidate, task: str) -> bool:
    """Whether the first run had no media, and differs from the second only in that: it has another
    protocol hash, which covers both `blind` and the generation settings; those are compared
    themselves.
    """
    here, there = parse_signature(blind.signature), parse_signature(seeing.signature)
    differing = {key for key in {*here, *there} if here.get(key) != there.get(key)}
    settings = [
        [one.run.public.generation.get(leaf) for leaf in leaf_tasks(task)]
        for one in (blind, seeing)
    ]
    return blind.run.blind and differing <= {"blind", "protocol"} and settings[0] == settings[1]


def _is_usual(candidate: _Candidate, task: str) -> bool:
    protocols, asked = candidate.run.public.protocols, _asked(candidate)
    leaves = [leaf for leaf in leaf_tasks(task) if leaf in protocols]
    others = versions_today(leaves).items() - asked.items()  # a hash alone can be claimed
    return (
        "harness" not in asked
        and not others
        and all(protocols[leaf] in protocols_today(leaf) for leaf in leaves)
    )
