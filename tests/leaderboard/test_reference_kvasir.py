"""Kvasir-VQA-x1: levels and overall columns of its tables add up, and would not with a figure misread."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain

import pytest
from medtasks.leaderboard.board.reference import load_reference
from reference_figures import Cell, fewest_rows, half_unit, misfit, printed, read

MODELS = ("gemma3", "medgemma", "medgemma-ft", "Qwen 2.5-VL-7B", "Qwen2.5-VL-7B-ft")
LEVELS = tuple(f"Table 7, complexity level {level}" for level in (1, 2, 3))
OVERALL = "Table 7, overall"
CLASSES = tuple(cell.column for cell in load_reference("kvasir_vqa_x1").rows[-1].cells)
LEVEL_1_ROWS = 5548  # protocol card


def levels_and_overall(figures: dict[Cell, Decimal | None], name: str) -> tuple[list[list[Decimal]], list[Decimal]]:
    """A class's scores by level, and overall, of the models of which all are readable."""
    parts, wholes = [], []
    for model in MODELS:
        row = [figures[table, model, name] for table in (*LEVELS, OVERALL)]
        if None not in row:
            *levels, overall = [figure for figure in row if figure is not None]
            parts.append(levels)
            wholes.append(overall)
    return parts, wholes


def overall_misfit(figures: dict[Cell, Decimal | None], name: str) -> tuple[float, float]:
    """How far a class's overall column is from its levels pooled, and how far rounding alone could put it."""
    parts, wholes = levels_and_overall(figures, name)
    assert len(wholes) >= 3  # more than the two free shares
    rounding = half_unit(*wholes) + half_unit(*chain(*parts))  # the shares of the levels make 1
    return misfit([[float(figure) for figure in row] for row in parts], [float(f) for f in wholes]), rounding


POOLED = [name for name in CLASSES if name != "finding_presence"]


@pytest.mark.parametrize("name", POOLED)
def test_kvasir_overall_is_the_levels_pooled(name: str) -> None:
    off, rounding = overall_misfit(printed("kvasir_vqa_x1"), name)
    assert off <= rounding


@pytest.mark.parametrize("table", [LEVELS[1], OVERALL])
@pytest.mark.parametrize("model", ["medgemma", "Qwen 2.5-VL-7B"])
def test_kvasir_would_not_add_up_with_a_figure_misread(table: str, model: str) -> None:
    figures = printed("kvasir_vqa_x1")
    figures[table, model, "polyp_type"] = read(figures, table, model, "polyp_type") + 1
    off, rounding = overall_misfit(figures, "polyp_type")
    assert off > 5 * rounding


def test_kvasir_finding_presence_is_asked_at_level_1_alone() -> None:
    figures = printed("kvasir_vqa_x1")
    for model in MODELS:
        assert figures[OVERALL, model, "finding_presence"] == figures[LEVELS[0], model, "finding_presence"]
        assert (LEVELS[1], model, "finding_presence") not in figures


def test_kvasir_level_1_scores_are_shares_of_the_test_rows() -> None:
    # At level 1 a row has one class, so the classes' rows make up the level's. Every figure read takes part.
    figures = printed("kvasir_vqa_x1")
    rows = {}
    for name in CLASSES:
        read = [figures[LEVELS[0], model, name] for model in MODELS]
        rows[name] = fewest_rows([figure for figure in read if figure is not None], whole=100)
    assert sum(rows.values()) == LEVEL_1_ROWS


@pytest.mark.parametrize("model", ["medgemma-ft", "Qwen2.5-VL-7B-ft"])
def test_kvasir_note_on_mean_accuracies_counts_what_can_be_read(model: str) -> None:
    figures = printed("kvasir_vqa_x1")
    known = [figure for name in CLASSES if (figure := figures[OVERALL, model, name]) is not None]
    mean = f"{sum(known) / len(known):.1f} %"
    note = f"the {len(known)} classes of Table 7 whose overall figure can be read have a mean of {mean}"
    (row,) = (row for row in load_reference("kvasir_vqa_x1").rows if (row.table, row.label) == (OVERALL, model))
    assert any(note in one for one in row.notes)


@pytest.mark.parametrize("track", ["normal", "transformed"])
def test_kvasir_overlaps_are_ordered_as_they_must_be(track: str) -> None:
    figures = printed("kvasir_vqa_x1")
    table = f"Table 6, {track} images"
    labels = [row.label for row in load_reference("kvasir_vqa_x1").rows if row.table == table]
    assert len(labels) == 10
    for label in labels:
        one, two, longest = (float(read(figures, table, label, f"ROUGE-{kind}")) for kind in "12L")
        assert two < longest < one
