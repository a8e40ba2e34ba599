"""Kinds of error that a task file declares (``metadata.errors``): cases and errors by the texts of gold and answer.

A rate is ``occurrences / cases``. A question is a case if its gold answer is one of the listed texts (or another one);
the error occurs if the answer is one of the listed texts (or another one). Texts are compared after
`medtasks.metrics.closed_answer.normalise`; the text of an option counts, not its letter. A rate of errors is over the
cases with an answer, whose number stands beside it; in a rate of correct outcomes no answer is no such outcome.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medtasks.benchmarks.errors import Case, Errors
from medtasks.benchmarks.variants import selected_option, unlettered
from medtasks.catalog.benchmark import Benchmark, Derived, Item, SampleView, Value
from medtasks.catalog.contents import owner_of
from medtasks.catalog.packages import TaskPackage
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.catalog.task_model import ErrorKind
from medtasks.core.errors import MedtasksError
from medtasks.metrics.closed_answer import normalise
from medtasks.metrics.item_metrics import ErrorRate, declared_rate
from medtasks.metrics.registry import registered_metric


def declared_rates(name: str) -> tuple[ErrorRate, ...]:
    """The rates that a task, or the tasks of a group, declare."""
    kinds = {kind.name: kind for leaf in leaf_tasks(name) for kind in load_spec(leaf).metadata.errors}
    return tuple(map(declared_rate, kinds.values()))


def declared_metrics(benchmark: Benchmark, task_of: Mapping[str, str]) -> Iterator[Derived]:
    """The rates that tasks declare, as one set if there are any; ``task_of`` has the task of each sample."""
    tasks = sorted(set(task_of.values()))
    declared = {task: rates for task in tasks if (rates := declared_errors(task, benchmark)) is not None}

    def values(item: Item) -> Mapping[str, Value]:
        errors = declared.get(task_of[item.view.sample_id])
        return {} if errors is None else errors.values(benchmark, item)

    if declared:
        yield Derived(tuple(rate.name for errors in declared.values() for rate in errors.rates), values)


def declared_errors(task: str, benchmark: Benchmark) -> Errors | None:
    """The kinds of error that a task declares, None if none; raises :class:`MedtasksError` for unusable names."""
    spec = load_spec(task)
    for kind in spec.metadata.errors:
        if problem := name_problem(task, kind, owner_of(spec.path)):
            raise MedtasksError(f"task {task}: error {kind.name} is declared in metadata.errors, but {problem}.")
    kinds = spec.metadata.errors
    return Errors(declared_rates(task), functools.partial(_cases, benchmark, kinds)) if kinds else None


def name_problem(task: str, kind: ErrorKind, package: TaskPackage) -> str:
    """Why ``task``, of ``package``, cannot use the kind's name; empty if it can."""
    if not package.owns(kind.name):
        return f"its name must start with that of the package; call it {package.prefix}_{kind.name}"
    if registered_metric(kind.name) is not None:
        return "another metric has that name; rename it"
    for other in load_specs().values():
        if other.name != task and any(error.name == kind.name and error != kind for error in other.metadata.errors):
            return f"{other.name} declares it otherwise; rename it, or make them equal"
    return ""


def _cases(benchmark: Benchmark, kinds: Sequence[ErrorKind], item: Item) -> Iterator[Case]:
    for view in item.samples:
        gold, answer = _normal(gold_text(view.document)), _normal(_answer_text(benchmark, view))
        for kind in kinds:
            if _matches(gold, kind.gold, kind.gold_other_than):
                unanswered = answer is None and not kind.higher_is_better
                yield Case(kind.name, None if unanswered else _matches(answer, kind.answer, kind.answer_other_than))


def gold_text(document: Mapping[str, Any]) -> str | None:
    """The gold answer, for lettered options the text of the right one."""
    choices, target = document.get("choices"), document.get("target")
    found = choices.get(target) if choices else target
    return found if isinstance(found, str) else None


def _answer_text(benchmark: Benchmark, view: SampleView) -> str | None:
    """The answer, for options the text of the selected one; None for a response without an answer."""
    texts, choices, chosen = unlettered(benchmark, view), view.document.get("choices"), selected_option(benchmark, view)
    if choices:
        return str(choices[chosen]) if chosen in choices else None
    return chosen if chosen is None or texts is None else texts[int(chosen)]


@functools.lru_cache(maxsize=4096)
def _normal(text: str | None) -> str | None:
    return normalise(text) or None if text else None


def _matches(text: str | None, among: Sequence[str], other_than: Sequence[str]) -> bool:
    if text is None:
        return False
    return text in map(_normal, among) if among else text not in map(_normal, other_than)
