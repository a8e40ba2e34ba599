"""Kinds of error: what a benchmark's gold structure tells about wrong answers, counted in the items
of a score.

A benchmark declares `Errors`; groups and tasks name the rates in ``metadata.pooled``, as any metric
over whole items. A task file declares them (``metadata.errors``) by the texts of gold and answer,
compared after `medtasks.metrics.closed_answer.normalise`; the text of an option counts, not its
letter. A rate of errors is over the cases with an answer, whose number stands beside it; in a rate
of correct outcomes no answer is no such outcome.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from medtasks.benchmarks.variants import selected_option
from medtasks.catalog.benchmark import FAILED, Benchmark, Derived, Item, Value
from medtasks.catalog.contents import TaskPackage, owner_of
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.catalog.task_model import ErrorKind
from medtasks.core.errors import DataError, MedtasksError
from medtasks.metrics.closed_answer import normalise
from medtasks.metrics.item_metrics import ErrorRate, declared_rate
from medtasks.metrics.registry import registered_metric


class Case(NamedTuple):
    """One chance for an error: the rate it counts for, and whether the error occurred; None if the
    response gives no answer that could be one. ``part`` is its group of the breakdown
    `Benchmark.parts`, if there is one.
    """

    rate: str
    occurred: bool | None
    part: str = ""


@dataclass(frozen=True)
class Errors:
    """Kinds of error: their rates, and a function that lists the cases of an item, from its gold
    answers and filtered responses (of repeats, the first).

    Which cases there are must not depend on the responses. If a response failed or gives no answer,
    whether they occurred is open. Questions with rotated options have none: their errors are those
    of the plain task.
    """

    rates: tuple[ErrorRate, ...]
    cases: Callable[[Item], Iterable[Case]]

    def values(self, benchmark: Benchmark, item: Item) -> dict[str, Value]:
        """The item's value of every rate; raises :class:`DataError` if a case names a rate that is
        not declared.
        """
        found: dict[str, list[Case]] = {rate.name: [] for rate in self.rates}
        for case in () if "rotation_of" in item.view.document else self.cases(item):
            if case.rate not in found:
                raise DataError(
                    f"{benchmark.name}: the cases of {item.item_id} name the rate {case.rate!r}, expected one of "
                    f"{', '.join(found)}; add it to `Errors.rates`."
                )
            found[case.rate].append(case)
        failed, parts = any(view.status == FAILED for view in item.samples), tuple[str, ...]()
        if benchmark.parts is not None and any(
            case.part for cases in found.values() for case in cases
        ):
            parts = benchmark.breakdowns[benchmark.parts](item.view)
        # most rates do not apply to most items
        return {
            name: _value(cases, parts, failed) if cases else _NO_CASE
            for name, cases in found.items()
        }


def _value(cases: Sequence[Case], parts: Iterable[str], failed: bool) -> Value:
    by_part = {
        part: _value([case for case in cases if case.part == part], (), failed) for part in parts
    }
    occurred, unanswered = (
        sum(case.occurred is True for case in cases),
        sum(case.occurred is None for case in cases),
    )
    whole = _counted(*((0, len(cases)) if failed else (occurred, unanswered)), len(cases))
    return whole._replace(parts=by_part) if by_part else whole


@lru_cache(maxsize=1024)
def _counted(occurred: int, unanswered: int, cases: int) -> Value:
    low, high = ((float(number), float(cases)) for number in (occurred, occurred + unanswered))
    return Value(low=low, high=high, failed=True) if unanswered else Value(statistics=low)


_NO_CASE = _counted(0, 0, 0)


def declared_rates(name: str) -> tuple[ErrorRate, ...]:
    """The rates that a task, or the tasks of a group, declare."""
    kinds = {
        kind.name: kind for leaf in leaf_tasks(name) for kind in load_spec(leaf).metadata.errors
    }
    return tuple(map(declared_rate, kinds.values()))


def derived_metrics(
    benchmark: Benchmark, task_of: Mapping[str, str], pooled: Sequence[str]
) -> Derived:
    """The rates that tasks declare, ``task_of`` having the task of each sample, and the metrics of
    the benchmark that ``metadata.pooled`` names.
    """
    declared = {task: declared_errors(task, benchmark) for task in sorted(set(task_of.values()))}
    named = tuple(
        rate.name for errors in declared.values() if errors is not None for rate in errors.rates
    )
    own = [name for name in pooled if name in benchmark.pooled]
    rates = None if len(own) == len(pooled) else benchmark.errors

    def values(item: Item) -> dict[str, Value]:
        errors = declared[task_of[item.view.sample_id]]
        found = {} if errors is None else errors.values(benchmark, item)
        if own and found:
            item = replace(item, values={**item.values, **found})
        found |= {
            name: value for name in own if (value := benchmark.pooled[name](item)) is not None
        }
        if rates is not None:
            known = rates.values(benchmark, item)
            found |= {name: known[name] for name in pooled if name not in benchmark.pooled}
        return found

    return Derived((*named, *pooled), values)


def declared_errors(task: str, benchmark: Benchmark) -> Errors | None:
    """The kinds of error that a task declares, None if none; raises :class:`MedtasksError` for
    unusable names.
    """
    spec = load_spec(task)
    for kind in spec.metadata.errors:
        if problem := name_problem(task, kind, owner_of(spec.path)):
            raise MedtasksError(
                f"task {task}: error {kind.name} is declared in metadata.errors, but {problem}."
            )
    kinds = spec.metadata.errors
    return (
        Errors(declared_rates(task), functools.partial(_cases, benchmark, kinds)) if kinds else None
    )


def name_problem(task: str, kind: ErrorKind, package: TaskPackage) -> str:
    """Why ``task``, of ``package``, cannot use the kind's name; empty if it can."""
    if not package.owns(kind.name):
        return f"its name must start with that of the package; call it {package.prefix}_{kind.name}"
    if registered_metric(kind.name) is not None:
        return "another metric has that name; rename it"
    for other in load_specs().values():
        if other.name != task and any(
            error.name == kind.name and error != kind for error in other.metadata.errors
        ):
            return f"{other.name} declares it otherwise; rename it, or make them equal"
    return ""


def _cases(benchmark: Benchmark, kinds: Sequence[ErrorKind], item: Item) -> Iterator[Case]:
    for view in item.samples:
        chosen, choices = selected_option(benchmark, view), view.document.get("choices")
        if chosen is not None and choices:
            chosen = choices.get(chosen)
        gold, answer = _normal(gold_text(view.document)), _normal(chosen)
        for kind in kinds:
            if _matches(gold, kind.gold, kind.gold_other_than):
                unanswered = answer is None and not kind.higher_is_better
                yield Case(
                    kind.name,
                    None if unanswered else _matches(answer, kind.answer, kind.answer_other_than),
                )


def gold_text(document: Mapping[str, Any]) -> str | None:
    """The gold answer, for lettered options the text of the right one."""
    choices, target = document.get("choices"), document.get("target")
    found = choices.get(target) if choices else target
    return found if isinstance(found, str) else None


@lru_cache(maxsize=4096)
def _normal(text: str | None) -> str | None:
    return normalise(text) or None if text else None


def _matches(text: str | None, among: Sequence[str], other_than: Sequence[str]) -> bool:
    if text is None:
        return False
    return text in map(_normal, among) if among else text not in map(_normal, other_than)
