"""Med-CMR: the pooled overall from the seven columns, and would not pool with a figure misread."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from medtasks.leaderboard.board.reference import load_reference
from reference_figures import Cell, cells, half_unit, printed, read

DIMENSIONS = ("SOD", "FDD", "SU", "TP", "CR", "LTG", "MSI")
RELEASE = {"SOD": 1024, "FDD": 711, "SU": 371, "TP": 336, "CR": 1922, "LTG": 11582, "MSI": 709}
AS_PRINTED = RELEASE | {"SOD": 1023, "SU": RELEASE["MSI"], "MSI": RELEASE["SU"]}
"""The card: SU and MSI are swapped between the printed table and the release, and one SOD row is missing."""
MAIN = "Main results"


def pooled_error(figures: dict[Cell, Decimal | None], label: str, counts: dict[str, int]) -> tuple[float, float]:
    columns = [read(figures, MAIN, label, name) for name in DIMENSIONS]
    overall = read(figures, MAIN, label, "MCQ All")
    total = sum(counts.values())
    pooled = sum(float(figure) * counts[name] for name, figure in zip(DIMENSIONS, columns, strict=True)) / total
    return abs(pooled - float(overall)), half_unit(overall) + half_unit(*columns)


MED_CMR = tuple(row.label for row in load_reference("med_cmr").rows)


@pytest.mark.parametrize("label", MED_CMR)
def test_med_cmr_overall_is_the_seven_dimensions_pooled(label: str) -> None:
    error, rounding = pooled_error(printed("med_cmr"), label, AS_PRINTED)
    assert error <= rounding


@pytest.mark.parametrize("label", MED_CMR)
def test_med_cmr_does_not_pool_with_the_releases_labels(label: str) -> None:
    error, rounding = pooled_error(printed("med_cmr"), label, RELEASE)
    assert error > rounding


@pytest.mark.parametrize("name", DIMENSIONS)
def test_med_cmr_would_not_pool_with_a_figure_misread(name: str) -> None:
    figures = printed("med_cmr")
    off = Decimal(10) if AS_PRINTED[name] < 1000 else Decimal(1)  # a digit of the tens, or of the ones
    figures[MAIN, "GPT-5", name] = read(figures, MAIN, "GPT-5", name) - off
    error, rounding = pooled_error(figures, "GPT-5", AS_PRINTED)
    assert error > rounding


@pytest.mark.parametrize("name", DIMENSIONS)
def test_med_cmr_columns_are_shares_of_the_printed_counts(name: str) -> None:
    figures = [Decimal(cell.printed or "NaN") for _, cell in cells("med_cmr") if cell.column == name]
    shares, rows = np.array([float(figure) for figure in figures]), AS_PRINTED[name]
    assert np.all(np.abs(100 * np.round(shares * rows / 100) / rows - shares) <= half_unit(*figures) + 1e-9)


def test_med_cmr_swapped_columns_are_kept_out_of_rankings() -> None:
    assert {cell.column for _, cell in cells("med_cmr") if not cell.rankable} == {"SU", "MSI"}


def test_med_cmr_margins_that_the_text_states() -> None:
    figures = printed("med_cmr")
    open_source = [row.label for row in load_reference("med_cmr").rows if row.type != "closed"]
    for column, stated in (("MCQ All", Decimal("8.47")), ("Open All", Decimal("0.82"))):
        best = max(read(figures, MAIN, label, column) for label in open_source)
        assert read(figures, MAIN, "GPT-5", column) - best == stated
    assert all(read(figures, MAIN, label, "LTG") < 46 for label in open_source)
