"""Check each part of a package's code: parts of the wrong type or with a name already taken are left out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.benchmarks.card import Card
from medtasks.errors import MedtasksError, first_line
from medtasks.packages import OURS, LeftOut, TaskPackage
from medtasks.plugin import FilterInfo, Plugin

SHARED_METRICS = frozenset(
    {
        *("rouge1", "rouge2", "rougeL", "meteor", "chrf", "chrf++", "bleu", "exact_match", "accuracy"),
        *("bertscore", "bleurt", "content", "content_closed", "content_closed_fallback", "content_fallback"),
        *("content_open", "responsiveness_stream_length", "overall_stream_length"),
        *("responsiveness", "stability", "overall", "false_alarm_rate", "miss_rate", "signed_delay", "invalid_rate"),
        *("circular_accuracy", "rotation_consistency", "letter_preference", "no_option_rate"),
        *("worst_prompt", "best_prompt", "prompt_spread", "prompt_agreement"),
        *(f"prompt_{number}" for number in range(1, 11)),
        *("confidence_given", "ece", "brier", "aurc", "accuracy_at_80"),
    }
)
"""Names of the metrics that benchmarks share (`medtasks.metrics.registry`), which no package may use."""


@dataclass
class Taken:
    """Names in use, with their owners."""

    benchmarks: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)


def usable_parts(package: TaskPackage, plugin: Plugin, taken: Taken) -> tuple[Plugin, tuple[LeftOut, ...]]:
    """The usable parts of ``plugin``, whose names are added to ``taken``, and the reasons why others are left out.

    Raises:
        MedtasksError: a benchmark's name is taken, so the package's tasks would run on another benchmark's data.
    """
    left_out: list[LeftOut] = []

    def usable(word: str, parts: Any, check: Callable[[Any], Iterator[str]]) -> tuple[Any, ...]:
        kept = []
        for part in parts:
            why = next(check(part), None)
            if why is None:
                kept.append(part)
                if word == "metric":
                    taken.metrics[part.name] = package.owner
            else:
                left_out.append(LeftOut(package.owner, f"{word} {_name(part)}", why, *place_of(part)))
        return tuple(kept)

    benchmarks = usable("benchmark", plugin.benchmarks, functools.partial(_not_a, Benchmark))
    for one in benchmarks:
        if one.name in taken.benchmarks:
            raise MedtasksError(
                f"its benchmark {one.name} is already defined by {taken.benchmarks[one.name]}; rename it."
            )
    taken.benchmarks |= dict.fromkeys((one.name for one in benchmarks), package.owner)
    filters = usable("filter", plugin.filters, _about_filter)
    metrics = usable("metric", plugin.metrics, lambda one: _about_metric(one, package, taken))
    cards = usable("board layout", plugin.cards, lambda one: _about_card(one, [its.name for its in benchmarks], plugin))
    return Plugin(benchmarks, filters, metrics, cards), tuple(left_out)


def _name(part: Any) -> str:
    if isinstance(part, FilterInfo):
        return str(getattr(part.kind, "__name__", part.kind))
    named = getattr(part, "name", None) or getattr(part, "benchmark", None) or getattr(part, "__name__", None)
    return named if isinstance(named, str) else type(part).__name__


def place_of(part: Any) -> tuple[str, int | None]:
    """File and line of the class of ``part``; empty if unknown or ours."""
    kind = part.kind if isinstance(part, FilterInfo) else part
    kind = kind if inspect.isclass(kind) or inspect.isfunction(kind) else type(kind)
    if kind.__module__.partition(".")[0] == OURS:
        return "", None
    try:
        return inspect.getsourcefile(kind) or "", inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return "", None


def _not_a(kind: type[Any], part: Any) -> Iterator[str]:
    if not isinstance(part, kind):
        found = f"the class {part.__name__}" if isinstance(part, type) else f"a {type(part).__name__}"
        yield f"it is {found}, expected medtasks.api.{kind.__name__}."


def _about_filter(part: Any) -> Iterator[str]:
    yield from _not_a(FilterInfo, part)
    if not isinstance(part.kind, type) or not callable(getattr(part.kind, "apply", None)):
        yield "its `kind` is not a class with a method apply(responses, documents)."
    if not isinstance(part.version, str) or not part.version:
        yield f"its `version` is {part.version!r}, expected a string such as '1'."
    if not callable(part.status):
        yield f"its `status` is a {type(part.status).__name__}, expected a function of a filtered response."


_METRIC = {"name": str, "width": int, "higher_is_better": bool, "signature": str}
_METHODS = ("unavailable", "statistics", "score")


def _about_metric(metric: Any, package: TaskPackage, taken: Taken) -> Iterator[str]:
    if isinstance(metric, type):
        yield "it is a class; put an instance into PLUGIN.metrics."
    for attribute, kind in _METRIC.items():
        try:
            value = getattr(metric, attribute)
        except AttributeError:
            yield f"it has no `{attribute}`; extend medtasks.api.MeanMetric, or add it."
        except (Exception, SystemExit) as error:  # another package's property may raise anything
            yield f"its `{attribute}` fails ({first_line(error)}); fix it."
        else:
            if not isinstance(value, kind):
                yield f"its `{attribute}` is {value!r}, expected a {kind.__name__}."
    for method in _METHODS:
        if not callable(getattr(metric, method, None)):
            yield f"it has no method `{method}`; extend medtasks.api.MeanMetric, or add it."
    yield from _about_name(metric.name, package, taken)


def _about_name(name: str, package: TaskPackage, taken: Taken) -> Iterator[str]:
    from medtasks.rubrics.rubric import score_owners  # a package without metrics does not read rubrics

    owners = score_owners() | dict.fromkeys(SHARED_METRICS, OURS)
    if name in owners:
        yield f"{owners[name]} already has that score; call it {package.prefix}_{name}, or another."
    if not package.owns(name):
        yield f"its name must start with that of the package; call it {package.prefix}_{name}."
    if name in taken.metrics:
        yield f"{taken.metrics[name]} already has that metric; rename it."


def _about_card(card: Any, benchmarks: list[str], plugin: Plugin) -> Iterator[str]:
    yield from _not_a(Card, card)
    if card.benchmark not in benchmarks or [one.benchmark for one in plugin.cards].count(card.benchmark) > 1:
        yield f"it must be the only board layout of a benchmark of its package ({', '.join(benchmarks) or 'none'})."
