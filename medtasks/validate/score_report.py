"""The report on a task's scores: statistics of the right width, scores within their range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from medtasks.catalog.guest_code import place_of, raised_at
from medtasks.catalog.spec import TaskSpec, read_installed
from medtasks.core.errors import first_line
from medtasks.core.findings import Finding
from medtasks.metrics.base import Metric
from medtasks.metrics.registry import get_metric, item_bounds_of
from medtasks.validate.report import Document, TaskReport

TOLERANCE = 1e-9
"""Relative difference of two scores up to which they are equal."""


class ScoreReport:
    """Reports faults of a task's scores, each at the code or the line that is to be fixed."""

    def __init__(self, spec: TaskSpec, document_count: int) -> None:
        self._spec = spec
        self._source = read_installed(spec.path)
        self._report = TaskReport(self._source, document_count)
        self._report.place = self._source.place("process_results")

    def findings(self) -> list[Finding]:
        return self._report.findings()

    def on_response(
        self, code: str, document: Document, message: str, error: BaseException, field: str = ""
    ) -> None:
        """Count a document whose response cannot be scored, at the place of the ``error``."""
        self._report.on_document(code, document, message, field, raised_at(error))

    def on_metric(
        self,
        code: str,
        metric: str,
        message: str,
        error: BaseException | None = None,
        **changed: Any,
    ) -> None:
        """Report something about a metric, or about the whole task if ``metric`` is empty.

        Its place is where ``error`` was raised, the class of a faulty metric, or the task file.
        """
        place = None
        if error is not None:
            message, place = f"{message} ({one_sentence(error)})", raised_at(error)
        elif code in ("MT504", "MT508"):  # the metric's own fault, not that of the task
            place = place_of(get_metric(metric))
        if place is None and metric in self._spec.metrics:
            place = self._source.place("metric_list", self._spec.metrics.index(metric))
        self._report.on_task(code, message, metric, place, **changed)

    def is_sound(self, where: str, metric: Metric, rows: Sequence[Sequence[float]]) -> bool:
        """Whether statistics of an item can be scored; those that cannot are reported."""
        code, fault = "MT508", ""
        if not rows and metric.unavailable() is None:
            fault = f"there are no statistics, expected {metric.width}"
        for row in rows:
            if len(row) != metric.width:
                expected = f"expected {metric.width}, the metric's width"
                fault = f"there are {len(row)} statistics, {expected}"
            elif not all(map(math.isfinite, row)):
                code = "MT504"
                fault = f"the statistics are {list(row)[:6]}, expected finite numbers"
        if fault:
            self.on_metric(code, metric.name, f"{where}: {fault}")
        return not fault

    def check_range(self, metric: Metric, score: float, what: str) -> None:
        """Report a score that is not finite, or out of the metric's bounds.

        They are assumed to be 0 and 1 for another package's metric that states none.
        """
        bounds = item_bounds_of(metric.name)
        low, high = bounds or (0.0, 1.0)
        slack = TOLERANCE * max(1.0, abs(score))
        if math.isfinite(score) and low - slack <= score <= high + slack:
            return
        changed: dict[str, Any] = {}
        if bounds is None:
            changed = {"fix": "add `bounds` to the metric, or fix it", "severity": "warning"}
        message = f"{what} is {score:g}, expected {low:g} to {high:g}"
        self.on_metric("MT504", metric.name, message, **changed)


def one_sentence(error: BaseException) -> str:
    """The first line of an error, without its full stop."""
    return first_line(error)[:500].rstrip(".")
