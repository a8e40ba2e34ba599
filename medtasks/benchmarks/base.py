"""The description of one benchmark, shared by the harness glue, the command line and the result folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.data.records.base import Record
from medtasks.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks.benchmarks.streams import Turn

FAILED = "failed"
"""Status of a sample to which the back-end gave no response."""

Document = dict[str, Any]
"""A record as the harness sees it; the keys that all benchmarks share are listed in docs/architecture.md."""


@dataclass(frozen=True)
class Value:
    """One metric of one item: its sufficient statistics or, while it has no verdict, between which they will lie.

    All three are None where the metric could not be computed here. An item to which a metric does not apply has
    statistics of zeros. ``judge`` is the hash of the judge that was asked; None where none was. ``failed`` marks an
    item to which the back-end gave no (full) response: it has no statistics, and limits where there are any.
    """

    statistics: tuple[float, ...] | None = None
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    repeats: tuple[tuple[float, ...], ...] = ()
    """The statistics of each repeat, where the question was asked several times; they sum to ``statistics``."""
    judge: str | None = None
    parts: Mapping[str, Value] = field(default_factory=dict)
    """What the item counts in each group of the breakdown ``Benchmark.parts``, where it is judged by parts."""
    failed: bool = False

    @property
    def pending(self) -> bool:
        """Whether the value lacks a verdict: no judge was asked, or none could tell."""
        return self.statistics is None and self.low is not None and not self.failed

    @property
    def awaiting(self) -> bool:
        """Whether no judge was asked yet."""
        return self.pending and self.judge is None

    def mapped(self, change: Callable[[tuple[float, ...]], tuple[float, ...]]) -> Value:
        """The value of a metric made of this one: ``change`` of its statistics, or of its limits."""
        ends = (None if row is None else change(row) for row in (self.statistics, self.low, self.high))
        statistics, low, high = ends
        return Value(statistics=statistics, low=low, high=high, judge=self.judge, failed=self.failed)


@dataclass(frozen=True)
class SampleView:
    """What scoring and breakdowns may look at: one answered document."""

    sample_id: str
    cluster: str
    document: Mapping[str, Any]
    filtered: str
    status: str
    values: Mapping[str, Value] = field(default_factory=dict)
    further: tuple[str, ...] = ()
    """Extraction statuses of the second and later repeats."""


def by_field(name: str) -> Callable[[SampleView], tuple[str, ...]]:
    """A breakdown by a document's field; empty values are one group, ``(not stated)``."""

    def groups(view: SampleView) -> tuple[str, ...]:
        return (view.document[name] or "(not stated)",)

    return groups


@dataclass(frozen=True)
class Item:
    """What counts as one in a score: a sample, or the rounds of a streaming item together."""

    item_id: str
    cluster: str
    samples: tuple[SampleView, ...]
    values: Mapping[str, Value]

    @property
    def view(self) -> SampleView:
        """The (first) sample."""
        return self.samples[0]


@dataclass(frozen=True)
class Joined:
    """Items, and the samples of those that are not complete: a run with a limit may end within a streaming item."""

    items: tuple[Item, ...]
    incomplete: Mapping[str, tuple[SampleView, ...]] = field(default_factory=dict)


def sample_items(samples: Sequence[SampleView]) -> Joined:
    """Each sample as an item of its own."""
    return Joined(tuple(Item(one.sample_id, one.cluster, (one,), one.values) for one in samples))


def round_items(samples: Sequence[SampleView], values: Callable[[Sequence[SampleView]], Mapping[str, Value]]) -> Joined:
    """Items out of their rounds, by the documents' ``item_id``, ``round`` and ``rounds``.

    ``values`` makes an item's values of its rounds, which come in order. An item of which a round was not asked is
    incomplete.
    """
    items: dict[str, list[SampleView]] = {}
    for sample in samples:
        items.setdefault(sample.document["item_id"], []).append(sample)
    whole: list[Item] = []
    incomplete: dict[str, tuple[SampleView, ...]] = {}
    for name, rounds in sorted(items.items()):
        rounds.sort(key=lambda sample: int(sample.document["round"]))
        if len(rounds) < rounds[0].document["rounds"]:
            incomplete[name] = tuple(rounds)
        else:
            whole.append(Item(name, rounds[0].cluster, tuple(rounds), values(rounds)))
    return Joined(tuple(whole), incomplete)


@dataclass(frozen=True)
class PrepareCommand:
    """``medtasks prepare <benchmark>``, for a benchmark whose preparation needs more than ``Benchmark.read``.

    Args:
        run: a generator that prepares data and yields each prepared dataset. Its first parameter opens a progress bar
            (`medtasks.data.prepare.options.Bars`); the others, annotated for typer, are the command's options.
        examples: lines for ``--help``.
    """

    run: Callable[..., Iterable[Any]]
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demo:
    """What ``medtasks demo`` does with a benchmark: run the group of its name and ``tasks``, show ``metrics`` of the
    group, and one logged sample of the task ``sample``."""

    metrics: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    sample: str = ""


def _no_documents(record: Any) -> list[Document]:
    raise MedtasksError(
        f"the benchmark does not say how a {type(record).__name__} becomes documents; give `documents`."
    )


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    ``visible_fields`` are the only document fields that a prompt template can see, so the gold answer cannot
    leak whatever a template says. ``breakdowns`` maps a breakdown's name to the group keys of an item's first sample
    (one item may stand in several groups, or in none). ``join`` makes items of samples; ``pooled`` are the
    metrics that only make sense over several tasks, made of an item's other values. ``to_judge`` says of a rubric
    whether a (document, filtered response) is a question to its judge at all; without an entry all are. ``parts`` names
    the breakdown in whose groups an item counts with a part of itself alone. ``doubt`` tells `medtasks validate` what
    makes a document's gold answer doubtful, None where nothing does.

    ``documents`` makes the harness's documents of a record, of type ``record``. ``read`` gives the records of a source
    directory, and ``mini`` writes a source directory of miniature data, which ``prepare_mini`` prepares into a second
    directory (by default as ``read`` gives it). ``command`` is a ``medtasks prepare`` command of the benchmark's own.
    ``language`` is that of questions and answers, ``intended_use`` what scores may be used for.

    ``kinds`` names the counts of the data manifest that a record belongs to, and ``published`` what they should be
    (``rows`` in all, without the kinds that begin with ``apart``, which have one count of that name). ``figures`` is a
    YAML file of published scores (`medtasks.leaderboard.reference`). ``coverage`` gives the source and the task for
    which a record is counted as prepared or not; None where it is not counted.

    For streams: ``timeline`` says what a sample contributes to its item, for the leaderboard's timelines;
    ``sampled_frames`` that documents show frames sampled from windows, at most ``MEDTASKS_MAX_FRAMES`` of them, which
    then is part of the protocol. A benchmark with a ``join`` of its own is not asked repeatedly.
    ``levels`` are tasks of increasing difficulty; the gaps between neighbours are reported.
    """

    name: str
    title: str
    paper: str
    source: str
    licence: str
    prepare: str
    cluster: str
    visible_fields: frozenset[str]
    breakdowns: Mapping[str, Callable[[SampleView], tuple[str, ...]]]
    options: tuple[str, ...] = ()
    null_option: str | None = None
    join: Callable[[Sequence[SampleView]], Joined] = sample_items
    pooled: Mapping[str, Callable[[Item], Value | None]] = field(default_factory=dict)
    documents: Callable[[Any], list[Document]] = _no_documents
    record: type[Record] = Record
    read: Callable[[Path], Iterable[Record]] | None = None
    mini: Callable[[Path], None] | None = None
    prepare_mini: Callable[[Path, Path], object] | None = None
    command: PrepareCommand | None = None
    version: str = "1"
    language: str = "en"
    intended_use: str = "research"
    to_judge: Mapping[str, Callable[[Mapping[str, Any], str], bool]] = field(default_factory=dict)
    parts: str | None = None
    doubt: Callable[[Mapping[str, Any]], str | None] | None = None
    kinds: Callable[[Any], Iterable[str]] | None = None
    published: Mapping[str, int] = field(default_factory=dict)
    apart: str | None = None
    figures: Path | None = None
    coverage: Callable[[Any], tuple[str, str] | None] | None = None
    timeline: Callable[[SampleView], Turn] | None = None
    sampled_frames: bool = False
    levels: tuple[str, ...] = ()
    demo: Demo | None = None

    @property
    def chance(self) -> float | None:
        """Accuracy of uniform guessing, as a fraction; None for open answers."""
        return 1 / len(self.options) if self.options else None

    @property
    def repeatable(self) -> bool:
        """Whether a question may be asked several times (``repeats``): items made of rounds are scored once."""
        return self.join is sample_items
