"""Statements over models: what the media add, correlation with size, means by type; what they leave
out.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from invented_runs import Invented, answered, judged_by_stub
from made_runs import CLUSTERS, GOOD, ITEMS, KEY, POOR, board, cxr, entry, page, right, run
from medtasks.leaderboard.board.build import OrganiserFacts, build_board
from medtasks.leaderboard.board.models import Described
from medtasks.leaderboard.exports.csv_scores import as_csv
from medtasks.leaderboard.figures.plots import figures_of
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.schema.board import BenchmarkBoard
from medtasks.leaderboard.schema.score_tables import BoardTable, Cell
from medtasks.leaderboard.site.pages import pages_of
from medtasks.leaderboard.verify.scored_run import RunStore

from medtasks.judge.stub import StubJudge
from medtasks.runs.samples import Sample
from medtasks.scoring.comparisons import compare_statistics
from medtasks.scoring.run_folder import write_run

GAIN = f"{KEY}.gain"
SEEN, UNSEEN = right(0.8, 0), right(0.3, 7)
BLIND = run("good", [cxr(0.3, 7, blind="yes", protocol="p1")], "run-good-blind", blind=True)


def table_of(found: BenchmarkBoard) -> BoardTable:
    return next(table for table in found.tables if table.name == "media-gain")


def cells(found: BenchmarkBoard) -> dict[str, Cell]:
    return {row.model: row.cells[GAIN] for row in table_of(found).rows}


def test_the_gain_is_the_paired_difference_with_its_interval() -> None:
    found = cells(page(GOOD, POOR, BLIND))
    paired = compare_statistics("accuracy", SEEN, UNSEEN, CLUSTERS)
    assert paired is not None
    assert list(found) == ["good"]
    assert found["good"].value == pytest.approx((SEEN - UNSEEN)[:, 0].mean())
    assert (found["good"].low, found["good"].high) == (paired.low, paired.high)
    assert found["good"].items == 240
    assert found["good"].signature.endswith("|minus:blind")
    # the newest of several blind runs counts
    old = run(
        "good",
        [cxr(0.5, 3, blind="yes", protocol="p1")],
        "old",
        blind=True,
        created="2026-10-01T00:00:00+00:00",
    )
    assert cells(page(GOOD, old, BLIND)) == found


def test_a_blind_run_that_was_asked_something_else_is_no_twin() -> None:
    def blind(model: str = "good", entries: Any = None, **changes: Any) -> BenchmarkBoard:
        return page(
            GOOD, POOR, run(model, entries or [*BLIND.entries.values()], "b", blind=True, **changes)
        )

    assert page(GOOD, POOR).text_only is None
    assert cells(blind())
    asked = ({"prompt": "other"}, {"data": "d1"}, {"filters": "f9"}, {"harness": "h"})
    others = {
        str(changes): blind(entries=[cxr(0.3, 7, blind="yes", protocol="p1", **changes)])
        for changes in asked
    }
    others["hotter"] = blind(generation={"mi_cxr_tel_single": "{'temperature': 1}"})
    others["of another model"] = blind("fair")
    others["not complete"] = blind(complete=False)
    for what, found in (("none", page(GOOD, POOR)), *others.items()):
        assert all(table.name != "media-gain" for table in found.tables), what


def test_gains_in_groups_of_the_first_breakdown_of_the_layout() -> None:
    groups = {"modality": {"CT": range(100), "MRI": range(100, 240)}}
    seeing = run("good", [entry("med_cmr_mcq", {"accuracy": SEEN}, breakdowns=groups)])
    unseen = entry(
        "med_cmr_mcq", {"accuracy": UNSEEN}, breakdowns=groups, blind="yes", protocol="p1"
    )
    table = table_of(page(seeing, run("good", [unseen], "b", blind=True)))
    difference = (SEEN - UNSEEN)[:, 0]
    assert {one.group: table.rows[0].cells[one.key].value for one in table.columns} == {
        None: pytest.approx(difference.mean()),
        "CT": pytest.approx(difference[:100].mean()),
        "MRI": pytest.approx(difference[100:].mean()),
    }


def test_questions_that_every_blind_model_answers() -> None:
    other = run("poor", [cxr(0.4, 8, blind="yes", protocol="p1")], "run-poor-blind", blind=True)
    only = page(GOOD, POOR, BLIND, other).text_only
    assert only is not None
    both = [
        item
        for item, one, two in zip(ITEMS, UNSEEN[:, 0], right(0.4, 8)[:, 0], strict=True)
        if one and two
    ]
    assert (only.models, only.items, list(only.answered)) == (("good", "poor"), 240, both)
    assert only.expected == pytest.approx(0.2**2)  # five options
    assert 0 < len(both) < 240


def test_an_unanswered_item_is_not_known_to_the_text_alone() -> None:
    missing = UNSEEN.copy()
    missing[UNSEEN[:, 0] == 1] = np.nan
    blind = run(
        "good",
        [entry("mi_cxr", {"accuracy": missing}, blind="yes", protocol="p1")],
        "b",
        blind=True,
    )
    only = page(GOOD, POOR, blind).text_only
    assert only is not None
    assert (only.answered, only.items) == ((), 240 - int(UNSEEN[:, 0].sum()))
    assert cells(page(GOOD, POOR, blind))["good"].incomplete


def test_the_gain_is_on_the_page_drawn_and_no_score_in_the_csv() -> None:
    made = board(GOOD, POOR, BLIND)
    assert "media-gain" in figures_of(made, made.benchmarks[0])
    text = pages_of(made, {}, [])["benchmark-mi_cxr.html"]()
    assert "What the media add" in text
    assert "Questions answered correctly without media" in text
    rows = list(csv.DictReader(io.StringIO(as_csv(made, made.benchmarks[0]))))
    accuracy = {row["table"] for row in rows if row["metric"] == "accuracy"}
    assert "media-gain" not in accuracy
    (gain,) = [row for row in rows if row["metric"] == "accuracy.gain"]
    assert float(gain["value"]) == pytest.approx((SEEN - UNSEEN)[:, 0].mean())


@pytest.mark.slow
def test_the_gain_of_a_judged_class_is_that_of_its_own_part_of_each_answer(tmp_path: Path) -> None:
    groups = ("kvasir_vqa_x1",)
    by_run: dict[str, dict[str, Sample]] = {}
    with StubJudge() as stub:
        for name, policy, blind in (("seeing", "noisy_oracle", False), ("blind", "abstain", True)):
            model = Invented(
                "invented/Careful-7B",
                policy,
                seed=1,
                accuracy=0.7 if policy == "noisy_oracle" else None,
            )
            made = judged_by_stub(
                *answered(model, groups, blind=blind), stub.url, tmp_path / "verdicts.sqlite"
            )
            by_run[name] = {
                one.sample_id: one for samples in made.samples.values() for one in samples
            }
            write_run(tmp_path / "runs" / name, made)
    stored = (collect([tmp_path / "runs"], RunStore(tmp_path / "cache"))[0] for _ in range(2))
    boards = [build_board(one, title="", demonstration=True, published=False) for one in stored]
    assert boards[0] == boards[1]
    table = table_of(boards[0].benchmarks[0])
    (row,) = table.rows
    classes = [column for column in table.columns if column.breakdown == "question_class"]
    assert len(classes) > 10
    partly = narrow = 0
    for column in classes:
        pairs = [  # an answer's score in this class with media, and without
            (sample.cluster, *(run[name].judged["judged_accuracy"] for run in by_run.values()))
            for name, sample in by_run["seeing"].items()
            if column.group in sample.judged["judged_accuracy"].parts
        ]
        partly += sum(
            len(seeing.parts) > 1 and seeing.parts[column.group] != seeing.limits
            for _, seeing, _ in pairs
        )
        gains = [
            seeing.parts[column.group][0][0] - blind.parts[column.group][0][0]
            for _, seeing, blind in pairs
        ]
        cell, difference = row.cells[column.key], np.mean(gains)
        assert (cell.value, cell.items) == (pytest.approx(difference), len(gains))
        if len({cluster for cluster, *_ in pairs}) < 6:
            assert (cell.low, cell.high) == (None, None)
        else:
            assert -1 <= cell.low <= difference <= cell.high <= 1
            narrow += cell.low < cell.high
    assert partly > 20  # answers to questions of several classes
    assert narrow > 5
    assert (row.cells["kvasir_vqa_x1.judged_accuracy.gain"].value or 0) > 0


SIZES = {"one": "1B", "two": "4B", "three": "16B", "four": "64B-A3B"}
TYPES = {"one": "general", "two": "medical", "three": "general", "four": "medical"}
SHARES = {"one": 0.3, "two": 0.45, "three": 0.4, "four": 0.7}
SIZED_MODELS = {f"lab/{name}": Described(size=SIZES[name], type=TYPES[name]) for name in SIZES}
SIZED = [run(name, [cxr(share, seed)]) for seed, (name, share) in enumerate(SHARES.items())]
UNKNOWN = run("unknown", [cxr(0.9, 9)])


def test_the_correlation_with_size_and_the_means_by_type_are_of_the_models_of_which_these_are_known() -> (
    None
):
    found = page(*SIZED, UNKNOWN, organiser=OrganiserFacts(models=SIZED_MODELS))
    values = {row.model: row.cells["mi_cxr.accuracy"].value or 0.0 for row in found.tables[0].rows}
    (size,), (means,) = found.size_correlations, found.type_means
    expected = statistics.correlation(
        [math.log(size) for size in (1, 4, 16, 64)], [values[name] for name in SIZES]
    )
    assert (size.models, size.published, size.column.key) == (4, "", "mi_cxr.accuracy")
    assert size.r == pytest.approx(expected)
    assert means.models == {"general": 2, "medical": 2}
    for kind, names in {"general": ("one", "three"), "medical": ("two", "four")}.items():
        assert means.means[kind] == pytest.approx(statistics.fmean(values[name] for name in names))


def test_three_models_of_known_size_are_too_few_and_blind_runs_do_not_count() -> None:
    for other in (UNKNOWN, run("four", [cxr(0.7, 3)], blind=True)):
        assert (
            page(*SIZED[:3], other, organiser=OrganiserFacts(models=SIZED_MODELS)).size_correlations
            == ()
        )


def test_the_rows_of_a_paper_have_a_correlation_of_their_own() -> None:
    """Med-CMR reports r of 0.77 to 0.85; its printed table, without the swapped columns, gives what
    the page shows.
    """
    digest = run("one", [entry("med_cmr_mcq", {"accuracy": right(0.3, 1)})])
    made = board(digest, published=True, organiser=OrganiserFacts(models=SIZED_MODELS))
    found = {one.column.key: one for one in made.benchmarks[0].size_correlations}
    assert all(one.published for one in found.values())
    assert 0.5 < found["med_cmr_mcq.accuracy"].r <= 1
    assert "med_cmr_mcq_su.accuracy" not in found
    assert "Size and score" in pages_of(made, {}, [])["benchmark-med_cmr.html"]()
