"""Kinds of error that gold annotations reveal, counted in the items of a score.

A benchmark declares `Errors`; groups and tasks name the rates in ``metadata.pooled``, as any metric
over whole items. A task file declares them (``metadata.errors``) by the texts of gold and answer,
compared after `medtasks.metrics.normalisation.normalise`; the text of an option counts, not its
letter. A rate of errors is over the cases with an answer, whose number is printed beside it. In a
rate of correct outcomes, a case without an answer counts as incorrect.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from medtasks.benchmarks.variant_answers import selected_option
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import owner_of
from medtasks.catalog.items import Derived, Item, Value
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.catalog.statuses import FAILED
from medtasks.catalog.task_model import ErrorKind
from medtasks.catalog.task_package import TaskPackage
from medtasks.core.errors import DataError, MedtasksError
from medtasks.metrics.item_metrics import ErrorRate, declared_rate
from medtasks.metrics.normalisation import normalise
from medtasks.metrics.registry import registered_metric


class Case(NamedTuple):
    """One chance for an error: the rate it counts for, and whether the error occurred.

    ``occurred`` is None if the response gives no answer that could be an error. ``part`` is the
    case's group of the breakdown `ScoringRules.parts`, if there is one.
    """

    rate: str
    occurred: bool | None
    part: str = ""


@dataclass(frozen=True)
class Errors:
    """Kinds of error: their rates, and a function that lists the cases of an item.

    The function reads gold answers and filtered responses (of repeats, the first). Which cases
    there are must not depend on the responses. If a response failed or gives no answer, it is open
    whether they occurred. Questions with rotated options have none: their errors are those of the
    plain task.
    """

    rates: tuple[ErrorRate, ...]
    cases: Callable[[Item], Iterable[Case]]

    def values(self, benchmark: Benchmark, item: Item) -> dict[str, Value]:
        """The item's value of every rate; a case of an undeclared rate is a :class:`DataError`."""
        values: dict[str, Value] = {rate.name: _NO_CASE for rate in self.rates}
        cases_of_rate = self._cases_by_rate(benchmark, item)
        if not cases_of_rate:  # most rates do not apply to most items
            return values
        parts = _parts(benchmark, item, cases_of_rate)
        failed = any(sample.status == FAILED for sample in item.samples)
        for rate, cases in cases_of_rate.items():
            values[rate] = _rate_value(cases, parts, failed)
        return values

    def _cases_by_rate(self, benchmark: Benchmark, item: Item) -> dict[str, list[Case]]:
        """The item's cases of each rate that has any."""
        cases_of_rate: dict[str, list[Case]] = {}
        if "rotation_of" in item.view.document:
            return cases_of_rate
        declared = [rate.name for rate in self.rates]
        for case in self.cases(item):
            if case.rate not in declared:
                raise _undeclared(case, benchmark, item, declared)
            cases_of_rate.setdefault(case.rate, []).append(case)
        return cases_of_rate


def _parts(
    benchmark: Benchmark, item: Item, cases_of_rate: Mapping[str, Sequence[Case]]
) -> tuple[str, ...]:
    """The item's groups of the breakdown by parts; empty unless a case names its part."""
    if benchmark.scoring.parts is None:
        return ()
    for cases in cases_of_rate.values():
        if any(case.part for case in cases):
            return benchmark.breakdowns[benchmark.scoring.parts](item.view)
    return ()


def _undeclared(case: Case, benchmark: Benchmark, item: Item, declared: Iterable[str]) -> DataError:
    """The error of a case that counts for none of the ``declared`` rates."""
    return DataError(
        f"{benchmark.name}: the cases of {item.item_id} name the rate {case.rate!r}, expected one "
        f"of {', '.join(declared)}; add it to `Errors.rates`."
    )


def _rate_value(cases: Sequence[Case], parts: Sequence[str], failed: bool) -> Value:
    """The value of a rate in one item, and in each of the item's ``parts``."""
    whole = _value_of_cases(cases, failed)
    if not parts:
        return whole
    value_of_part: dict[str, Value] = {}
    for part in parts:
        own = [case for case in cases if case.part == part]
        value_of_part[part] = _value_of_cases(own, failed)
    return whole._replace(parts=value_of_part)


def _value_of_cases(cases: Sequence[Case], failed: bool) -> Value:
    """The share of cases in which the error occurred; all are unknown if a response ``failed``."""
    if failed:
        return _counted(0, len(cases), len(cases))
    occurred = sum(case.occurred is True for case in cases)
    unanswered = sum(case.occurred is None for case in cases)
    return _counted(occurred, unanswered, len(cases))


@lru_cache(maxsize=1024)
def _counted(occurred: int, unanswered: int, cases: int) -> Value:
    """The value of that many cases; a range if some are without an answer."""
    low = (float(occurred), float(cases))
    if unanswered == 0:
        return Value(statistics=low)
    high = (float(occurred + unanswered), float(cases))
    return Value(low=low, high=high, failed=True)


_NO_CASE = _counted(0, 0, 0)


def declared_rates(name: str) -> tuple[ErrorRate, ...]:
    """The rates that a task, or the tasks of a group, declare."""
    kinds: dict[str, ErrorKind] = {}
    for task in leaf_tasks(name):
        for kind in load_spec(task).metadata.errors:
            kinds[kind.name] = kind
    return tuple(declared_rate(kind) for kind in kinds.values())


def derived_metrics(
    benchmark: Benchmark, task_of: Mapping[str, str], pooled: Sequence[str]
) -> Derived:
    """The rates that tasks declare, and the metrics that ``metadata.pooled`` names.

    ``task_of`` maps sample ids to tasks, ``pooled`` names metrics or rates of the benchmark.
    """
    errors_of_task: dict[str, Errors | None] = {}
    declared_names: list[str] = []
    for task in sorted(set(task_of.values())):
        errors = declared_errors(task, benchmark)
        errors_of_task[task] = errors
        if errors is not None:
            declared_names.extend(rate.name for rate in errors.rates)
    pooled_metrics = [name for name in pooled if name in benchmark.scoring.pooled]
    pooled_rates = [name for name in pooled if name not in benchmark.scoring.pooled]
    metrics = _WholeItemMetrics(benchmark, task_of, errors_of_task, pooled_metrics, pooled_rates)
    return Derived((*declared_names, *pooled), metrics.values)


@dataclass(frozen=True)
class _WholeItemMetrics:
    """Computes the error rates that an item's task declares, and the pooled metrics and rates."""

    benchmark: Benchmark
    task_of: Mapping[str, str]
    errors_of_task: Mapping[str, Errors | None]
    pooled_metrics: Sequence[str]
    pooled_rates: Sequence[str]

    def values(self, item: Item) -> dict[str, Value]:
        """The item's values by metric; pooled metrics may read the declared rates."""
        values: dict[str, Value] = {}
        declared = self.errors_of_task[self.task_of[item.view.sample_id]]
        if declared is not None:
            values.update(declared.values(self.benchmark, item))
        if values and self.pooled_metrics:
            item = replace(item, values={**item.values, **values})
        for name in self.pooled_metrics:
            value = self.benchmark.scoring.pooled[name](item)
            if value is not None:
                values[name] = value
        pooled_errors = self.benchmark.scoring.errors
        if self.pooled_rates and pooled_errors is not None:
            rates = pooled_errors.values(self.benchmark, item)
            for name in self.pooled_rates:
                values[name] = rates[name]
        return values


def declared_errors(task: str, benchmark: Benchmark) -> Errors | None:
    """The kinds of error that a task declares; None if it declares none.

    Raises:
        MedtasksError: the name of a kind cannot be used.
    """
    spec = load_spec(task)
    kinds = spec.metadata.errors
    if not kinds:
        return None
    for kind in kinds:
        problem = name_problem(task, kind, owner_of(spec.path))
        if problem:
            raise MedtasksError(
                f"task {task}: error {kind.name} is declared in metadata.errors, but {problem}."
            )
    return Errors(declared_rates(task), functools.partial(_declared_cases, benchmark, kinds))


def name_problem(task: str, kind: ErrorKind, package: TaskPackage) -> str:
    """Why ``task``, of ``package``, cannot use the kind's name; empty if it can."""
    if not package.owns(kind.name):
        return f"its name must start with that of the package; call it {package.prefix}_{kind.name}"
    if registered_metric(kind.name) is not None:
        return "another metric has that name; rename it"
    for spec in load_specs().values():
        if spec.name == task:
            continue
        for error in spec.metadata.errors:
            if error.name == kind.name and error != kind:
                return f"{spec.name} declares it otherwise; rename it, or make them equal"
    return ""


def _declared_cases(benchmark: Benchmark, kinds: Sequence[ErrorKind], item: Item) -> Iterator[Case]:
    """The cases of an item for the kinds of error that its task declares."""
    for sample in item.samples:
        answer_text = selected_option(benchmark, sample)
        choices = sample.document.get("choices")
        if answer_text is not None and choices:
            answer_text = choices.get(answer_text)
        gold = _normalised(gold_text(sample.document))
        answer = _normalised(answer_text)
        for kind in kinds:
            if not _matches(gold, kind.gold, kind.gold_other_than):
                continue
            occurred: bool | None = _matches(answer, kind.answer, kind.answer_other_than)
            if answer is None and not kind.higher_is_better:
                occurred = None
            yield Case(kind.name, occurred)


def gold_text(document: Mapping[str, Any]) -> str | None:
    """The gold answer, for lettered options the text of the right one."""
    gold = document.get("target")
    choices = document.get("choices")
    if choices:
        gold = choices.get(gold)
    return gold if isinstance(gold, str) else None


@lru_cache(maxsize=4096)
def _normalised(text: str | None) -> str | None:
    """The text as texts are compared; None for an empty one."""
    if not text:
        return None
    return normalise(text) or None


def _matches(text: str | None, among: Sequence[str], other_than: Sequence[str]) -> bool:
    """Whether a normalised text is in ``among`` or, if that is empty, not in ``other_than``."""
    if text is None:
        return False
    if among:
        return text in [_normalised(allowed) for allowed in among]
    return text not in [_normalised(excluded) for excluded in other_than]
