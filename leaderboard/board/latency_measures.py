"""The figures of a latency as columns of tables."""

from __future__ import annotations

from dataclasses import dataclass

from medtasks.metrics.facts import Unit
from medtasks.scoring.latency import Latency
from medtasks.scoring.latency_figures import RoundedEstimate

from ..schema.score_tables import BoardColumn
from .floors import NO_FLOORS

LATENCY = "latency"
"""The first part of the names of tables, plots and measures."""
_NO_FIRST_TOKEN = "the back-end does not report the first token"
_NO_TOKENS = "the back-end does not count tokens"


@dataclass(frozen=True)
class LatencyMeasure:
    """A figure of the latency as a column; with ``of_streams`` it is one of
    `medtasks.scoring.stream_latency.StreamLatency`. ``count`` is the field with the number of
    requests, streams or items that it is over.
    """

    name: str
    label: str
    unit: Unit
    higher_is_better: bool = False
    of_streams: bool = False
    why_unknown: str = "not measured"
    count: str = "measured"

    def of(self, latency: Latency) -> RoundedEstimate | None:
        """The figure, if it is known."""
        if self.of_streams and latency.stream is None:
            return None
        source = latency.stream if self.of_streams else latency
        figure: RoundedEstimate | None = getattr(source, self.name)
        return figure

    def items(self, latency: Latency) -> int:
        """The number of requests, streams or items that the figure is over."""
        source = latency.stream if self.of_streams else latency
        number: int = 0 if source is None else getattr(source, self.count)
        return number


def _of_requests(
    name: str, label: str, unit: Unit, why_unknown: str = "not measured"
) -> LatencyMeasure:
    """A figure of all requests."""
    return LatencyMeasure(name, label, unit, unit == "rate", why_unknown=why_unknown)


def _of_first_tokens(name: str, label: str) -> LatencyMeasure:
    """A figure of the requests whose first token was timed."""
    return LatencyMeasure(
        name, label, "duration", why_unknown=_NO_FIRST_TOKEN, count="first_tokens"
    )


def _of_streams(name: str, label: str, unit: Unit, count: str = "measured") -> LatencyMeasure:
    """A figure of whole streams whose seconds are known."""
    why_unknown = "no stream of which the seconds of every round are known"
    return LatencyMeasure(name, label, unit, unit == "fraction", True, why_unknown, count)


MEDIAN = _of_requests("median", "Median latency", "duration")
MEASURES = (
    MEDIAN,
    _of_requests("p95", "95th percentile", "duration"),
    _of_first_tokens("first_token_median", "First token, median"),
    _of_first_tokens("first_token_p95", "First token, 95th percentile"),
    _of_requests("output_tokens_per_second", "Output tokens", "rate", _NO_TOKENS),
    _of_streams("real_time_factor_median", "Real-time factor, median", "factor"),
    _of_streams("real_time_factor_p95", "Real-time factor, 95th percentile", "factor"),
    _of_streams("answered_in_time", "Rounds in time", "fraction"),
    _of_streams("responsiveness", "Responsiveness, stream time", "fraction"),
    _of_streams("responsiveness_with_computing", "Responsiveness, with computing", "fraction"),
    _of_streams("overall", "Overall, stream time", "fraction", "scored"),
    _of_streams("overall_with_computing", "Overall, with computing", "fraction", "scored"),
)
"""All columns in the order of tables; those without any value are left out."""


def measure_column(column: BoardColumn, measure: LatencyMeasure, table: str) -> BoardColumn:
    """The column of a figure in a table, beside the score."""
    update = {
        "key": f"{column.key}.{table}.{measure.name}",
        "metric": f"{LATENCY}.{measure.name}",
        "label": measure.label,
        "unit": measure.unit,
        "higher_is_better": measure.higher_is_better,
        "remark": "",
        **NO_FLOORS,
    }
    return column.model_copy(update=update)
