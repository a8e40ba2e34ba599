"""Kinds of error: what a benchmark's gold structure tells about wrong answers, counted in the items of a score.

A benchmark declares the rates (`medtasks.metrics.item_metrics.ErrorRate`) and one function that lists the cases of an
item. Groups and tasks name the rates in ``metadata.pooled``, as any metric over whole items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from medtasks.catalog.benchmark import FAILED, Benchmark, Derived, Item, Value
from medtasks.core.errors import DataError
from medtasks.metrics.item_metrics import NO_OPTION, ErrorRate


class Case(NamedTuple):
    """One chance for an error: the rate it counts for, and whether the error occurred; None if the response gives no
    answer that could be one.

    ``part`` is the group of the breakdown `Benchmark.parts` that it belongs to, if the benchmark has one.
    """

    rate: str
    occurred: bool | None
    part: str = ""


@dataclass(frozen=True)
class Errors:
    """``cases`` lists the cases of an item, from its gold answers and filtered responses (of repeats, the first).

    Which cases there are must not depend on the responses. If a response failed or gives no answer, whether they
    occurred is open, and the rate, over the answered cases, has their number beside it.
    Questions with rotated options have none: their errors are those of the plain task.
    """

    rates: tuple[ErrorRate, ...]
    cases: Callable[[Item], Iterable[Case]]

    @property
    def own(self) -> tuple[ErrorRate, ...]:
        """The rates that no other benchmark has, for `Plugin.metrics`."""
        return tuple(rate for rate in self.rates if rate is not NO_OPTION)

    def values(self, benchmark: Benchmark, item: Item) -> dict[str, Value]:
        """The item's value of every rate; one without cases here does not apply.

        Raises:
            DataError: a case names a rate that is not declared.
        """
        found: dict[str, list[Case]] = {rate.name: [] for rate in self.rates}
        for case in () if "rotation_of" in item.view.document else self.cases(item):
            if case.rate not in found:
                raise DataError(
                    f"{benchmark.name}: the cases of {item.item_id} name the rate {case.rate!r}, expected one of "
                    f"{', '.join(found)}; add it to `Errors.rates`."
                )
            found[case.rate].append(case)
        failed = any(view.status == FAILED for view in item.samples)
        in_parts = benchmark.parts is not None and any(case.part for cases in found.values() for case in cases)
        parts = benchmark.breakdowns[benchmark.parts](item.view) if benchmark.parts is not None and in_parts else ()
        return {name: _value(cases, parts, failed) for name, cases in found.items()}


def _value(cases: Sequence[Case], parts: Iterable[str], failed: bool) -> Value:
    if not cases:  # most rates do not apply to most items
        return _counted(0, 0, 0)
    by_part = {part: _value([case for case in cases if case.part == part], (), failed) for part in parts}
    occurred, unanswered = sum(case.occurred is True for case in cases), sum(case.occurred is None for case in cases)
    whole = _counted(*((0, len(cases)) if failed else (occurred, unanswered)), len(cases))
    return whole._replace(parts=by_part) if by_part else whole


@lru_cache(maxsize=1024)
def _counted(occurred: int, unanswered: int, cases: int) -> Value:
    """The value of so many cases; shared, because items have few different ones."""
    low, high = ((float(number), float(cases)) for number in (occurred, occurred + unanswered))
    return Value(low=low, high=high, failed=True) if unanswered else Value(statistics=low)


def pooled_metrics(benchmark: Benchmark, names: Sequence[str]) -> Derived:
    """The metrics of a benchmark that ``metadata.pooled`` names."""
    errors = None if {*names} <= benchmark.pooled.keys() else benchmark.errors

    def values(item: Item) -> dict[str, Value]:
        known = {name: benchmark.pooled[name](item) for name in names if name in benchmark.pooled}
        if errors is not None:
            known |= errors.values(benchmark, item)
        return {name: value for name in names if (value := known[name]) is not None}

    return Derived(tuple(names), values)
