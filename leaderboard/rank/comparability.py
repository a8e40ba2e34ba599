"""Comparability groups: which runs' scores of one metric are comparable, and why the others are not."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.files import canonical_json, short_hash
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import frame_settings, protocol_hash
from medtasks.runs.record import Verification
from medtasks.runs.scores import MetricScore
from medtasks.runs.signature import differences, format_signature, parse_signature, versions_today

from ..verify.scored_run import Entry, ScoredRun

BLIND = "blind: prompts without media"
_WHOLE = 0.95
"""The share of a release from which on no run that claims more of it displaces an unverified one."""
MINIATURE = "miniature data: a demonstration, not a benchmark result"
OTHER_ITEMS = "items or clusters differ from those of other runs with the same signature"
UNVERIFIED = "not verified: the data are not prepared where the board was built, as they are for other runs"
SMALLER = "fewer items than other runs of the release"

_ASKED = ("task", "group", "version", "filters", "prompt", "protocol", "data", "items", "subset", "blind", "harness")
"""Parts of a signature that describe what was asked; runs without a score are compared by these only."""
_CLAIMED = {"items": "", "data": ""}
"""Parts of a signature that only the data could confirm: runs that are not verified may differ in them."""


@dataclass(frozen=True)
class ComparabilityGroup:
    """The comparable runs of one metric of one task or group, by model, and what happened to the others.

    ``ranked`` have a value; ``waiting`` were asked the same but have none. ``apart`` lists by run why its score is not
    comparable; ``replaced`` gives by run the other run of the same model that counts instead. ``usual`` is False if the
    comparable runs do not follow today's task files.
    """

    signature: str = ""
    ranked: dict[str, ScoredRun] = field(default_factory=dict)
    waiting: dict[str, ScoredRun] = field(default_factory=dict)
    apart: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    usual: bool = True


@dataclass(frozen=True)
class _Candidate:
    """One run's score of the metric; ``group_key`` is equal for comparable runs, ``share`` is that of the release.

    ``level`` is that of :func:`level`.
    """

    run: ScoredRun
    score: MetricScore
    signature: str
    group_key: tuple[str, str]
    eligible: bool
    share: float
    level: int

    @property
    def key(self) -> str:
        return str(self.run.public.key)

    @property
    def asked(self) -> dict[str, str]:
        parts = parse_signature(self.signature)
        return {key: parts[key] for key in _ASKED if key in parts}


class ComparabilityGroups:
    """The comparability groups of several runs; ``demonstration`` allows miniature data."""

    def __init__(self, runs: Iterable[ScoredRun], *, demonstration: bool) -> None:
        self._runs = sorted(runs, key=lambda one: (one.public.created, one.public.key))
        self._demonstration = demonstration
        self._items: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[str, str], ComparabilityGroup] = {}

    def of(self, task: str, metric: str) -> ComparabilityGroup:
        """The comparability group of one metric of one task or group.

        Its runs are complete, not blind, not on miniature data, not refused (:func:`refusals`), and have equal
        signatures and items. If there are several such sets, one with values is preferred, then all clusters, verified
        runs (:func:`level`), today's task files, most of the release (:func:`released_share`), most models, and the
        first signature. Runs that are not verified are ranked only if no run is, and among themselves whatever data
        and items they claim: nobody can tell here which are right, so none may displace another. Only the newest
        comparable run per model is used.
        """
        if (task, metric) in self._known:
            return self._known[task, metric]
        runs = self._candidates(task, metric)
        main = _comparable(runs, task)
        ranked, replaced = _newest([one for one in main if one.score.value is not None])
        unscored = [one for one in runs if main and one.eligible and one.score.value is None]
        waiting, older = _newest([one for one in unscored if one.asked == main[0].asked])
        replaced |= older
        for model in ranked.keys() & waiting.keys():
            replaced[waiting.pop(model).key] = ranked[model].key
        placed = {candidate.key for candidate in (*ranked.values(), *waiting.values())} | replaced.keys()
        apart: dict[str, tuple[str, ...]] = {}
        rest = [candidate for candidate in runs if candidate.key not in placed]
        for one in dict.fromkeys(candidate.group_key for candidate in rest):
            others, older = _newest([candidate for candidate in rest if candidate.group_key == one])
            replaced |= older
            apart |= {candidate.key: self._reasons(candidate, task, metric, main) for candidate in others.values()}
        self._known[task, metric] = ComparabilityGroup(
            signature=main[0].signature if main else "",
            ranked={model: candidate.run for model, candidate in sorted(ranked.items())},
            waiting={model: candidate.run for model, candidate in sorted(waiting.items())},
            apart=apart,
            replaced=replaced,
            usual=not main or _is_usual(main[0], task),
        )
        return self._known[task, metric]

    def blind_twins(self, task: str, metric: str) -> dict[str, tuple[ScoredRun, ScoredRun]]:
        """By ranked model, its run and its newest one without media on the same items, otherwise asked the same.

        Such a run has another protocol hash, which covers both `blind` and the generation settings; those are compared
        themselves.
        """
        ranked = self.of(task, metric).ranked
        found = {}
        for blind in (candidate.run for candidate in self._candidates(task, metric)):  # oldest first
            seeing = ranked.get(blind.model)
            if (
                seeing is not None
                and blind.blind
                and self._counts(blind, task)
                and self._items_of(blind, task) == self._items_of(seeing, task)
                and _asked_blindly(blind, seeing, task, metric)
            ):
                found[blind.model] = seeing, blind
        return found

    def _counts(self, run: ScoredRun, task: str) -> bool:
        """Whether the run is complete, not refused and, unless in a demonstration, not on miniature data."""
        mini = run.public.mini and not self._demonstration
        return not (mini or refusals(run, task)) and run.complete.get(task, False)

    def _candidates(self, task: str, metric: str) -> list[_Candidate]:
        """The runs that have a score for the metric, oldest first."""
        found = []
        for run in self._runs:
            entry = run.entries.get(task)
            score = None if entry is None else entry.scores.metrics.get(metric)
            if entry is None or score is None or not score.samples:
                continue
            eligible = not run.blind and self._counts(run, task)
            own, line = level(run, task), entry.signatures[metric]
            key = (line, self._items_of(run, task))
            if own:
                key = (format_signature({**parse_signature(line), **_CLAIMED}), str(own))
            found.append(_Candidate(run, score, line, key, eligible, released_share(entry), own))
        return found

    def _items_of(self, run: ScoredRun, task: str) -> str:
        """A hash of items, and of how clusters divide them (stripped runs rename clusters)."""
        key = (run.public.key, task)
        if key not in self._items:
            entry = run.entries[task]
            text = canonical_json([entry.items, clusters_by_item(entry)])
            self._items[key] = short_hash(text)
        return self._items[key]

    def _reasons(self, candidate: _Candidate, task: str, metric: str, main: Sequence[_Candidate]) -> tuple[str, ...]:
        reasons = refusals(candidate.run, task)
        if main and candidate.level > main[0].level:
            reasons += claims(candidate.run, task) if candidate.level == 2 else [UNVERIFIED]
        if candidate.run.blind:
            reasons.append(BLIND)
        if candidate.run.public.mini and not self._demonstration:
            reasons.append(MINIATURE)
        if unasked := not candidate.run.complete.get(task, False):
            reasons.append(_unasked(candidate.run, task))
        usual = coverage_notes(main[0].run, task) if main else []
        reasons += [note for note in coverage_notes(candidate.run, task) if note not in usual]
        if main and not (candidate.run.blind and _asked_blindly(candidate.run, main[0].run, task, metric)):
            here, there = candidate.signature, main[0].signature
            if candidate.level and candidate.group_key == main[0].group_key and candidate.share < main[0].share:
                reasons.append(SMALLER)
            # that an incomplete run has other items goes without saying
            if unasked:
                here = format_signature({**parse_signature(here), "items": parse_signature(there).get("items", "none")})
            reasons += differences(here, there)
            if candidate.signature == main[0].signature and self._items_of(candidate.run, task) != self._items_of(
                main[0].run, task
            ):
                reasons.append(OTHER_ITEMS)
        return tuple(dict.fromkeys(reasons))


def coverage_notes(run: ScoredRun, task: str) -> list[str]:
    """The run's notes about media that were missing when the task's data were prepared."""
    benchmark = load_spec(task).metadata.benchmark
    return [note for note in run.public.notes if note.startswith(f"{benchmark}: coverage ")]


def refusals(run: ScoredRun, task: str) -> list[str]:
    """The reasons not to rank the run in a task or group, a sentence each."""
    found = {leaf: one.reason for leaf, one in _outcomes(run, task).items() if one.outcome == "refused"}
    return [reason if leaf == task else f"{leaf}: {reason}" for leaf, reason in found.items()]


def claims(run: ScoredRun, task: str) -> list[str]:
    """Why scores of the run in a task or group are those that were submitted, a sentence each."""
    found = _outcomes(run, task)
    return list(dict.fromkeys(one.reason for one in found.values() if one.claimed))


def level(run: ScoredRun, task: str) -> int:
    """How far a task or group is verified: 0 in full, 1 scored from the responses, but with the documents that were
    submitted, 2 with scores that were submitted."""
    found = _outcomes(run, task).values()
    return max((2 if one.claimed else int(one.outcome == "unverifiable") for one in found), default=0)


def _outcomes(run: ScoredRun, task: str) -> dict[str, Verification]:
    return {leaf: run.verification[leaf] for leaf in leaf_tasks(task) if leaf in run.verification}


def clusters_by_item(entry: Entry) -> list[str]:
    """The cluster of each item, named by its first item: equal for equal clusters, whatever they are called."""
    first: dict[str, str] = {}
    return [first.setdefault(cluster, item) for item, cluster in zip(entry.items, entry.clusters, strict=True)]


def on_common_items(entries: Mapping[str, Entry], metric: str) -> tuple[dict[str, Array], Sequence[str]]:
    """The statistics of all models on the same items, and the cluster of each.

    Verified runs have equal items. Others may claim any: each row is then an item in a cluster, and a run without it
    has no value there.
    """
    several = list(entries.values())
    if len({(one.items, one.clusters) for one in several}) < 2:
        return {model: one.statistics[metric] for model, one in entries.items()}, several[0].clusters
    names = {model: list(zip(one.items, clusters_by_item(one), strict=True)) for model, one in entries.items()}
    row_of = {name: row for row, name in enumerate(sorted({name for found in names.values() for name in found}))}
    tables = {}
    for model, entry in entries.items():
        table = np.full((len(row_of), get_metric(metric).width), np.nan)
        table[[row_of[name] for name in names[model]]] = entry.statistics[metric]
        tables[model] = table
    return tables, [cluster for _, cluster in row_of]


def released_share(entry: Entry) -> float:
    """The share of the published number of items that the run has; 1 if that number is not known."""
    benchmark = get_benchmark(entry.benchmark)
    kind = entry.name.removeprefix(benchmark.name).removeprefix("_")  # a task or group is named after the kind
    published = benchmark.published.get(kind or "rows")
    return min(1.0, len(entry.items) / published) if published else 1.0


def _comparable(runs: Sequence[_Candidate], task: str) -> list[_Candidate]:
    """The runs to rank; empty if none is eligible."""
    sets: dict[tuple[str, str], list[_Candidate]] = {}
    for candidate in runs:
        if candidate.eligible:
            sets.setdefault(candidate.group_key, []).append(candidate)

    def order(members: list[_Candidate]) -> tuple[Any, ...]:
        first, valued = members[0], {one.run.model for one in members if one.score.value is not None}
        share = max(one.share for one in members)
        quality = (not valued, "subset" in first.asked, first.level, not _is_usual(first, task), -share)
        return *quality, -len(valued), first.group_key

    best = min(sets.values(), key=order, default=[])
    most = max((candidate.share for candidate in best), default=0.0)
    return [candidate for candidate in best if not candidate.level or candidate.share >= min(most, _WHOLE)]


def _newest(runs: Sequence[_Candidate]) -> tuple[dict[str, _Candidate], dict[str, str]]:
    """The newest run of each model, and the one that replaces each older run."""
    newest = {one.run.model: one for one in runs}
    return newest, {one.key: newest[one.run.model].key for one in runs if one is not newest[one.run.model]}


def _asked_blindly(blind: ScoredRun, seeing: ScoredRun, task: str, metric: str) -> bool:
    """Whether the two runs differ only in that the first had no media."""
    here, there = (parse_signature(one.entries[task].signatures[metric]) for one in (blind, seeing))
    differing = {key for key in {*here, *there} if here.get(key) != there.get(key)}
    settings = [[one.public.generation.get(leaf) for leaf in leaf_tasks(task)] for one in (blind, seeing)]
    return differing <= {"blind", "protocol"} and settings[0] == settings[1]


def _unasked(run: ScoredRun, task: str) -> str:
    """Why the run of a task or group is incomplete."""
    counts = run.public.counts
    leaves = leaf_tasks(task)
    if lacking := [leaf for leaf in leaves if leaf not in counts]:
        return f"run without {', '.join(lacking)}"
    answered, asked = (sum(counts[leaf].get(what, 0) for leaf in leaves) for what in ("answered", "asked"))
    if answered < asked:
        limited = "run with --limit: " if "limit" in run.public.settings else ""
        return f"{limited}{answered:,} of {asked:,} documents"
    return "streaming items without all of their rounds"


def _is_usual(candidate: _Candidate, task: str) -> bool:
    """Whether the run follows today's task files, with the harness's usual settings."""
    protocols = candidate.run.public.protocols
    leaves = [leaf for leaf in leaf_tasks(task) if leaf in protocols]
    others = versions_today(leaves).items() - candidate.asked.items()  # a hash alone can be claimed
    known = all(protocols[leaf] in protocols_today(leaf) for leaf in leaves)
    return known and "harness" not in candidate.asked and not others


@functools.cache
def protocols_today(task: str) -> frozenset[str]:
    """The protocol hashes of a run with the unchanged task file; the harness turns temperatures into floats."""
    spec = load_spec(task)
    settings = spec.generation
    floats = {key: float(value) if key == "temperature" else value for key, value in settings.items()}
    frames = frame_settings(spec)
    whole = {**frames, "cap": None} if frames else {}
    return frozenset(protocol_hash(spec, one, frames=whole) for one in (settings, floats))


def same_responses(runs: Iterable[ScoredRun]) -> dict[str, dict[str, list[str]]]:
    """By run, the runs of other models with the same responses, with the tasks: a copy, or a coincidence."""
    by_responses: dict[tuple[str, str], list[ScoredRun]] = {}
    for run in runs:
        for key in run.responses.items():
            by_responses.setdefault(key, []).append(run)
    copies: dict[str, dict[str, list[str]]] = {}
    for (task, responses), several in by_responses.items():
        for one, other in permutations(several, 2):
            if responses and one.model != other.model:
                copies.setdefault(one.public.key, {}).setdefault(other.public.key, []).append(task)
    return copies
