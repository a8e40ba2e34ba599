"""The scores that the authors of Kvasir-VQA-x1 released are published as they stand.

``released_kvasir_scores.csv`` has the figures of ``results/scores/total.json`` at commit a7aef04 of
https://github.com/simula/Kvasir-VQA-x1 with all their digits: 20 files of responses, three levels
and all of them, nine metrics.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from made_runs import board, entry, right, run
from medtasks.leaderboard.schema.reference import PublishedFigure, load_reference
from medtasks.leaderboard.site.pages import pages_of

RELEASED = Path(__file__).with_name("released_kvasir_scores.csv")
ROWS = {"1": 5548, "2": 5261, "3": 5213}
"""Test rows by level: with these numbers, every share of exact matches is a number of rows."""
METRICS = (
    "ROUGE-1",
    "ROUGE-2",
    "ROUGE-L",
    "Exact Match",
    "METEOR",
    "CHRF++",
    "BLEU",
    "BLEURT",
    "BERT-F1",
)
IN_TABLE_6 = {
    "v0-3000": "Q-VL-ft-3000",
    "v0-3333": "Q-VL-ft-3333",
    "v1-3000": "Q-VL-ft-Trans-3000",
    "v1-4444": "Q-VL-ft-Trans-4444",
}
"""Names of models in the paper, if the files have another."""

Scores = Mapping[str, str]


def released() -> dict[tuple[str, str], dict[str, Scores]]:
    """The released scores by images and model, then by level."""
    scores: dict[tuple[str, str], dict[str, Scores]] = defaultdict(dict)
    with RELEASED.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            scores[row["images"], row["label"]][row["level"]] = row
    return scores


def figures() -> tuple[PublishedFigure, ...]:
    return load_reference("kvasir_vqa_x1").figures


def test_the_recorded_scores_fit_together_as_only_the_released_ones_do() -> None:
    """A wrong digit in a mean over rows breaks the equality of the levels' mean and the whole."""
    assert len(released()) == 20
    assert sum(ROWS.values()) == 16_022
    for model, levels in released().items():
        assert levels.keys() == {*ROWS, "overall"}
        for metric in ("METEOR", "BLEURT", "BERT-F1", "Exact Match"):
            pooled = sum(float(levels[level][metric]) * ROWS[level] for level in ROWS) / 16_022
            assert pooled == pytest.approx(float(levels["overall"][metric]), abs=1e-9), model
        for level, rows in ROWS.items():
            matches = float(levels[level]["Exact Match"]) * rows
            assert matches == pytest.approx(round(matches), abs=1e-6), (model, level)


def test_published_figures_are_the_released_scores_to_six_decimals() -> None:
    expected = {}
    for (images, label), levels in released().items():
        for level, scores in levels.items():
            place = "overall" if level == "overall" else f"complexity level {level}"
            for metric in METRICS if level != "overall" else ("Exact Match",):
                figure = (f"Released scores, {images} images, {place}", label, metric)
                expected[figure] = f"{Decimal(scores[metric]):.6f}"
    published = {
        (one.table, one.label, one.column): one.printed
        for one in figures()
        if one.table.startswith("Released")
    }
    assert published == expected


def test_released_scores_belong_to_the_level_and_the_metric_that_computes_the_same() -> None:
    metrics = set()
    for one in figures():
        if not one.table.startswith("Released"):
            continue
        track = "kvasir_vqa_x1_transformed" if "transformed" in one.table else "kvasir_vqa_x1"
        level = re.search(r"level (\d)$", one.table)
        assert one.task == (f"{track}_level{level[1]}" if level else track)
        assert "total.json at commit a7aef04" in one.source
        metrics.add((one.column, one.metric))
    assert metrics >= {("CHRF++", "chrf"), ("Exact Match", "exact_match"), ("BERT-F1", "bertscore")}
    assert "chrf++" not in {metric for _, metric in metrics}


def test_table_6_has_the_released_overall_scores_rounded_up_or_down() -> None:
    printed = {
        (one.table, one.label, one.column): Decimal(one.printed or "nan")
        for one in figures()
        if one.table.startswith("Table 6")
    }
    for (images, label), levels in released().items():
        for metric in set(METRICS) - {"Exact Match"}:
            figure = printed[f"Table 6, {images} images", IN_TABLE_6.get(label, label), metric]
            assert abs(figure - Decimal(levels["overall"][metric])) < Decimal("0.001")


@pytest.mark.slow
def test_the_page_shows_released_scores_with_their_source_and_never_ranks_them() -> None:
    made = board(
        run("ours", [entry("kvasir_vqa_x1_level1", {"rougeL": right(0.5, 1)})]), published=True
    )
    (kvasir,) = made.benchmarks
    page = pages_of(made, {}, [])["benchmark-kvasir_vqa_x1.html"]()
    published = page[page.index('id="published"') :]
    heading = "Released scores, normal images, complexity level 1"
    table = published[published.index(f"<h3>{heading}") :]
    assert "results/scores/total.json at commit a7aef04" in table[: table.index("</h3>")]
    row = table[table.index("printed as v1-4444") :]
    assert 'data-v="0.716186"' in row[: row.index("</tr>")]
    ranked = {one.model for ranking in kvasir.rankings for one in ranking.ranked}
    shown = {one.model for every in kvasir.tables for one in (*every.rows, *every.apart)}
    assert ranked | shown == {"ours"}
