"""MedStreamBench: table 4 from its modes, and would not add up with a figure misread."""

from __future__ import annotations

from decimal import Decimal

import pytest
from medtasks.leaderboard.board.reference import ReferenceRow, load_reference
from reference_figures import Cell, half_unit, printed, read
from table4 import table4_overall

STREAM_ROWS = load_reference("medstreambench").rows
APPROXIMATE = {"retrospective": 3820, "present": 402, "future": 885, "proactive": 311}
"""Items per mode as the card has them, "about": the paper prints none."""


def table4_error(figures: dict[Cell, Decimal | None], label: str) -> tuple[float, float]:
    def mean(column: str) -> float:
        return float(read(figures, "Table 4", label, column))

    means: dict[str, tuple[float, float | None]] = {
        "retrospective": (mean("Retrospective Content"), None),
        "present": (mean("Present Content"), None),
        "future": (mean("Future Content"), mean("Future Resp.")),
        "proactive": (mean("Proactive Content"), mean("Proactive Resp.")),
    }
    row = [figure for (_, model, _), figure in figures.items() if model == label and figure is not None]
    # the mode means weigh 1 in total, and the overall is rounded itself
    return abs(table4_overall(means, APPROXIMATE) - mean("Overall Score")), 2 * half_unit(*row)


@pytest.mark.parametrize("label", [row.label for row in STREAM_ROWS])
def test_medstreambench_overall_follows_from_its_modes(label: str) -> None:
    error, rounding = table4_error(printed("medstreambench"), label)
    assert error <= rounding


@pytest.mark.parametrize(
    "column", ["Retrospective Content", "Present Content", "Future Content", "Future Resp.", "Proactive Content"]
)
def test_medstreambench_would_not_add_up_with_a_figure_misread(column: str) -> None:
    figures = printed("medstreambench")
    figures["Table 4", "Lingshu-7B", column] = read(figures, "Table 4", "Lingshu-7B", column) + Decimal("0.01")
    error, rounding = table4_error(figures, "Lingshu-7B")
    assert error > rounding


def test_medstreambench_says_which_choices_the_paper_leaves_open() -> None:
    # no judge is named, section 5.5 makes the fallback optional, and it has no formula for early and late responses
    for row in STREAM_ROWS:
        assert row.judge == "not stated"
        assert any("optional fallback" in note for note in row.notes)
        timed = [cell for cell in row.cells if cell.metric in ("responsiveness", "overall_table4")]
        assert len(timed) == 3
        assert all("no formula" in cell.why for cell in timed)
        assert {cell.column for cell in row.cells if not cell.rankable} == {cell.column for cell in timed}


def test_medstreambench_leaders_are_those_of_the_table() -> None:
    # The text names Lingshu-7B for the medical models; the table has HuluMed-7B before it, and a note says so.
    best: dict[str, ReferenceRow] = {}
    for row in STREAM_ROWS:
        if row.type not in best or (row.cells[-1].value or 0) > (best[row.type].cells[-1].value or 0):
            best[row.type] = row
    leaders = {kind: row.model for kind, row in best.items()}
    assert leaders == {"closed": "Gemini-2.5-Pro", "general": "InternVL3.5-8B", "medical": "HuluMed-7B"}
    assert any("Lingshu-7B" in note for note in best["medical"].notes)
