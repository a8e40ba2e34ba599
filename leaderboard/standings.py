"""Which runs' scores of one metric are comparable, and why the others are not."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from medtasks.files import canonical_json
from medtasks.results.manifest import frame_settings, protocol_hash
from medtasks.results.scoring import MetricScore
from medtasks.results.signature import differences, parse_signature
from medtasks.spec import leaf_tasks, load_spec

from .digest import Digest, Entry

BLIND = "blind: prompts without media"
MINIATURE = "miniature data: a demonstration, not a benchmark result"
OTHER_ITEMS = "other items or clusters than the same signature stands for in other runs"

_ASKED = ("task", "group", "version", "filters", "prompt", "protocol", "data", "items", "blind", "harness")
"""Parts of a signature that say what was asked; a score that is not there has no others to compare."""


@dataclass(frozen=True)
class Standing:
    """Of one metric of one task or group: the comparable runs by model, and what became of all others.

    ``ranked`` have a value; ``waiting`` were asked the same but have none. ``apart`` says by run why its score shares
    no ranking; ``replaced`` by run which other run of the same model counts in its place. ``usual`` is False where the
    comparable runs do not follow today's task files, since none does.
    """

    signature: str = ""
    ranked: dict[str, Digest] = field(default_factory=dict)
    waiting: dict[str, Digest] = field(default_factory=dict)
    apart: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    usual: bool = True


@dataclass(frozen=True)
class _Run:
    """One run's score of the metric; ``alike`` is what comparable runs have in common."""

    digest: Digest
    score: MetricScore
    alike: tuple[str, str]
    eligible: bool

    @property
    def key(self) -> str:
        return str(self.digest.facts.key)

    @property
    def signature(self) -> str:
        return self.alike[0]

    @property
    def asked(self) -> dict[str, str]:
        parts = parse_signature(self.signature)
        return {key: parts[key] for key in _ASKED if key in parts}


class Standings:
    """The standings of several runs; ``demonstration`` lets those on miniature data be ranked."""

    def __init__(self, digests: Iterable[Digest], *, demonstration: bool) -> None:
        self._digests = sorted(digests, key=lambda one: (one.facts.created, one.facts.key))
        self._demonstration = demonstration
        self._items: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[str, str], Standing] = {}

    def of(self, task: str, metric: str) -> Standing:
        """The standing of one metric of one task or group.

        Comparable runs are complete, not blind, not on miniature data, on documents that nothing speaks against, and
        have equal signatures. Where there are several such sets, it is one with values, then one whose documents are
        verified (:func:`trust`), then one that follows today's task files, then the one of most models, then the first
        by its signature. Of a model's comparable runs the newest counts.
        """
        if (task, metric) not in self._known:
            self._known[task, metric] = self._standing(task, metric)
        return self._known[task, metric]

    def _standing(self, task: str, metric: str) -> Standing:
        runs = self._runs(task, metric)
        main = _comparable(runs, task)
        ranked, replaced = _newest([run for run in main if run.score.value is not None])
        alike = [
            run for run in runs if main and run.eligible and run.score.value is None and run.asked == main[0].asked
        ]
        waiting, older = _newest(alike)
        replaced |= older
        for model in ranked.keys() & waiting.keys():
            replaced[waiting.pop(model).key] = ranked[model].key
        placed = {run.key for run in (*ranked.values(), *waiting.values())} | replaced.keys()
        apart: dict[str, tuple[str, ...]] = {}
        rest = [run for run in runs if run.key not in placed]
        for one in dict.fromkeys(run.alike for run in rest):
            others, older = _newest([run for run in rest if run.alike == one])
            replaced |= older
            apart |= {run.key: self._reasons(run, task, main) for run in others.values()}
        return Standing(
            signature=main[0].signature if main else "",
            ranked={model: run.digest for model, run in sorted(ranked.items())},
            waiting={model: run.digest for model, run in sorted(waiting.items())},
            apart=apart,
            replaced=replaced,
            usual=not main or _is_usual(main[0], task),
        )

    def _runs(self, task: str, metric: str) -> list[_Run]:
        """All runs of the task that have the metric, in the order of time."""
        found = []
        for digest in self._digests:
            entry = digest.entries.get(task)
            score = None if entry is None else entry.scores.metrics.get(metric)
            if entry is None or score is None or not score.samples:
                continue
            mini = digest.facts.mini and not self._demonstration
            eligible = not (digest.blind or mini or doubts(digest, task)) and digest.complete.get(task, False)
            alike = (entry.signatures[metric], self._items_of(digest, entry))
            found.append(_Run(digest, score, alike, eligible))
        return found

    def _items_of(self, digest: Digest, entry: Entry) -> str:
        """A hash of the items and clusters: a signature only claims which they are."""
        key = (digest.facts.key, entry.name)
        if key not in self._items:
            text = canonical_json([entry.items, entry.clusters])
            self._items[key] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._items[key]

    def _reasons(self, run: _Run, task: str, main: Sequence[_Run]) -> tuple[str, ...]:
        reasons = doubts(run.digest, task)
        if run.digest.blind:
            reasons.append(BLIND)
        if run.digest.facts.mini and not self._demonstration:
            reasons.append(MINIATURE)
        if not run.digest.complete.get(task, False):
            reasons.append(_unasked(run.digest, task))
        usual = coverage_notes(main[0].digest, task) if main else []
        reasons += [note for note in coverage_notes(run.digest, task) if note not in usual]
        if main:
            reasons += differences(run.signature, main[0].signature)
            if run.alike != main[0].alike and run.signature == main[0].signature:
                reasons.append(OTHER_ITEMS)
        return tuple(dict.fromkeys(reasons))


def coverage_notes(digest: Digest, task: str) -> list[str]:
    """What the run's notes say of media that were missing when the task's data were prepared."""
    benchmark = load_spec(task).metadata.benchmark
    return [note for note in digest.facts.notes if note.startswith(f"{benchmark}: coverage ")]


def doubts(digest: Digest, task: str) -> list[str]:
    """What forbids to rank the run in a task or group, a sentence each."""
    leaves = leaf_tasks(task)
    found = ((leaf, doubt) for leaf in leaves for doubt in digest.doubts.get(leaf, ()))
    return [doubt if leaf == task else f"{leaf}: {doubt}" for leaf, doubt in found]


def trust(digest: Digest, task: str) -> int:
    """0 where all documents of a task or group were compared with the data, 1 where the run is stripped, so that only
    a part of them could be, 2 where there was nothing to compare some with."""
    leaves = leaf_tasks(task)
    if any(leaf in digest.unverified for leaf in leaves):
        return 2
    return int(any(digest.documents[leaf].view.fields is not None for leaf in leaves if leaf in digest.documents))


def _comparable(runs: Sequence[_Run], task: str) -> list[_Run]:
    """The runs that a ranking is made of; none where no run is eligible."""
    sets: dict[tuple[str, str], list[_Run]] = {}
    for run in runs:
        if run.eligible:
            sets.setdefault(run.alike, []).append(run)

    def order(members: list[_Run]) -> tuple[bool, int, bool, int, tuple[str, str]]:
        valued = {run.digest.model for run in members if run.score.value is not None}
        trusted = min(trust(run.digest, task) for run in members)
        return not valued, trusted, not _is_usual(members[0], task), -len(valued), members[0].alike

    return min(sets.values(), key=order, default=[])


def _newest(runs: Sequence[_Run]) -> tuple[dict[str, _Run], dict[str, str]]:
    """The last run of each model, and by older run the one that counts instead."""
    newest = {run.digest.model: run for run in runs}
    return newest, {run.key: newest[run.digest.model].key for run in runs if run is not newest[run.digest.model]}


def _unasked(digest: Digest, task: str) -> str:
    """What of a task or group was not asked, or not answered."""
    counts = digest.facts.counts
    leaves = leaf_tasks(task)
    answered, asked = (
        sum(counts[leaf].get(what, 0) for leaf in leaves if leaf in counts) for what in ("answered", "asked")
    )
    if lacking := [leaf for leaf in leaves if leaf not in counts]:
        return f"run without {', '.join(lacking)}"
    answered, asked = (sum(counts[leaf].get(what, 0) for leaf in leaves) for what in ("answered", "asked"))
    if answered < asked:
        said = "run with --limit: " if "limit" in digest.facts.settings else ""
        return f"{said}{answered:,} of {asked:,} documents"
    return "streaming items without all of their rounds"


def _is_usual(run: _Run, task: str) -> bool:
    """Whether the run follows today's task files, and asked the harness for nothing unusual."""
    protocols = run.digest.facts.protocols
    leaves = [leaf for leaf in leaf_tasks(task) if leaf in protocols]
    return "harness" not in run.asked and all(protocols[leaf] in protocols_today(leaf) for leaf in leaves)


@functools.cache
def protocols_today(task: str) -> frozenset[str]:
    """The protocol hashes of a run by the task file alone; the harness turns a temperature into a float."""
    spec = load_spec(task)
    settings = spec.generation
    floats = {key: float(value) if key == "temperature" else value for key, value in settings.items()}
    frames = frame_settings(spec)
    whole = {**frames, "cap": None} if frames else {}
    return frozenset(protocol_hash(spec, one, frames=whole) for one in (settings, floats))
