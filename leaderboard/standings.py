"""Comparability groups: which runs' scores of one metric are comparable, and why the others are not."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from medtasks.files import canonical_json
from medtasks.registry import get_benchmark
from medtasks.results.manifest import frame_settings, protocol_hash
from medtasks.results.scores import MetricScore
from medtasks.results.signature import differences, format_signature, parse_signature, versions_today
from medtasks.spec import leaf_tasks, load_spec

from .digest import Digest, Entry

BLIND = "blind: prompts without media"
MINIATURE = "miniature data: a demonstration, not a benchmark result"
OTHER_ITEMS = "items or clusters differ from those of other runs with the same signature"
DISPUTED = (
    "its documents differ from those of another run on the same data, and there are no data or document hashes to "
    "tell which are right; build with --documents"
)

_ASKED = ("task", "group", "version", "filters", "prompt", "protocol", "data", "items", "subset", "blind", "harness")
"""Parts of a signature that describe what was asked; runs without a score are compared by these only."""


@dataclass(frozen=True)
class Standing:
    """The comparable runs of one metric of one task or group, by model, and what happened to the others.

    ``ranked`` have a value; ``waiting`` were asked the same but have none. ``apart`` lists by run why its score is not
    comparable; ``replaced`` gives by run the other run of the same model that counts instead. ``usual`` is False if the
    comparable runs do not follow today's task files.
    """

    signature: str = ""
    ranked: dict[str, Digest] = field(default_factory=dict)
    waiting: dict[str, Digest] = field(default_factory=dict)
    apart: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    usual: bool = True


@dataclass(frozen=True)
class _Run:
    """One run's score of the metric; ``group_key`` is equal for comparable runs, ``share`` is that of the release."""

    digest: Digest
    score: MetricScore
    group_key: tuple[str, str]
    eligible: bool
    share: float

    @property
    def key(self) -> str:
        return str(self.digest.facts.key)

    @property
    def signature(self) -> str:
        return self.group_key[0]

    @property
    def asked(self) -> dict[str, str]:
        parts = parse_signature(self.signature)
        return {key: parts[key] for key in _ASKED if key in parts}


class Standings:
    """The comparability groups of several runs; ``demonstration`` allows miniature data."""

    def __init__(self, digests: Iterable[Digest], *, demonstration: bool) -> None:
        self._digests = sorted(digests, key=lambda one: (one.facts.created, one.facts.key))
        self._demonstration = demonstration
        self._items: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[str, str], Standing] = {}

    def of(self, task: str, metric: str) -> Standing:
        """The comparability group of one metric of one task or group.

        Its runs are complete, not blind, not on miniature data, without :func:`doubts`, and have equal signatures and
        items. If there are several such sets, one with values is preferred, then all clusters, verified documents
        (:func:`trust`), today's task files, most of the release (:func:`released_share`), most models, and the first
        signature. Sets whose documents contradict each other, and that none of the first five tells apart, are not
        ranked at all. Only the newest comparable run per model is used.
        """
        if (task, metric) not in self._known:
            self._known[task, metric] = self._standing(task, metric)
        return self._known[task, metric]

    def _standing(self, task: str, metric: str) -> Standing:
        runs = self._runs(task, metric)
        main, disputed = _comparable(runs, task)
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
            apart |= {run.key: self._reasons(run, task, metric, main, disputed) for run in others.values()}
        return Standing(
            signature=main[0].signature if main else "",
            ranked={model: run.digest for model, run in sorted(ranked.items())},
            waiting={model: run.digest for model, run in sorted(waiting.items())},
            apart=apart,
            replaced=replaced,
            usual=not main or _is_usual(main[0], task),
        )

    def blind_twins(self, task: str, metric: str) -> dict[str, Digest]:
        """By ranked model, its newest run on the same items without media that was otherwise asked the same.

        Such a run has another protocol hash, which covers both `blind` and the generation settings; those are compared
        themselves.
        """
        ranked = self.of(task, metric).ranked
        items = {model: self._items_of(one, one.entries[task]) for model, one in ranked.items()}
        found = {}
        for run in self._runs(task, metric):  # oldest first
            model = run.digest.model
            if not (model in ranked and run.digest.blind and self._counts(run.digest, task)):
                continue
            if run.group_key[1] == items[model] and _asked_blindly(run.digest, ranked[model], task, metric):
                found[model] = run.digest
        return found

    def _counts(self, digest: Digest, task: str) -> bool:
        """Whether the run is complete, without doubts and, unless in a demonstration, not on miniature data."""
        mini = digest.facts.mini and not self._demonstration
        return not (mini or doubts(digest, task)) and digest.complete.get(task, False)

    def _runs(self, task: str, metric: str) -> list[_Run]:
        """The runs that have a score for the metric, oldest first."""
        found = []
        for digest in self._digests:
            entry = digest.entries.get(task)
            score = None if entry is None else entry.scores.metrics.get(metric)
            if entry is None or score is None or not score.samples:
                continue
            eligible = not digest.blind and self._counts(digest, task)
            group_key = (entry.signatures[metric], self._items_of(digest, entry))
            found.append(_Run(digest, score, group_key, eligible, released_share(entry)))
        return found

    def _items_of(self, digest: Digest, entry: Entry) -> str:
        """A hash of items, of how clusters divide them (stripped runs rename clusters), and of documents that could
        not be compared with the data, because a signature can be forged."""
        key = (digest.facts.key, entry.name)
        if key not in self._items:
            first: dict[str, int] = {}
            clusters = [first.setdefault(cluster, number) for number, cluster in enumerate(entry.clusters)]
            unsure = [digest.documents[leaf] for leaf in leaf_tasks(entry.name) if leaf in digest.unverified]
            text = canonical_json([entry.items, clusters, [[one.view.fields, one.hashes.hex()] for one in unsure]])
            self._items[key] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._items[key]

    def _reasons(
        self, run: _Run, task: str, metric: str, main: Sequence[_Run], disputed: Sequence[_Run]
    ) -> tuple[str, ...]:
        reasons = doubts(run.digest, task)
        if run in disputed:
            reasons.append(DISPUTED)
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
            # that an incomplete run has other items goes without saying
            reasons += differences(_with_items_of(there, here) if unasked else here, there)
            if run.group_key != main[0].group_key and run.signature == main[0].signature:
                reasons.append(OTHER_ITEMS)
        return tuple(dict.fromkeys(reasons))


def _with_items_of(other: str, signature: str) -> str:
    return format_signature({**parse_signature(signature), "items": parse_signature(other).get("items", "none")})


def coverage_notes(digest: Digest, task: str) -> list[str]:
    """The run's notes about media that were missing when the task's data were prepared."""
    benchmark = load_spec(task).metadata.benchmark
    return [note for note in digest.facts.notes if note.startswith(f"{benchmark}: coverage ")]


def doubts(digest: Digest, task: str) -> list[str]:
    """The reasons not to rank the run in a task or group, a sentence each."""
    leaves = leaf_tasks(task)
    found = ((leaf, doubt) for leaf in leaves for doubt in digest.doubts.get(leaf, ()))
    return [doubt if leaf == task else f"{leaf}: {doubt}" for leaf, doubt in found]


def trust(digest: Digest, task: str) -> int:
    """How far the documents of a task or group were compared with the data: 0 in full, 1 in part because the run is
    stripped, 2 not for all tasks."""
    leaves = leaf_tasks(task)
    if any(leaf in digest.unverified for leaf in leaves):
        return 2
    return int(any(digest.documents[leaf].view.fields is not None for leaf in leaves if leaf in digest.documents))


def released_share(entry: Entry) -> float:
    """The share of the published number of items that the run has; 1 if that number is not known."""
    published = get_benchmark(entry.benchmark).published_items(entry.name)
    return min(1.0, len(entry.items) / published) if published else 1.0


def _comparable(runs: Sequence[_Run], task: str) -> tuple[list[_Run], list[_Run]]:
    """The runs to rank, empty if none is eligible, and those that contradict each other, so that none of them is."""
    sets: dict[tuple[str, str], list[_Run]] = {}
    for run in runs:
        if run.eligible:
            sets.setdefault(run.group_key, []).append(run)

    def quality(members: list[_Run]) -> tuple[bool, bool, int, bool, float]:
        valued = any(run.score.value is not None for run in members)
        trusted = min(trust(run.digest, task) for run in members)
        usual = _is_usual(members[0], task)
        return not valued, "subset" in members[0].asked, trusted, not usual, -max(run.share for run in members)

    def order(members: list[_Run]) -> tuple[tuple[bool, bool, int, bool, float], int, tuple[str, str]]:
        valued = {run.digest.model for run in members if run.score.value is not None}
        return quality(members), -len(valued), members[0].group_key

    best = min(sets.values(), key=order, default=[])
    rivals = [
        members
        for members in sets.values()
        if quality(best)[2] and quality(members) == quality(best) and _same_but_items(members[0], best[0])
    ]
    return (best, []) if len(rivals) < 2 else ([], [run for members in rivals for run in members])


def _same_but_items(one: _Run, other: _Run) -> bool:
    here, there = (parse_signature(run.signature) | {"items": ""} for run in (one, other))
    return here == there


def _newest(runs: Sequence[_Run]) -> tuple[dict[str, _Run], dict[str, str]]:
    """The newest run of each model, and the one that replaces each older run."""
    newest = {run.digest.model: run for run in runs}
    return newest, {run.key: newest[run.digest.model].key for run in runs if run is not newest[run.digest.model]}


def _asked_blindly(blind: Digest, seeing: Digest, task: str, metric: str) -> bool:
    """Whether the two runs differ only in that the first had no media."""
    here, there = (parse_signature(one.entries[task].signatures[metric]) for one in (blind, seeing))
    differing = {key for key in {*here, *there} if here.get(key) != there.get(key)}
    settings = [[one.facts.generation.get(leaf) for leaf in leaf_tasks(task)] for one in (blind, seeing)]
    return differing <= {"blind", "protocol"} and settings[0] == settings[1]


def _unasked(digest: Digest, task: str) -> str:
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
