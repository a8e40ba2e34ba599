"""Published figures agree with the counts of the questions they were computed on, and with each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import medtasks_classics
from medtasks_classics import PLUGIN, medxpertqa, vqa_rad

FOLDER = Path(medtasks_classics.__file__).parent / "published"
FIGURES = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yaml"))}
CLOSED = {"vqa_rad": 272, "slake_vqa_en": 416, "path_vqa": 3391}
"""Closed questions as LLaVA-Med counts them (VQA-RAD by `answer_type`, PathVQA before repeated rows were dropped)."""


def printed(benchmark: str, table: int, row: int) -> list:
    return FIGURES[benchmark]["tables"][table]["rows"][row]


def share(count: int, of: int) -> float:
    return round(100 * count / of, 2)


def counts(percent: float, of: int) -> list[int]:
    """The numbers of correct answers that are ``percent``, rounded or (as 223 of 272 in LLaVA-Med) cut off."""
    return [count for count in range(of + 1) if percent in (share(count, of), 10000 * count // of / 100)]


@pytest.mark.parametrize("benchmark", sorted(CLOSED))
@pytest.mark.parametrize("row", [0, 1])
def test_closed_accuracies_are_whole_numbers_of_answers(benchmark: str, row: int) -> None:
    _, _, closed = printed(benchmark, 0, row)
    assert len(counts(closed, CLOSED[benchmark])) == 1


def test_path_vqa_without_repeated_rows_is_another_set() -> None:
    closed = medtasks_classics.path_vqa.BENCHMARK.published["closed"]
    assert [counts(printed("path_vqa", 0, row)[2], closed) for row in (0, 1)] == [[], []]


def test_the_pooled_accuracy_of_vqa_rad_is_weighted_by_questions() -> None:
    closed, open_ = vqa_rad.BENCHMARK.published["closed"], vqa_rad.BENCHMARK.published["open"]
    pooled = (79.3 * closed + 64.0 * open_) / (closed + open_)  # MedGemma-4B-IT, issue 21 of MedEvalKit
    assert round(pooled, 1) == printed("vqa_rad", 1, 2)[1] == 72.5
    assert round((79.3 + 64.0) / 2, 1) == 71.7  # the mean of both kinds, which it is not


def test_the_accuracy_of_medxpertqa_is_pooled_over_both_kinds() -> None:
    published = medxpertqa.BENCHMARK.published
    _, reasoning, understanding, everything = printed("medxpertqa_mm", 0, 0)
    (first,), (second,) = counts(reasoning, published["Reasoning"]), counts(understanding, published["Understanding"])
    assert share(first + second, published["rows"]) == everything == 42.8
    assert round((reasoning + understanding) / 2, 2) != everything


def test_averages_over_benchmarks_are_unweighted() -> None:
    last = {name: file["tables"][-1]["rows"] for name, file in FIGURES.items()}
    for row, average in ((0, 61.8), (1, 66.6)):
        assert round(sum(rows[row][-1] for rows in last.values()) / 7, 1) == average
    rows = {one.name: one.published["rows"] for one in PLUGIN.benchmarks}
    pooled = sum(rows[name] * last[name][0][-1] for name in last) / sum(rows[name] for name in last)
    assert pooled > 79  # 85 % of the questions are OmniMedVQA's
