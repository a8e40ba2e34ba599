"""What the models that a benchmark ranks used and cost, and the plot of a score against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from medtasks.benchmarks.layout_parts import HEADLINE
from medtasks.runs.usage import Usage

from ..rank.comparability import ComparabilityGroups
from ..schema.plot_data import BoardPlot, ModelUsage
from ..schema.score_tables import BoardColumn, BoardRow
from .usage import SECONDS, Prices, plotted, used_by

_PLOT_NAMES = ("cost", "score-against-cost", "cost-of-answers")
"""Names of the plot of costs; the first one that no other plot has is taken."""


@dataclass(frozen=True)
class CostSection:
    """What the ranked runs of a benchmark used, and the plots of a score against it."""

    usage: list[ModelUsage] = field(default_factory=list)
    plots: list[BoardPlot] = field(default_factory=list)


def cost_section(
    headline: Sequence[BoardColumn],
    rows: Sequence[BoardRow],
    groups: ComparabilityGroups,
    prices: Prices,
    plots: Sequence[BoardPlot],
) -> CostSection:
    """What the runs cost that are ranked by the first headline score that is not signed.

    ``rows`` are those of the headline table, ``plots`` the other plots of the board.
    """
    for column in headline:
        if not column.signed:
            usage = _model_usage(column, rows, groups, prices)
            return CostSection(usage, list(_cost_plot(column, usage, plots)))
    return CostSection()


def _model_usage(
    column: BoardColumn,
    rows: Sequence[BoardRow],
    groups: ComparabilityGroups,
    prices: Prices,
) -> list[ModelUsage]:
    """What the runs that are ranked by a headline score used and cost, if they report it."""
    scores = {row.model: row.cells.get(column.key) for row in rows}
    reported = []
    for model, run in groups.of(column.task, column.metric).ranked.items():
        usage, cost = used_by(run, prices, column.task)
        score = scores.get(model)
        if score is not None and usage != Usage():
            reported.append(
                ModelUsage(model=model, run=run.public.key, score=score, usage=usage, cost=cost)
            )
    return reported


def _cost_plot(
    column: BoardColumn, usage: Sequence[ModelUsage], plots: Sequence[BoardPlot]
) -> Iterator[BoardPlot]:
    """The plot of a score against cost, time or tokens, if any run reports them.

    Its name differs from those of the ``plots``.
    """
    measure = plotted([(entry.usage, entry.cost) for entry in usage])
    if measure is None:
        return
    taken = {plot.name for plot in plots}
    yield BoardPlot(
        name=next(name for name in _PLOT_NAMES if name not in taken),
        title=f"{column.label} against {measure.label.lower()}",
        kind="cost",
        table=HEADLINE,
        columns=(column.key,),
        note="Times depend on the machine." if measure is SECONDS else "",
    )
