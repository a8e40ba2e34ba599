"""MI-CXR: overall columns from their subtypes, and would not add up with a figure misread."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain

import numpy as np
import pytest
from medtasks.leaderboard.board.reference import (
    ReferenceCell,
    load_reference,
)
from reference_figures import Cell, cells, fewest_rows, half_unit, misfit, printed, read

README = "README, results"
SUBTYPES = {
    README: ("TEL (Single)", "TEL (Multi)", "TEL (E→R)", "ICR", "GTS (Single)", "GTS (Multi)", "Overall"),
    "Table 19": (
        "TEL Single (E/R)",
        "TEL Multiple (E/R)",
        "TEL E→R / R→E",
        "ICR",
        "GTS Single Abnormality",
        "GTS Multi Abnormality",
        "Overall",
    ),
}
SUBTYPES["Table 20"] = SUBTYPES["Table 19"]


def subtypes_misfit(figures: dict[Cell, Decimal | None], *tables: str) -> tuple[float, float]:
    rows = []
    for table in tables:
        labels = dict.fromkeys(model for held, model, _ in figures if held == table)
        rows += [[read(figures, table, label, column) for column in SUBTYPES[table]] for label in labels]
    numbers = np.array(rows, dtype=float)
    return misfit(numbers[:, :-1].tolist(), numbers[:, -1].tolist()), 2 * half_unit(*chain(*rows))


def test_mi_cxr_overall_is_the_subtypes_pooled() -> None:
    off, rounding = subtypes_misfit(printed("mi_cxr"), README)
    assert off <= rounding


@pytest.mark.parametrize("column", SUBTYPES[README][:-1])
def test_mi_cxr_would_not_add_up_with_a_figure_misread(column: str) -> None:
    figures = printed("mi_cxr")
    figures[README, "Lingshu-7B", column] = read(figures, README, "Lingshu-7B", column) + Decimal("0.100")
    off, rounding = subtypes_misfit(figures, README)
    assert off > rounding


def test_mi_cxr_prompting_tables_pool_with_other_shares() -> None:
    # A note says so: one set of rows cannot have made both these tables and the zero-shot one.
    assert all(any("pooled" in note for note in cell.notes) for cell in overall_cells("Table 19", "Table 20"))
    off, rounding = subtypes_misfit(printed("mi_cxr"), *SUBTYPES)
    assert off > 10 * rounding


WITH_RESULTS = {"Table 1", "Table 2", *(f"Table {number}" for number in range(15, 21)), "Figure 3", "Figures 25 to 27"}
"""The paper's tables and figures of models' results; the others describe the data."""


def test_mi_cxr_results_are_all_held_or_named_as_missing() -> None:
    missing = {gap.what.partition(",")[0] for gap in load_reference("mi_cxr").gaps}
    held = {row.table for row, _ in cells("mi_cxr")}
    assert held - {README} | missing == WITH_RESULTS
    assert not held & missing


def overall_cells(*tables: str) -> list[ReferenceCell]:
    return [cell for row, cell in cells("mi_cxr") if row.table in tables and cell.column == "Overall"]


def test_mi_cxr_stated_mean_fits_the_models_held() -> None:
    # 29.3 % is the mean of 14 models, 12 of which are held: the other two must lie among them.
    held = [Decimal(cell.printed or "NaN") for cell in overall_cells(README)]
    others = (14 * Decimal("0.293") - sum(held)) / 2
    assert len(held) == 12
    assert min(held) < others < max(held)


@pytest.mark.parametrize("table", ["Table 2", "Table 16"])
def test_mi_cxr_variant_is_shares_of_183_questions(table: str) -> None:
    figures = [figure for (held, _, _), figure in printed("mi_cxr").items() if held == table and figure is not None]
    assert len(figures) == 14
    assert fewest_rows(figures, whole=1) == 183  # not of the 400 that appendix D gives; a note says so
    assert all(any("183" in note for note in cell.notes) for row, cell in cells("mi_cxr") if row.table == table)
