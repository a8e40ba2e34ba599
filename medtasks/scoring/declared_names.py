"""Checks of the names in a task file that only scoring would look up."""

from __future__ import annotations

from collections.abc import Sequence

from medtasks.benchmarks.error_kinds import declared_errors
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import UsageError


def refuse_unknown_names(spec: TaskSpec, benchmark: Benchmark) -> None:
    """Refuse, before a run, breakdowns and metrics that would end the scoring after it."""
    pooled = [*benchmark.scoring.pooled]
    if benchmark.scoring.errors is not None:
        pooled += [rate.name for rate in benchmark.scoring.errors.rates]
    _refuse_unknown(spec, "breakdowns", spec.metadata.breakdowns, [*benchmark.breakdowns])
    _refuse_unknown(spec, "pooled", spec.metadata.pooled, pooled)
    declared_errors(spec.name, benchmark)


def _refuse_unknown(
    spec: TaskSpec, key: str, names: Sequence[str], expected: Sequence[str]
) -> None:
    """Refuse names under a key of ``metadata`` that the benchmark does not have."""
    for name in names:
        if name in expected:
            continue
        choices = f"expected one of {', '.join(expected)}"
        if not expected:
            choices = f"but {spec.metadata.benchmark} has none"
        raise UsageError(
            f"{spec.name}: metadata.{key} names {name!r}, {choices}; correct {spec.path.name}."
        )
