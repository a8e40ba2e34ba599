"""Metrics by name: those shared by all benchmarks, those of packages, the scores of rubrics, and
kinds of error that task files declare.

A shared metric is an instance in the ``METRICS`` of a module in this folder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules

import numpy as np

import medtasks.metrics
from medtasks.catalog.contents import once
from medtasks.catalog.registry import Plugin, package_metrics
from medtasks.catalog.rubric_files import score_owners, usable_rubrics
from medtasks.catalog.spec import load_specs
from medtasks.catalog.task_package import OURS
from medtasks.core.errors import UsageError
from medtasks.core.schema import unknown
from medtasks.metrics.base import Array, Installed, Metric, Pairs
from medtasks.metrics.facts import NO_FACTS, NOT_IN_SUMMARY, Bounds, MetricFacts, Unit
from medtasks.metrics.item_metrics import ErrorRate, ItemScore, declared_rate, judged_mean
from medtasks.metrics.learned.learned_metric import LearnedMetric


def _shared_metrics() -> Iterator[Metric]:
    """The metrics in ``METRICS`` of this folder's modules, in the alphabetical order of modules."""
    names = sorted(module.name for module in iter_modules(medtasks.metrics.__path__))
    for name in names:
        if name != "registry":
            yield from getattr(import_module(f"medtasks.metrics.{name}"), "METRICS", ())


def scores_pairs(metric: Metric) -> bool:
    """Whether the metric scores a prediction and a reference, unlike those of whole items."""
    if not isinstance(metric, Installed):
        return True
    kind: type[Installed] = type(metric)
    return kind.table is not Installed.table or kind.statistics is not Installed.statistics


PLUGIN = Plugin(metrics=tuple(sorted(_shared_metrics(), key=scores_pairs, reverse=True)))
"""One instance of each, since metrics are stateless; those that score pairs come first."""


def _text_metrics() -> Iterator[Installed]:
    """The shared metrics that compare the texts of many pairs at once, without a model."""
    for metric in PLUGIN.metrics:
        if not isinstance(metric, Installed) or isinstance(metric, LearnedMetric):
            continue
        if type(metric).table is not Installed.table:
            yield metric


_TEXTS = {metric.name: metric for metric in _text_metrics()}
LEXICAL = tuple(_TEXTS)
"""The text-overlap metrics."""


def get_metric(name: str) -> Metric:
    """The metric of that name: of a package, the score of a rubric, or a kind of error that a task
    file declares.

    Raises:
        UsageError: there is no such metric.
    """
    metric = registered_metric(name) or _declared().get(name)
    if metric is not None:
        return metric
    raise UsageError(
        f"{unknown('metric', name, {**package_metrics(), **_judged(), **_declared()})}."
    )


def facts_of(name: str) -> MetricFacts:
    """The facts that the metric of that name states; none if it states or there is none."""
    metric = registered_metric(name) or _declared().get(name)
    facts = getattr(metric, "facts", NO_FACTS)
    return facts if isinstance(facts, MetricFacts) else NO_FACTS


def label_of(name: str) -> str:
    """The heading of the metric on a leaderboard whose layout states none.

    >>> label_of("ece"), label_of("rougeL")
    ('calibration error', 'rougeL')
    """
    return facts_of(name).label or name


def registered_metric(name: str) -> Metric | None:
    """The metric of that name, unless a task file declares it; None if there is none."""
    brought = package_metrics().get(name)
    return _judged().get(name) if brought is None else brought[0]


@once
def learned_metrics() -> Mapping[str, LearnedMetric]:
    """The learned metrics by name, ours first."""
    metrics: dict[str, LearnedMetric] = {}
    for name, (metric, _) in package_metrics().items():
        if isinstance(metric, LearnedMetric):
            metrics[name] = metric
    return metrics


def learned_metric(name: str) -> LearnedMetric:
    """The learned metric of that name; raises `UsageError` if there is none."""
    metrics = learned_metrics()
    if name not in metrics:
        raise UsageError(
            f"{unknown('learned metric', name, metrics)}; correct `learned` in the task file, or "
            "install the package that has it."
        )
    return metrics[name]


def is_ours(name: str) -> bool:
    """Whether the metric, or the rubric that gives the score, is part of medtasks."""
    brought = package_metrics().get(name)
    return (score_owners().get(name) if brought is None else brought[1]) == OURS


@once
def _judged() -> dict[str, ItemScore]:
    """The scores of all usable rubrics, by name."""
    metrics: dict[str, ItemScore] = {}
    for rubric in usable_rubrics():
        first, *_ = rubric.metrics
        for name, value in rubric.metrics.items():
            facts = MetricFacts(
                headline=20 if name == first else NOT_IN_SUMMARY, is_verdict=value == "strict"
            )
            metrics[name] = judged_mean(name, rubric.best, facts)
    return metrics


@once
def _declared() -> dict[str, ErrorRate]:
    """Kinds of error by name; of two with one name the first (`name_problem` reports the other)."""
    kinds = [kind for spec in load_specs().values() for kind in spec.metadata.errors]
    return {kind.name: declared_rate(kind) for kind in reversed(kinds)}


CHUNK = 256
"""Pairs at a time: so few that the arrays of their n-grams stay in the processor's cache."""
CHUNK_CHARACTERS = 2**20
"""Characters of these pairs, unless a pair alone has more: each takes up to 400 bytes."""


def lexical_statistics(
    pairs: Sequence[tuple[str, str]], metrics: Sequence[str] = LEXICAL
) -> dict[str, Array]:
    """Sufficient statistics ``(n, width)`` of n pairs (prediction, reference), under those of some
    `LEXICAL` metrics that can be computed here.
    """
    computed = [
        metric
        for name, metric in _TEXTS.items()
        if name in metrics and metric.unavailable() is None
    ]
    parts = {metric.name: [np.zeros((0, metric.width))] for metric in computed}
    for chunk in _chunks(pairs):
        for metric in computed:
            parts[metric.name].append(metric.table(chunk))
    return {name: np.concatenate(tables) for name, tables in parts.items()}


def _chunks(pairs: Sequence[tuple[str, str]]) -> Iterator[Pairs]:
    """The pairs in parts of at most `CHUNK` pairs and about `CHUNK_CHARACTERS` characters."""
    chunk: list[tuple[str, str]] = []
    characters = 0
    for pair in pairs:
        length = len(pair[0]) + len(pair[1])
        if chunk and (len(chunk) == CHUNK or characters + length > CHUNK_CHARACTERS):
            yield tuple(chunk)
            chunk, characters = [], 0
        chunk.append(pair)
        characters += length
    if chunk:
        yield tuple(chunk)


_SCALES: dict[str, Unit] = {"scale:0-100": "points", "scale:0-1": "fraction", "unit:s": "seconds"}


def unit_of(metric: str) -> Unit:
    """The unit of a metric's scores.

    Unless its facts state one, its signature decides: ``scale:0-100`` means points, ``scale:0-1``
    fractions, ``unit:s`` seconds, another scale a score of its own, no scale a fraction.
    """
    unit = facts_of(metric).unit
    if unit is not None:
        return unit
    parts = get_metric(metric).signature.split("|")[1:]
    scales = [
        _SCALES.get(part, "score") for part in parts if part.startswith("scale:") or part in _SCALES
    ]
    return scales[0] if scales else "fraction"


_BOUNDS: dict[Unit, Bounds] = {"fraction": (0.0, 1.0), "points": (0.0, 100.0)}


def bounds_of(metric: str) -> Bounds | None:
    """The ends of the scale that intervals assume: those that the metric declares as ``bounds``,
    else those of its unit.

    None if there are none, as for seconds.

    >>> bounds_of("accuracy"), bounds_of("chrf"), bounds_of("signed_delay")
    ((0.0, 1.0), (0.0, 100.0), None)
    """
    declared: Bounds | None = getattr(get_metric(metric), "bounds", None)
    return _BOUNDS.get(unit_of(metric)) if declared is None else declared


def item_bounds_of(metric: str) -> Bounds | None:
    """The least and the greatest score of one item; None if the metric, of another package, states
    none.

    They are in the metric's facts, or else the ends of its scale, infinite without a scale.

    >>> item_bounds_of("chrf"), item_bounds_of("cider"), item_bounds_of("signed_delay")
    ((0.0, 100.0), (0.0, 10.0), (-inf, inf))
    """
    stated = facts_of(metric).item_bounds
    if stated is not None:
        return stated
    declared = getattr(get_metric(metric), "bounds", None)
    if isinstance(declared, (tuple, list)) and len(declared) == 2:
        low, high = declared
        return float(low), float(high)
    if is_ours(metric):
        return _BOUNDS.get(unit_of(metric), (-math.inf, math.inf))
    return None
