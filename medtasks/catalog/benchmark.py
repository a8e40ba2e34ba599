"""What a package describes: a benchmark, the items that its samples form, metrics of them, and its
board layout: which scores a leaderboard shows, in which tables and plots.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from medtasks.catalog.records import Record
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import Place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[np.float64]

FAILED = "failed"
"""Status of a sample to which the back-end gave no response."""
NO_FINAL_ANSWER = "no_final_answer"
"""Status of a response that reasons without coming to an answer; it is scored as a whole."""
ANSWERED = ("ok", "unanswerable", NO_FINAL_ANSWER)
"""Statuses of responses with an answer."""

Document = dict[str, Any]
"""A record as the harness sees it; docs/architecture.md lists the keys that all benchmarks
share.
"""


@runtime_checkable
class Metric(Protocol):
    """A stateless, thread-safe metric. Statistics reduce by ``sum``, across samples and processes
    alike.
    """

    @property
    def name(self) -> str:
        """The column name, e.g. ``rougeL``."""

    @property
    def width(self) -> int:
        """Length of one statistics vector."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger score is a better one."""

    @property
    def signature(self) -> str:
        """Every choice that can change the score, as ``name|key:value|…``."""

    def unavailable(self) -> str | None:
        """Why the metric cannot be computed here, with the command that fixes it; None if it
        can.
        """

    def statistics(self, prediction: str, reference: str) -> Array:
        """Sufficient statistics of one sample, float64 of shape ``(width,)``."""

    def score(self, totals: Array) -> Array:
        """Corpus scores ``(...)`` of summed statistics ``(..., width)``."""


class Value(NamedTuple):
    """One metric of one item: its sufficient statistics or, until there is a verdict, their lowest
    and highest values.

    All three are None if the metric could not be computed here. An item to which a metric does not
    apply has statistics of zeros. ``judge`` is the hash of the judge that was asked, None if none
    was. ``failed`` marks an item without a (full) response: it has no statistics, and limits only
    if the metric is bounded.
    """

    statistics: tuple[float, ...] | None = None
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    repeats: tuple[tuple[float, ...], ...] = ()
    """The statistics of each repeat of the question; they sum to ``statistics``."""
    judge: str | None = None
    parts: Mapping[str, Value] = MappingProxyType({})
    """The item's value in each group of the breakdown ``Benchmark.parts``, if it is judged by
    parts.
    """
    failed: bool = False

    @property
    def pending(self) -> bool:
        """Whether there is no verdict yet: no judge was asked, or none could decide."""
        return self.statistics is None and self.low is not None and not self.failed

    def mapped(self, change: Callable[[tuple[float, ...]], tuple[float, ...]]) -> Value:
        """The value of a derived metric: ``change`` of the statistics, or of the limits."""
        statistics, low, high = (None if row is None else change(row) for row in self[:3])
        return Value(statistics, low, high, judge=self.judge, failed=self.failed)


@dataclass(frozen=True, slots=True)
class SampleView:
    """One answered document, as scoring and breakdowns see it."""

    sample_id: str
    cluster: str
    document: Mapping[str, Any]
    filtered: str
    status: str
    values: Mapping[str, Value] = field(default_factory=dict)
    further: tuple[str, ...] = ()
    """Extraction statuses of the second and later repeats."""
    task: str = ""


def by_fields(*names: str, **renamed: str) -> dict[str, Callable[[SampleView], tuple[str, ...]]]:
    """Breakdowns by fields of the documents, with the names of the fields or keywords; each has one
    group per value.

    >>> view = SampleView("1", "p1", {"organ": "", "question_type": "closed"}, "A", "ok")
    >>> {name: groups(view) for name, groups in by_fields("organ", kind="question_type").items()}
    {'organ': ('(not stated)',), 'kind': ('closed',)}
    """

    def groups(field: str) -> Callable[[SampleView], tuple[str, ...]]:
        return lambda view: (view.document[field] or "(not stated)",)

    return {
        name: groups(field) for name, field in (*zip(names, names, strict=True), *renamed.items())
    }


@dataclass(frozen=True, slots=True)
class Item:
    """The unit of a score: a sample, or all rounds of a streaming item."""

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
    """Items, and the samples of incomplete ones: a run with a limit may end within a streaming
    item.

    ``metrics`` are those that only whole items have, in display order.
    """

    items: tuple[Item, ...]
    incomplete: Mapping[str, tuple[SampleView, ...]] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()


class Derived(NamedTuple):
    """Metrics of whole items that are computed from their documents, responses and other values:
    their names, and a function that returns an item's values of them, without those that it has no
    value of.
    """

    metrics: tuple[str, ...]
    values: Callable[[Item], Mapping[str, Value]]


def with_derived(joined: Joined, derived: Iterable[Derived]) -> Joined:
    """The items with the values of ``derived`` metrics, each of which sees those before it."""
    items, metrics = joined.items, joined.metrics
    for one in derived:
        items = tuple(
            Item(item.item_id, item.cluster, item.samples, {**item.values, **one.values(item)})
            for item in items
        )
        metrics = tuple(dict.fromkeys((*metrics, *one.metrics)))
    return Joined(items, joined.incomplete, metrics)


def sample_items(samples: Sequence[SampleView]) -> Joined:
    """The items of samples that are scored alone: one item per sample."""
    return Joined(
        tuple(
            Item(sample.sample_id, sample.cluster, (sample,), sample.values) for sample in samples
        )
    )


def round_items(
    samples: Sequence[SampleView], values: Callable[[Sequence[SampleView]], Mapping[str, Value]]
) -> Joined:
    """Rounds joined into items by the documents' ``item_id``, ``round`` and ``rounds``.

    ``values`` computes an item's values from its rounds, in order. An item with a missing round is
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
class Turn:
    """One response of an item; times are in seconds or frame indices.

    ``content`` is None while there is no verdict, ``judge`` the hash of the judge that was asked.
    ``fallback`` is the content of a closed answer if a judge decides on answers that do not match.
    """

    item: str
    number: int
    rounds: int
    streaming: bool
    in_seconds: bool
    closed: bool
    time: float
    query_time: float
    expected_time: float | None
    tolerance: float | None
    answerable: bool
    positive: bool
    content: float | None
    invalid: bool
    judge: str | None = None
    fallback: float | None = None
    fallback_judge: str | None = None


@dataclass(frozen=True)
class PrepareCommand:
    """``medtasks prepare <benchmark>``, for a benchmark whose preparation needs more than
    ``Benchmark.read``.

    Args:
        run: a generator that prepares data and yields each prepared dataset. Its first parameter
            opens a progress bar (`medtasks.data.prepare_commands.Bars`); the others, annotated for typer, are
            the command's options.
        examples: lines for ``--help``.
    """

    run: Callable[..., Iterable[Any]]
    examples: tuple[str, ...] = ()


ABSTENTION = "This cannot be told from the image."
"""What a model answers that does not know, unless the documents say otherwise."""


def one_document(record: Any) -> list[Document]:
    """The document of a record with an ``answer``, which becomes the target; all other fields keep
    their names.
    """
    if not hasattr(record, "answer"):
        raise MedtasksError(
            f"the benchmark does not define how a {type(record).__name__} becomes documents; give the record an "
            "`answer`, or set `documents`."
        )
    fields = record.model_dump(mode="json", exclude={"answer"})
    return [{"abstention": ABSTENTION, **fields, "target": record.answer}]


def shipped(module: str) -> Callable[[Path], None]:
    """A `Benchmark.mini` that copies the directory ``mini``, which lies beside the code in the file
    ``module``.
    """

    def mini(source: Path) -> None:
        shutil.copytree(
            Path(module).with_name("mini"),
            source,
            copy_function=shutil.copyfile,
            dirs_exist_ok=True,
        )

    return mini


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Prompts and scores: ``visible_fields`` are the only document fields that a prompt template can
    see, so that no template leaks the gold answer. ``breakdowns`` maps a breakdown's name to the
    group keys of an item's first sample (an item may be in several groups, or in none). ``join``
    joins samples into items; ``pooled`` are metrics over several tasks, computed from an item's
    other values; ``errors`` are rates of kinds of error, used in the same way. ``to_judge`` decides
    per rubric whether its judge is asked about a (document, filtered response); without an entry it
    always is. ``parts`` names the breakdown whose groups count only their own part of an item.
    ``doubt`` returns why a document's gold answer is doubtful (None if it is not), for `medtasks
    validate`.

    Data: ``documents`` turns a record, of type ``record``, into the harness's documents (by default
    one, whose target is the record's ``answer``). ``read`` yields the records of a release; ``hub``
    is its dataset on the Hugging Face hub, followed by the files to fetch (patterns), for
    ``--source hub``; ``mini`` writes a source directory of miniature data, which ``prepare_mini``
    prepares into a second directory (by default through ``read``). ``command`` replaces the generic
    ``medtasks prepare`` command. ``language`` is that of questions and answers, ``intended_use``
    what scores may be used for.

    Counts: ``kinds`` names the counts of the data manifest that a record belongs to, ``published``
    the expected counts (``rows`` excludes kinds that start with ``apart``, which share one count of
    that name). ``figures`` is a CSV file of published scores (`leaderboard.schema.reference`).
    ``coverage`` gives the source and the task under which a record is counted as prepared or not;
    None if it is not counted.

    Streams: ``timeline`` gives a sample's contribution to its item, for the leaderboard's
    timelines; with ``sampled_frames`` documents show at most ``MEDTASKS_MAX_FRAMES`` frames of
    their windows, which makes the variable part of the protocol. A benchmark with its own ``join``
    does not support repeats. ``levels`` are tasks of increasing difficulty; the gaps between
    adjacent levels are reported.

    Papers: ``bibliography`` is a BibTeX file with the entry of the benchmark's paper, which methods
    sections cite; by default an entry is made of ``title`` and ``paper``.
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
    errors: Any = None  # a `medtasks.benchmarks.error_kinds.Errors`
    documents: Callable[[Any], list[Document]] = one_document
    record: type[Record] = Record
    read: Callable[[Any], Iterable[Record]] | None = None  # of a `medtasks.data.release.Release`
    hub: tuple[str, ...] = ()
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
    bibliography: Path | None = None

    def option_count(self, document: Mapping[str, Any]) -> int:
        """How many options a guess at the document has: its own, else the benchmark's; 0 for an
        open answer, or if several options may be selected.
        """
        if document.get("multi_select"):
            return 0
        own = document.get("choices") or document.get("options") or self.options
        return (
            sum(text is not None for text in own.values()) if isinstance(own, Mapping) else len(own)
        )

    @property
    def repeatable(self) -> bool:
        """Whether a question may be asked several times (``repeats``)."""
        return self.join is sample_items


ALL_GROUPS = "*"
"""As a column's ``group``: one column per group of the breakdown in the results, sorted."""


@dataclass(frozen=True)
class _Placed:
    """A part of a layout; ``place`` is the file and line that made it, for messages."""

    place: Place | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        caller = sys._getframe(2)  # 0 is this method, 1 the generated one
        object.__setattr__(self, "place", Place(Path(caller.f_code.co_filename), caller.f_lineno))


@dataclass(frozen=True)
class Column(_Placed):
    """One score: a metric of a task or group, over all of its items or over one group of a
    breakdown.

    Args:
        task: a task or group.
        label: the heading; with ``group=ALL_GROUPS`` each group's name is used instead.
        breakdown: name of one of the benchmark's breakdowns; None for all items.
        group: a group of it, or `ALL_GROUPS`; None for all items.
        remark: a few words below the heading, and in figures beside it.
    """

    task: str
    metric: str
    label: str
    breakdown: str | None = None
    group: str | None = None
    remark: str = ""


@dataclass(frozen=True)
class LayoutTable(_Placed):
    """A table with models as rows. ``name`` is part of URLs and file names: lower case, digits,
    hyphens.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    note: str = ""


@dataclass(frozen=True)
class Plot(_Placed):
    """A figure over models; all of its numbers are also in a table.

    Args:
        name: part of URLs and file names: lower case, digits, hyphens.
        kind: ``bars`` (columns × models, with intervals; ``chance`` draws the benchmark's chance
            level), ``heatmap`` (columns × models), ``radar`` (columns are the axes), ``paired``
            (each column beside its counterpart in ``against``), ``letters`` (how often each letter
            was chosen and correct in the columns' tasks), ``timeline`` (rounds of streaming items
            of the columns' tasks).
        against: only for ``paired``; as many as ``columns``.
        ranks: a heat map of (rank - 1) / (models - 1), best 0, ties averaged, instead of values.
        note: one sentence below the figure.
    """

    name: str
    title: str
    kind: Literal["bars", "heatmap", "letters", "paired", "radar", "timeline"]
    columns: tuple[Column, ...]
    against: tuple[Column, ...] = ()
    ranks: bool = False
    chance: bool = False
    note: str = ""


@dataclass(frozen=True)
class BoardLayout(_Placed):
    """The board layout of a benchmark.

    Args:
        headline: the scores by which models are ranked and compared; the first one orders the
            board.
        tables: all other scores.
        shows: which part of a sample may be published: ``nothing`` (only ids, extracted options and
            scores), ``text`` (also questions, references and responses) or ``media``.
        why: why no more than ``shows`` may be published, in a sentence.
    """

    benchmark: str
    headline: tuple[Column, ...]
    tables: tuple[LayoutTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    shows: Literal["nothing", "text", "media"] = "nothing"
    why: str = ""
