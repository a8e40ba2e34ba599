"""Which runs are ranked together, which are not comparable and why, and which run of a model is
ranked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_runs import FAIR, GOOD, apart, board, cxr, entry, page, ranked, right, run, signed
from medtasks.leaderboard.rank.apart import BLIND, MINIATURE
from medtasks.leaderboard.site.overview import not_comparable
from medtasks.leaderboard.verify.scored_run import ScoredRun

from medtasks.runs.manifest import DataFacts


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (run("odd", [cxr(0.9, 9, blind="yes")], blind=True), BLIND),
        (run("odd", [cxr(0.9, 9, data="d1")], mini=True), MINIATURE),
        (run("odd", [cxr(0.9, 9, data="d1")]), "data d1 instead of d0"),
        (run("odd", [cxr(0.9, 9, prompt="q1")]), "prompt q1 instead of none"),
        (run("odd", [cxr(0.9, 9, items="200-i1")]), "200 samples instead of 240"),
        (
            run("odd", [entry("mi_cxr_icr", {"accuracy": right(0.9, 9)}, items="100-i1")], complete=False,
                counts={"mi_cxr_icr": {"answered": 100, "asked": 16022}}, settings={"limit": "100"}),
            "run with --limit: 100 of 16,022 documents",
        ),
        (run("odd", [cxr(0.9, 9)], complete=False, counts={}), "run without mi_cxr_tel_single, mi_cxr_tel_multiple"),
        (
            run("odd", [cxr(0.9, 9, data="d1")],
                prepared={"mi_cxr": DataFacts(fingerprint="d1", mini=True, records=3, excluded={"no picture": 2})}),
            "mi_cxr: coverage 60% (3 of the release's 5 records)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_not_comparable_stands_apart_with_the_reason(odd: ScoredRun, reason: str) -> None:
    found = page(GOOD, FAIR, odd)
    assert "odd" not in ranked(found)
    assert "odd" not in {row.model for table in found.tables for row in table.rows}
    other = apart(found)["run-odd"]
    assert any(said.startswith(reason) for said in other.reasons)
    assert other.cells
    assert other.blind == (reason == BLIND)


def test_runs_with_unknown_prompts_are_ranked_with_each_other_alone_and_marked() -> None:
    one, two = (
        run(model, [cxr(rate, 9, prompt="unknown")]) for model, rate in (("one", 0.9), ("two", 0.4))
    )

    alone = page(one, two)
    assert ranked(alone) == ["one", "two"]
    (note,) = [text for text in alone.tables[0].note.split(". ") if "made elsewhere" in text]
    assert note.startswith("The responses of mi_cxr")
    assert "follows today's task files" not in alone.tables[0].note

    beside_known_prompts = page(GOOD, one, two)
    assert ranked(beside_known_prompts) == ["good"]
    for key in ("run-one", "run-two"):
        assert apart(beside_known_prompts)[key].reasons[0].startswith("prompt unknown instead of ")


@pytest.mark.parametrize(
    "lacking", [{"blind": True}, {"complete": False, "counts": {}}, {"mini": True}]
)
def test_what_must_not_be_ranked_is_not_even_where_nothing_else_is_there(
    lacking: dict[str, Any],
) -> None:
    odd = run("odd", [cxr(0.9, 9)], **lacking)
    found = page(odd)
    assert (found.rankings, found.tables[0].rows) == ((), ())
    assert len(apart(found)["run-odd"].reasons) == 1
    assert bool(page(odd, demonstration=True).rankings) is ("mini" in lacking)


def test_reasons_that_differ_in_hashes_alone_are_told_once() -> None:
    def families(seed: int, **protocols: str) -> list[Any]:
        return [
            entry(task, {"accuracy": right(0.5, seed)}, protocol=protocols[task])
            for task in protocols
        ]

    usual = {
        f"mi_cxr_{family}": f"{number}123456789abcdef"
        for number, family in enumerate(("tel", "icr", "gts"))
    }
    other = {task: one[::-1] for task, one in usual.items()}
    found = page(
        *(run(name, families(1, **usual)) for name in "ab"), run("odd", families(2, **other))
    )
    (reason,) = apart(found)["run-odd"].reasons
    assert reason.endswith("fedcba98… instead of 01234567… (and 2 more of other tasks)")


def kvasir(seed: int, judge: str, verdicts: np.ndarray | None = None) -> Any:
    """A judged entry; by default there are all verdicts."""
    tables = {
        "judged_accuracy": right(0.6, seed) if verdicts is None else verdicts,
        "rougeL": right(0.5, seed),
    }
    made = entry("kvasir_vqa_x1", tables)
    signature = signed("judged_accuracy", "kvasir_vqa_x1", judge=judge)
    return replace(made, signatures={**made.signatures, "judged_accuracy": signature})


def test_another_judge_stands_apart_in_the_judged_columns_alone() -> None:
    found = page(
        *(run(name, [kvasir(seed, f"j{name == 'c':d}")]) for seed, name in enumerate("abc"))
    )
    rankings = {one.column.metric: {one.model for one in one.ranked} for one in found.rankings}
    assert rankings == {"judged_accuracy": {"a", "b"}, "rougeL": {"a", "b", "c"}}
    assert apart(found)["run-c"].reasons == ("judge j1 instead of j0",)
    assert list(apart(found)["run-c"].cells) == ["kvasir_vqa_x1.judged_accuracy"]


def test_most_models_make_the_ranking_unless_only_others_follow_the_task_files() -> None:
    one, two = ({"protocol": name, "data": name} for name in ("x", "y"))
    runs = [
        run("a", [cxr(0.5, 1, **one)]),
        run("b", [cxr(0.5, 2, **two)]),
        run("c", [cxr(0.5, 3, **two)]),
    ]
    assert {*ranked(page(*runs))} == {"b", "c"}
    stale = [
        run(one.model, [*one.entries.values()], protocols=dict.fromkeys(one.public.protocols, "?"))
        for one in runs
    ]
    assert ranked(page(runs[0], *stale[1:])) == ["a"]
    found = page(*stale)
    assert {*ranked(found)} == {"b", "c"}
    assert "No run of mi_cxr follows today's task files" in found.tables[0].note
    assert page(*runs).tables[0].note == ""


def test_options_of_the_harness_are_not_by_the_task_files() -> None:
    plain, few = run("a", [cxr(0.5, 1)]), [run(name, [cxr(0.5, 2, harness="h")]) for name in "bc"]
    assert ranked(page(plain, *few)) == ["a"]


def test_of_two_alike_runs_of_a_model_the_newer_counts_and_the_older_says_so() -> None:
    old = run("good", [cxr(0.2, 8)], "run-old", created="2026-10-01T00:00:00+00:00")
    made = board(old, GOOD, FAIR)
    (found,) = made.benchmarks
    assert [row.runs for row in found.tables[0].rows] == [("run-good",), ("run-fair",)]
    assert found.tables[0].apart == ()
    assert made.runs["run-old"].notes == ("superseded by run-good in mi_cxr",)
    assert made.runs["run-good"].notes == ()


def test_the_same_run_twice_counts_once() -> None:
    assert board(GOOD, GOOD, FAIR) == board(GOOD, FAIR)


def test_a_run_without_its_judge_keeps_its_row_and_has_no_rank() -> None:
    waiting = run("waiting", [kvasir(2, "j0", np.full((240, 2), np.nan))])
    found = page(run("judged", [kvasir(1, "j0")]), waiting)
    assert ranked(found) == ["judged"]
    assert found.rankings[0].unranked == {"waiting": "none of 240 items has a verdict"}
    assert found.tables[0].apart == ()
    cells = next(row.cells for row in found.tables[0].rows if row.model == "waiting")
    assert {key: cell.value is None for key, cell in cells.items()} == {
        "kvasir_vqa_x1.judged_accuracy": True, "kvasir_vqa_x1.rougeL": False
    }  # fmt: skip


@pytest.mark.parametrize(("lacking", "placed"), [(2, True), (3, False)])
def test_a_score_with_too_few_verdicts_is_shown_and_not_ranked(lacking: int, placed: bool) -> None:
    table = right(0.6, 1)
    table[:lacking] = np.nan
    found = page(run("a", [entry("kvasir_vqa_x1", {"judged_accuracy": table})]))
    assert ranked(found) == (["a"] if placed else [])
    assert found.rankings[0].unranked == ({} if placed else {"a": "incomplete: 237 of 240 judged"})
    cell = found.tables[0].rows[0].cells["kvasir_vqa_x1.judged_accuracy"]
    assert (cell.judged, cell.incomplete) == (
        240 - lacking,
        not placed,
    )  # the run's own threshold said nothing


def test_a_signature_that_claims_the_items_of_others_is_not_believed() -> None:
    odd = run("odd", [cxr(0.9, 9, clusters=["alone"] * 240)])
    found = page(GOOD, FAIR, odd)
    assert ranked(found) == ["good", "fair"]
    assert apart(found)["run-odd"].reasons == (
        "items or clusters differ from those of other runs with the same signature",
    )


def test_a_blind_twin_differs_in_nothing_else() -> None:
    blind = run("good", [cxr(0.3, 7, blind="yes", protocol="p1")], "b", blind=True)
    other = run("fair", [cxr(0.3, 7, blind="yes", protocol="p1", prompt="p2")], "c", blind=True)
    made = board(GOOD, FAIR, blind, other)
    found = apart(made.benchmarks[0])
    assert found["b"].reasons == (BLIND,)
    assert len(found["c"].reasons) > 1
    assert [one.model.slug for one in not_comparable(made)] == [
        "fair"
    ]  # a twin is beside its model
