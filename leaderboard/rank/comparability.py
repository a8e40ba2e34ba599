"""Comparability groups: which runs' scores of one metric are comparable, and why the others are not."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.files import canonical_json
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import frame_settings, protocol_hash
from medtasks.runs.scores import MetricScore
from medtasks.runs.signature import differences, format_signature, parse_signature, versions_today

from ..verify.scored_run import Entry, ScoredRun
from ..verify.verification import Verification

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
class Standing:
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
class _Run:
    """One run's score of the metric; ``group_key`` is equal for comparable runs, ``share`` is that of the release.

    ``level`` is that of :func:`level`.
    """

    digest: ScoredRun
    score: MetricScore
    signature: str
    group_key: tuple[str, str]
    eligible: bool
    share: float
    level: int

    @property
    def key(self) -> str:
        return str(self.digest.facts.key)

    @property
    def asked(self) -> dict[str, str]:
        parts = parse_signature(self.signature)
        return {key: parts[key] for key in _ASKED if key in parts}


class Standings:
    """The comparability groups of several runs; ``demonstration`` allows miniature data."""

    def __init__(self, digests: Iterable[ScoredRun], *, demonstration: bool) -> None:
        self._digests = sorted(digests, key=lambda one: (one.facts.created, one.facts.key))
        self._demonstration = demonstration
        self._items: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[str, str], Standing] = {}

    def of(self, task: str, metric: str) -> Standing:
        """The comparability group of one metric of one task or group.

        Its runs are complete, not blind, not on miniature data, not refused (:func:`refusals`), and have equal
        signatures and items. If there are several such sets, one with values is preferred, then all clusters, verified
        runs (:func:`level`), today's task files, most of the release (:func:`released_share`), most models, and the
        first signature. Runs that are not verified are ranked only if no run is, and among themselves whatever data
        and items they claim: nobody can tell here which are right, so none may displace another. Only the newest
        comparable run per model is used.
        """
        if (task, metric) not in self._known:
            self._known[task, metric] = self._standing(task, metric)
        return self._known[task, metric]

    def _standing(self, task: str, metric: str) -> Standing:
        runs = self._runs(task, metric)
        main = _comparable(runs, task)
        ranked, replaced = _newest([run for run in main if run.score.value is not None])
        unscored = [
            run for run in runs if main and run.eligible and run.score.value is None and run.asked == main[0].asked
        ]
        waiting, older = _newest(unscored)
        replaced |= older
        for model in ranked.keys() & waiting.keys():
            replaced[waiting.pop(model).key] = ranked[model].key
        placed = {run.key for run in (*ranked.values(), *waiting.values())} | replaced.keys()
        apart: dict[str, tuple[str, ...]] = {}
        rest = [run for run in runs if run.key not in placed]
        for one in dict.fromkeys(run.group_key for run in rest):
            others, older = _newest([run for run in rest if run.group_key == one])
            replaced |= older
            apart |= {run.key: self._reasons(run, task, metric, main) for run in others.values()}
        return Standing(
            signature=main[0].signature if main else "",
            ranked={model: run.digest for model, run in sorted(ranked.items())},
            waiting={model: run.digest for model, run in sorted(waiting.items())},
            apart=apart,
            replaced=replaced,
            usual=not main or _is_usual(main[0], task),
        )

    def blind_twins(self, task: str, metric: str) -> dict[str, ScoredRun]:
        """By ranked model, its newest run on the same items without media that was otherwise asked the same.

        Such a run has another protocol hash, which covers both `blind` and the generation settings; those are compared
        themselves.
        """
        ranked = self.of(task, metric).ranked
        items = {model: self._items_of(one, task) for model, one in ranked.items()}
        found = {}
        for run in self._runs(task, metric):  # oldest first
            model = run.digest.model
            if not (model in ranked and run.digest.blind and self._counts(run.digest, task)):
                continue
            if self._items_of(run.digest, task) == items[model] and _asked_blindly(
                run.digest, ranked[model], task, metric
            ):
                found[model] = run.digest
        return found

    def _counts(self, digest: ScoredRun, task: str) -> bool:
        """Whether the run is complete, not refused and, unless in a demonstration, not on miniature data."""
        mini = digest.facts.mini and not self._demonstration
        return not (mini or refusals(digest, task)) and digest.complete.get(task, False)

    def _runs(self, task: str, metric: str) -> list[_Run]:
        """The runs that have a score for the metric, oldest first."""
        found = []
        for digest in self._digests:
            entry = digest.entries.get(task)
            score = None if entry is None else entry.scores.metrics.get(metric)
            if entry is None or score is None or not score.samples:
                continue
            eligible = not digest.blind and self._counts(digest, task)
            own, line = level(digest, task), entry.signatures[metric]
            key = (
                (format_signature({**parse_signature(line), **_CLAIMED}), str(own))
                if own
                else (line, self._items_of(digest, task))
            )
            found.append(_Run(digest, score, line, key, eligible, released_share(entry), own))
        return found

    def _items_of(self, digest: ScoredRun, task: str) -> str:
        """A hash of items, and of how clusters divide them (stripped runs rename clusters)."""
        key = (digest.facts.key, task)
        if key not in self._items:
            entry = digest.entries[task]
            text = canonical_json([entry.items, clusters_by_item(entry)])
            self._items[key] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._items[key]

    def _reasons(self, run: _Run, task: str, metric: str, main: Sequence[_Run]) -> tuple[str, ...]:
        reasons = refusals(run.digest, task)
        if main and run.level > main[0].level:
            reasons += claims(run.digest, task) if run.level == 2 else [UNVERIFIED]
        if run.digest.blind:
            reasons.append(BLIND)
        if run.digest.facts.mini and not self._demonstration:
            reasons.append(MINIATURE)
        if unasked := not run.digest.complete.get(task, False):
            reasons.append(_unasked(run.digest, task))
        usual = coverage_notes(main[0].digest, task) if main else []
        reasons += [note for note in coverage_notes(run.digest, task) if note not in usual]
        if main and not (run.digest.blind and _asked_blindly(run.digest, main[0].digest, task, metric)):
            here, there = run.signature, main[0].signature
            if run.level and run.group_key == main[0].group_key and run.share < main[0].share:
                reasons.append(SMALLER)
            # that an incomplete run has other items goes without saying
            reasons += differences(_with_items_of(there, here) if unasked else here, there)
            if run.signature == main[0].signature and self._items_of(run.digest, task) != self._items_of(
                main[0].digest, task
            ):
                reasons.append(OTHER_ITEMS)
        return tuple(dict.fromkeys(reasons))


def _with_items_of(other: str, signature: str) -> str:
    return format_signature({**parse_signature(signature), "items": parse_signature(other).get("items", "none")})


def coverage_notes(digest: ScoredRun, task: str) -> list[str]:
    """The run's notes about media that were missing when the task's data were prepared."""
    benchmark = load_spec(task).metadata.benchmark
    return [note for note in digest.facts.notes if note.startswith(f"{benchmark}: coverage ")]


def refusals(digest: ScoredRun, task: str) -> list[str]:
    """The reasons not to rank the run in a task or group, a sentence each."""
    found = _outcomes(digest, task)
    return [_of_task(task, leaf, one.reason) for leaf, one in found.items() if one.outcome == "refused"]


def claims(digest: ScoredRun, task: str) -> list[str]:
    """Why scores of the run in a task or group are those that were submitted, a sentence each."""
    found = _outcomes(digest, task)
    return list(dict.fromkeys(one.reason for one in found.values() if one.claimed))


def level(digest: ScoredRun, task: str) -> int:
    """How far a task or group is verified: 0 in full, 1 scored from the responses, but with the documents that were
    submitted, 2 with scores that were submitted."""
    found = _outcomes(digest, task).values()
    return max((2 if one.claimed else int(one.outcome == "unverifiable") for one in found), default=0)


def _outcomes(digest: ScoredRun, task: str) -> dict[str, Verification]:
    return {leaf: digest.verification[leaf] for leaf in leaf_tasks(task) if leaf in digest.verification}


def _of_task(task: str, leaf: str, reason: str) -> str:
    return reason if leaf == task else f"{leaf}: {reason}"


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
        return {model: one.statistics[metric] for model, one in entries.items()}, several[0].clusters if several else ()
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
    published = get_benchmark(entry.benchmark).published_items(entry.name)
    return min(1.0, len(entry.items) / published) if published else 1.0


def _comparable(runs: Sequence[_Run], task: str) -> list[_Run]:
    """The runs to rank; empty if none is eligible."""
    sets: dict[tuple[str, str], list[_Run]] = {}
    for run in runs:
        if run.eligible:
            sets.setdefault(run.group_key, []).append(run)

    def quality(members: list[_Run]) -> tuple[bool, bool, int, bool, float]:
        valued = any(run.score.value is not None for run in members)
        usual = _is_usual(members[0], task)
        share = max(run.share for run in members)
        return not valued, "subset" in members[0].asked, members[0].level, not usual, -share

    def order(members: list[_Run]) -> tuple[tuple[bool, bool, int, bool, float], int, tuple[str, str]]:
        valued = {run.digest.model for run in members if run.score.value is not None}
        return quality(members), -len(valued), members[0].group_key

    best = min(sets.values(), key=order, default=[])
    most = max((run.share for run in best), default=0.0)
    return [run for run in best if not run.level or run.share >= min(most, _WHOLE)]


def _newest(runs: Sequence[_Run]) -> tuple[dict[str, _Run], dict[str, str]]:
    """The newest run of each model, and the one that replaces each older run."""
    newest = {run.digest.model: run for run in runs}
    return newest, {run.key: newest[run.digest.model].key for run in runs if run is not newest[run.digest.model]}


def _asked_blindly(blind: ScoredRun, seeing: ScoredRun, task: str, metric: str) -> bool:
    """Whether the two runs differ only in that the first had no media."""
    here, there = (parse_signature(one.entries[task].signatures[metric]) for one in (blind, seeing))
    differing = {key for key in {*here, *there} if here.get(key) != there.get(key)}
    settings = [[one.facts.generation.get(leaf) for leaf in leaf_tasks(task)] for one in (blind, seeing)]
    return differing <= {"blind", "protocol"} and settings[0] == settings[1]


def _unasked(digest: ScoredRun, task: str) -> str:
    """Why the run of a task or group is incomplete."""
    counts = digest.facts.counts
    leaves = leaf_tasks(task)
    if lacking := [leaf for leaf in leaves if leaf not in counts]:
        return f"run without {', '.join(lacking)}"
    answered, asked = (sum(counts[leaf].get(what, 0) for leaf in leaves) for what in ("answered", "asked"))
    if answered < asked:
        limited = "run with --limit: " if "limit" in digest.facts.settings else ""
        return f"{limited}{answered:,} of {asked:,} documents"
    return "streaming items without all of their rounds"


def _is_usual(run: _Run, task: str) -> bool:
    """Whether the run follows today's task files, with the harness's usual settings."""
    protocols = run.digest.facts.protocols
    leaves = [leaf for leaf in leaf_tasks(task) if leaf in protocols]
    if "harness" in run.asked or versions_today(leaves).items() - run.asked.items():  # a hash alone can be claimed
        return False
    return all(protocols[leaf] in protocols_today(leaf) for leaf in leaves)


@functools.cache
def protocols_today(task: str) -> frozenset[str]:
    """The protocol hashes of a run with the unchanged task file; the harness turns temperatures into floats."""
    spec = load_spec(task)
    settings = spec.generation
    floats = {key: float(value) if key == "temperature" else value for key, value in settings.items()}
    frames = frame_settings(spec)
    whole = {**frames, "cap": None} if frames else {}
    return frozenset(protocol_hash(spec, one, frames=whole) for one in (settings, floats))


def same_responses(digests: Iterable[ScoredRun]) -> dict[str, dict[str, list[str]]]:
    """By run, the runs of other models with the same responses, with the tasks: a copy, or a coincidence."""
    by_responses: dict[tuple[str, str], list[ScoredRun]] = {}
    for digest in digests:
        for task, found in digest.responses.items():
            if found:
                by_responses.setdefault((task, found), []).append(digest)
    copies: dict[str, dict[str, list[str]]] = {}
    for (task, _), several in by_responses.items():
        for one in several:
            for other in several:
                if one.model != other.model:
                    copies.setdefault(one.facts.key, {}).setdefault(other.facts.key, []).append(task)
    return copies
