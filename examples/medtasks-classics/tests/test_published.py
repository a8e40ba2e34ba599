"""Published figures agree with the counts of the questions they were computed on, and with each
other.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import medtasks_classics
from medtasks_classics import PLUGIN, medxpertqa, path_vqa, vqa_rad

FOLDER = Path(medtasks_classics.__file__).parent / "published"
LINES = {path.stem: list(csv.DictReader(path.open(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.csv"))}
CLOSED = {"vqa_rad": 272, "slake_vqa_en": 416, "path_vqa": 3391}
"""Closed questions as LLaVA-Med counts them (VQA-RAD by `answer_type`, PathVQA before repeated rows
were dropped).
"""


def printed(benchmark: str, label: str, column: str = "All") -> float:
    (value,) = (one["printed"] for one in LINES[benchmark] if (one["label"], one["column"]) == (label, column))
    return float(value)


def share(count: int, of: int) -> float:
    return round(100 * count / of, 2)


def counts(percent: float, of: int) -> list[int]:
    """The numbers of correct answers that are ``percent``, rounded or (as 223 of 272 in LLaVA-Med)
    cut off.
    """
    return [count for count in range(of + 1) if percent in (share(count, of), 10000 * count // of / 100)]


@pytest.mark.parametrize("benchmark", sorted(CLOSED))
@pytest.mark.parametrize("label", ["LLaVA-Med (from LLaVA)", "LLaVA-Med (from Vicuna)"])
def test_closed_accuracies_are_whole_numbers_of_answers(benchmark: str, label: str) -> None:
    assert len(counts(printed(benchmark, label, "Closed"), CLOSED[benchmark])) == 1
    if benchmark == "path_vqa":  # without repeated rows it is another set
        assert counts(printed(benchmark, label, "Closed"), path_vqa.BENCHMARK.counts.published["closed"]) == []


def test_the_pooled_accuracy_of_vqa_rad_is_weighted_by_questions() -> None:
    closed, open_ = vqa_rad.BENCHMARK.counts.published["closed"], vqa_rad.BENCHMARK.counts.published["open"]
    pooled = (79.3 * closed + 64.0 * open_) / (closed + open_)  # issue 21 of MedEvalKit
    assert round(pooled, 1) == printed("vqa_rad", "MedGemma-4B-IT") == 72.5
    assert round((79.3 + 64.0) / 2, 1) == 71.7  # the mean of both kinds, which it is not


@pytest.mark.parametrize("label", ["GPT-4o", "Gemini-2.0-Flash", "Qwen2.5-VL-72B"])
def test_the_accuracy_of_medxpertqa_is_pooled_over_both_kinds(label: str) -> None:
    published = medxpertqa.BENCHMARK.counts.published
    kinds = ("Reasoning", "Understanding")
    values = [printed("medxpertqa_mm", label, kind) for kind in kinds]
    ((first,), (second,)) = (counts(value, published[kind]) for value, kind in zip(values, kinds, strict=True))
    assert share(first + second, published["rows"]) == printed("medxpertqa_mm", label)
    assert round(sum(values) / 2, 2) != printed("medxpertqa_mm", label)


def test_o1_was_asked_fewer_questions_of_medxpertqa() -> None:
    published = medxpertqa.BENCHMARK.counts.published
    assert counts(52.78, published["Reasoning"]) == counts(65.45, published["Understanding"]) == []
    assert counts(52.78, 144) == [76]
    assert counts(65.45, 55) == [36]
    assert share(76 + 36, 144 + 55) == printed("medxpertqa_mm", "o1") == 56.28


@pytest.mark.parametrize(("label", "average"), [("Lingshu-7B", 61.8), ("Lingshu-32B", 66.6)])
def test_averages_over_benchmarks_are_unweighted(label: str, average: float) -> None:
    values = {name: printed(name, label) for name in LINES}
    assert round(sum(values.values()) / 7, 1) == average
    rows = {one.name: one.counts.published["rows"] for one in PLUGIN.benchmarks}
    pooled = sum(rows[name] * value for name, value in values.items()) / sum(rows[name] for name in values)
    assert pooled > 79  # 88 % of the questions are OmniMedVQA's
