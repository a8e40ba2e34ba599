"""What scoring sees of a run: answered samples, the items that they form, and the items' values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[np.float64]


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
        statistics = None if self.statistics is None else change(self.statistics)
        low = None if self.low is None else change(self.low)
        high = None if self.high is None else change(self.high)
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
    """Breakdowns by fields of the documents, one group per value of the field.

    Positional names are fields, whose breakdowns have the same name; a keyword names the breakdown
    of its field.

    >>> view = SampleView("1", "p1", {"organ": "", "question_type": "closed"}, "A", "ok")
    >>> {name: groups(view) for name, groups in by_fields("organ", kind="question_type").items()}
    {'organ': ('(not stated)',), 'kind': ('closed',)}
    """

    def group_of(field_name: str) -> Callable[[SampleView], tuple[str, ...]]:
        return lambda view: (view.document[field_name] or "(not stated)",)

    breakdowns = {name: group_of(name) for name in names}
    for breakdown, field_name in renamed.items():
        breakdowns[breakdown] = group_of(field_name)
    return breakdowns


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
    """The items of a run, and the samples of incomplete items.

    A run with a limit may end in the middle of a streaming item. ``metrics`` names the metrics that
    only whole items have, in display order.
    """

    items: tuple[Item, ...]
    incomplete: Mapping[str, tuple[SampleView, ...]] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()


class Derived(NamedTuple):
    """Metrics of whole items, computed from their documents, responses and other values.

    ``values`` returns an item's values by metric; metrics without a value are left out.
    """

    metrics: tuple[str, ...]
    values: Callable[[Item], Mapping[str, Value]]


def with_derived(joined: Joined, derived: Iterable[Derived]) -> Joined:
    """The items of ``joined`` with the values of derived metrics added.

    ``derived`` are groups of metrics, applied in order: each may read the values of those before.
    """
    groups = list(derived)
    items = [_item_with_derived(item, groups) for item in joined.items]
    names = dict.fromkeys(joined.metrics)
    for group in groups:
        names.update(dict.fromkeys(group.metrics))
    return Joined(tuple(items), joined.incomplete, tuple(names))


def _item_with_derived(item: Item, groups: Iterable[Derived]) -> Item:
    """The item with the values of each group of derived metrics added."""
    for group in groups:
        values = {**item.values, **group.values(item)}
        item = replace(item, values=values)
    return item


def sample_items(samples: Sequence[SampleView]) -> Joined:
    """One item per sample, for samples that are scored alone."""
    items = [Item(sample.sample_id, sample.cluster, (sample,), sample.values) for sample in samples]
    return Joined(tuple(items))


def round_items(
    samples: Sequence[SampleView], values: Callable[[Sequence[SampleView]], Mapping[str, Value]]
) -> Joined:
    """Streaming items: the rounds of each, joined by the documents' ``item_id`` and ``round``.

    ``values`` computes an item's values from its rounds, in order. An item with fewer rounds than
    its documents' ``rounds`` is incomplete.
    """
    rounds_of_item: dict[str, list[SampleView]] = {}
    for sample in samples:
        rounds_of_item.setdefault(sample.document["item_id"], []).append(sample)
    whole: list[Item] = []
    incomplete: dict[str, tuple[SampleView, ...]] = {}
    for item_id, rounds in sorted(rounds_of_item.items()):
        rounds.sort(key=lambda sample: int(sample.document["round"]))
        first = rounds[0]
        if len(rounds) < first.document["rounds"]:
            incomplete[item_id] = tuple(rounds)
        else:
            whole.append(Item(item_id, first.cluster, tuple(rounds), values(rounds)))
    return Joined(tuple(whole), incomplete)


@dataclass(frozen=True)
class Turn:
    """One response of an item; times are in seconds or frame indices.

    ``content`` is None while there is no verdict, ``judge`` the hash of the judge that was asked.
    ``fallback`` is the content of a closed answer if a judge decides on answers that do not match.
    ``missed`` is whether the round was not sent, because the model was still busy: it counts as an
    empty response, but not as an invalid one.
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
    missed: bool = False
