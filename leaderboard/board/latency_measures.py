"""The figures of a latency as columns of tables."""

from __future__ import annotations

from dataclasses import dataclass

from medtasks.metrics.facts import Unit
from medtasks.scoring.latency import Latency
from medtasks.scoring.latency_figures import Figure

from ..schema.score_tables import BoardColumn
from .floors import NO_FLOORS

LATENCY = "latency"
"""The first part of the names of tables, plots and measures."""
_NO_FIRST_TOKEN = "the back-end does not report the first token"


@dataclass(frozen=True)
class LatencyMeasure:
    """A figure of the latency as a column."""

    name: str
    label: str
    unit: Unit
    higher_is_better: bool = False
    why_unknown: str = "not measured"

    def of(self, latency: Latency) -> Figure | None:
        """The figure, if it is known."""
        figure: Figure | None = getattr(latency, self.name)
        return figure


MEDIAN = LatencyMeasure("median", "Median latency", "duration")
MEASURES = (
    MEDIAN,
    LatencyMeasure("p95", "95th percentile", "duration"),
    LatencyMeasure(
        "first_token_median", "First token, median", "duration", why_unknown=_NO_FIRST_TOKEN
    ),
    LatencyMeasure(
        "first_token_p95", "First token, 95th percentile", "duration", why_unknown=_NO_FIRST_TOKEN
    ),
    LatencyMeasure(
        "output_tokens_per_second",
        "Output tokens",
        "rate",
        higher_is_better=True,
        why_unknown="the back-end does not count tokens",
    ),
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
