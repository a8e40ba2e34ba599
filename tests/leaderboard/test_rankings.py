"""Rankings, against hand-worked numbers, scipy and statsmodels, and our own single comparisons; the
sentence about one: who leads, by how much, who cannot be told apart, who is not above chance.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
from made_runs import CLUSTERS, right
from medtasks.leaderboard.board.findings import finding
from medtasks.leaderboard.rank.rankings import rank_models
from medtasks.leaderboard.schema.board import BoardModel
from medtasks.leaderboard.schema.model_rankings import Pair, Ranked, Ranking
from medtasks.leaderboard.schema.score_tables import BoardColumn, Cell
from statsmodels.stats.multitest import multipletests

from medtasks.metrics.registry import get_metric
from medtasks.stats.paired import clustered_score, paired_difference
from medtasks.stats.student import detectable_difference

MODELS = {
    name: right(share, seed)
    for seed, (name, share) in enumerate([("a", 0.8), ("b", 0.72), ("c", 0.7), ("d", 0.4)])
}


def column(metric: str = "accuracy", *, higher: bool = True) -> BoardColumn:
    return BoardColumn(
        key=metric,
        task="mi_cxr",
        metric=metric,
        label=metric,
        unit="fraction",
        higher_is_better=higher,
    )


def ranking(
    tables: dict[str, np.ndarray], metric: str = "accuracy", clusters=CLUSTERS, **more
) -> Ranking:  # type: ignore[no-untyped-def]
    shown = column(metric, higher=get_metric(metric).higher_is_better)
    return rank_models(shown, tables, clusters, signature="s", **{"resamples": 400, **more})


def pair(found: Ranking, first: str, second: str) -> Pair:
    return next(one for one in found.pairs if (one.first, one.second) == (first, second))


def compared(first: np.ndarray, second: np.ndarray, metric: str = "accuracy", clusters=CLUSTERS):  # type: ignore[no-untyped-def]
    score = get_metric(metric).score
    return paired_difference(
        *(clustered_score(table, list(clusters), score) for table in (first, second))
    )


def test_best_first_within_the_interval_of_its_rank() -> None:
    found = ranking(MODELS)
    means = {name: table[:, 0].mean() for name, table in MODELS.items()}
    assert [one.model for one in found.ranked] == sorted(means, key=means.get, reverse=True)
    assert [one.rank for one in found.ranked] == [1, 2, 3, 4]
    assert (found.items, found.clusters) == (240, 60)
    assert all((one.best or 9) <= one.rank <= (one.worst or 0) for one in found.ranked)
    ends = {one.model: (one.best, one.worst) for one in found.ranked}
    assert ends["d"] == (4, 4)
    assert ends["b"][0] != ends["b"][1]


@pytest.mark.parametrize("metric", ["accuracy", "rougeL"])
def test_every_pair_is_compared_alike_the_better_one_first(metric: str) -> None:
    share = 1.0 if metric == "accuracy" else np.random.default_rng(5).random(240)
    tables = {
        name: np.column_stack([table[:, 0] * share, np.ones(240)]) for name, table in MODELS.items()
    }
    found = ranking(tables, metric)
    assert len(found.pairs) == 6
    expected = [compared(tables[one.first], tables[one.second], metric) for one in found.pairs]
    for one, other in zip(found.pairs, expected, strict=True):
        assert (one.difference, one.low, one.high) == (other.difference, other.low, other.high)
        assert (one.p_value, one.clusters, one.difference >= 0) == (other.p_value, 60, True)
        assert (one.wins is None) == (one.losses is None) == (metric == "rougeL")
    holm = multipletests([one.p_value for one in expected], method="holm")[1]
    assert [one.p_holm for one in found.pairs] == pytest.approx(list(holm))
    letters = {one.model: {*one.letters} for one in found.ranked}
    shared = [bool(letters[one.first] & letters[one.second]) for one in found.pairs]
    assert shared == [p > 0.05 for p in holm]
    assert {*shared} == {True, False}
    seen = [detectable_difference(one.standard_error or 0, 60) for one in expected]
    assert found.detectable == pytest.approx(statistics.median(seen))  # type: ignore[type-var]


def test_wins_and_losses_are_counted_of_verdicts() -> None:
    found = pair(ranking(MODELS), "a", "d")
    first, second = MODELS["a"][:, 0] == 1, MODELS["d"][:, 0] == 1
    assert (found.wins, found.losses) == (
        int((first & ~second).sum()),
        int((second & ~first).sum()),
    )
    # ten wins to none; questions that are their own clusters have the exact binomial test
    tables = {
        "one": np.ones((30, 2)),
        "two": np.column_stack([np.arange(30) >= 10, np.ones(30)]).astype(float),
    }
    found = ranking(tables, clusters=[f"q{number}" for number in range(30)]).pairs[0]
    assert (found.wins, found.losses, found.difference) == (10, 0, pytest.approx(1 / 3))
    assert found.p_value == pytest.approx(2 / 2**10)
    thrice = {
        name: table * [[1, 3]] for name, table in MODELS.items()
    }  # answers repeated three times are no verdicts
    assert {(one.wins, one.losses) for one in ranking(thrice).pairs} == {(None, None)}


def test_a_ranking_counts_the_pairs_that_are_warned_of() -> None:
    """The best two models share so few errors that they would fill less than 15 of the 60
    patients.
    """
    found = ranking(MODELS)
    warned = [one for one in found.pairs if one.warning is not None]
    assert [(one.first, one.second) for one in warned] == [
        (found.ranked[0].model, found.ranked[1].model)
    ]
    assert "errors or correct answers are few" in str(warned[0].warning)
    assert found.warning == f"{warned[0].warning} (in 1 of 6 comparisons)"


def test_few_patients_are_told_with_every_pair_and_the_ranking() -> None:
    few = {name: table[:32] for name, table in MODELS.items()}  # eight patients; six pairs
    found = ranking(few, clusters=CLUSTERS[:32])
    said = "with 8 clusters, fewer than 20, only large differences are detected"
    assert {one.warning for one in found.pairs} == {found.warning} == {said}
    found = ranking({name: table[:16] for name, table in MODELS.items()}, clusters=CLUSTERS[:16])
    assert "p is at least 0.75 after Holm's correction of 6 tests" in (found.warning or "")
    assert found.detectable is None


def test_lower_is_better_ranks_the_other_way_and_equal_scores_share_a_rank_and_a_letter() -> None:
    found = ranking({"loud": right(0.8, 1), "quiet": right(0.2, 2)}, "false_alarm_rate")
    assert [(one.model, one.best, one.worst) for one in found.ranked] == [
        ("quiet", 1, 1),
        ("loud", 2, 2),
    ]
    assert found.pairs[0].difference < 0
    found = ranking({"x": MODELS["a"], "y": MODELS["a"].copy(), "z": MODELS["d"]})
    assert [(one.model, one.rank) for one in found.ranked] == [("x", 1), ("y", 1), ("z", 3)]
    assert found.ranked[0].letters == found.ranked[1].letters != found.ranked[2].letters
    assert pair(found, "x", "y").p_value == 1
    assert (
        ranking({"x": MODELS["a"], "y": MODELS["a"]}).detectable is None
    )  # models that never differ say nothing


def test_an_item_without_a_value_is_left_out_of_its_models_pairs_alone() -> None:
    held = {name: MODELS[name].copy() for name in ("a", "b", "c")}
    held["b"][:10] = np.nan
    found, whole = ranking(held), ranking({name: MODELS[name] for name in held})
    plain = {"p_holm": None}
    assert pair(found, "a", "c").model_copy(update=plain) == pair(whole, "a", "c").model_copy(
        update=plain
    )
    first, second = sorted(("a", "b"), key=[one.model for one in found.ranked].index)
    without, rows = pair(found, first, second), slice(10, None)
    expected = compared(held[first][rows], held[second][rows], clusters=CLUSTERS[rows])
    assert (without.difference, without.p_value) == (expected.difference, expected.p_value)
    assert (without.items, without.clusters, found.items) == (230, 58, 240)


def test_items_that_do_not_count_for_one_model_are_left_out_of_the_pair() -> None:
    late = {
        "early": np.array([[1.0, 1], [2, 1], [0, 0], [3, 1]]),
        "slow": np.array([[4.0, 1], [4, 1], [4, 1], [0, 0]]),
    }
    found = ranking(late, "signed_delay", clusters=["p", "q", "r", "s"]).pairs[0]
    assert (found.items, found.difference) == (2, pytest.approx(1.5 - 4))
    apart = {
        "one": np.array([[1.0, 1], [0, 0]]),
        "two": np.array([[0.0, 0], [3, 1]]),
    }  # without a common item
    found = ranking(apart, "signed_delay", clusters=["p", "q"]).pairs[0]
    assert (found.items, found.p_value, found.low, found.difference) == (0, None, None, -2)
    assert "no item has a value from both" in (found.reason or "")


def test_a_model_of_which_no_item_counts_has_no_rank_and_one_cluster_no_interval_and_no_test() -> (
    None
):
    found = ranking({**MODELS, "none": np.zeros((240, 2))}, unranked={"late": "awaits a judge"})
    assert found.unranked == {"late": "awaits a judge", "none": "no item counts"}
    assert {one.model for one in found.ranked} == {*MODELS}
    alone = ranking({"a": MODELS["a"]})
    assert [(one.rank, one.best, one.worst, one.letters) for one in alone.ranked] == [
        (1, 1, 1, ("a",))
    ]
    assert (alone.pairs, alone.detectable) == ((), None)
    found = ranking(
        {name: table * [0.5, 1] for name, table in MODELS.items()}, "rougeL", clusters=["p"] * 240
    )
    assert [(one.rank, one.best, one.worst) for one in found.ranked] == [
        (rank, None, None) for rank in (1, 2, 3, 4)
    ]
    assert {(one.p_value, one.low) for one in found.pairs} == {(None, None)}
    assert "a comparison needs at least 2" in (found.pairs[0].reason or "")
    assert found.detectable is None


def test_neither_order_nor_company_moves_a_number() -> None:
    assert ranking(dict(reversed(MODELS.items()))) == ranking(MODELS)
    two, all_four = (
        pair(ranking(models), "a", "d")
        for models in ({name: MODELS[name] for name in "ad"}, MODELS)
    )
    assert two.model_copy(update={"p_holm": None}) == all_four.model_copy(update={"p_holm": None})


NAMES = {"a": "Ada", "b": "Bea", "c": "Cid", "d": "Dan", "e": "Eve", "f": "Fay"}
NAMED = {slug: BoardModel(slug=slug, name=name, family="none") for slug, name in NAMES.items()}


def lettered(
    letters: dict[str, str], *pairs: tuple[str, str, float, float, float], **more: Any
) -> Ranking:
    column = BoardColumn(
        **{
            "key": "t.m",
            "task": "t",
            "metric": "m",
            "label": "M",
            "unit": "fraction",
            "higher_is_better": True,
            **more,
        }
    )
    ranked = [
        Ranked(model=model, rank=place, best=None, worst=None, letters=tuple(shared))
        for place, (model, shared) in enumerate(letters.items(), 1)
    ]
    plain = {"items": 90, "clusters": 30, "p_value": 0.5, "p_holm": 1}
    compared = [
        Pair(first=one, second=other, difference=value, low=low, high=high, **plain)
        for one, other, value, low, high in pairs
    ]
    return Ranking(
        column=column, items=90, clusters=30, cluster="patient", signature="s", ranked=tuple(ranked),
        pairs=tuple(compared), detectable=None,
    )  # fmt: skip


def cells(**values: float) -> dict[str, Cell]:
    return {
        model: Cell(value=low + 0.1, low=low, high=low + 0.2, items=90, signature="s")
        for model, low in values.items()
    }


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (lettered({}), "No model is ranked."),
        (lettered({"a": "a"}), "Ada is the only model with a comparable result."),
        (lettered({"a": "a", "b": "b"}, ("a", "b", 0.031, 0.012, 0.05)),
         "Ada leads Bea by 3.1 points (95 % interval 1.2 to 5.0)."),
        (lettered({"a": "a", "b": "a"}, ("a", "b", 0.01, -0.01, 0.03)), "Ada and Bea do not differ significantly."),
        (lettered({"a": "a", "b": "a", "c": "b"}, ("a", "b", 0.01, -0.01, 0.03), ("a", "c", 0.2, 0.1, 0.3)),
         "Ada and Bea do not differ significantly; Ada leads Cid by 20.0 points (95 % interval 10.0 to 30.0)."),
        (lettered({"a": "a", "b": "b", "c": "c"}, ("a", "b", 0.2, 0.1, 0.3), ("b", "c", 0.3, 0.2, 0.4)),
         ("Ada leads Bea by 20.0 points (95 % interval 10.0 to 30.0), "
         "and Bea leads Cid by 30.0 points (95 % interval 20.0 to 40.0).")),
        (lettered({"a": "a", "b": "b", "c": "b"}, ("a", "b", 0.2, 0.1, 0.3), ("b", "c", 0.1, -0.1, 0.3)),
         "Ada leads Bea by 20.0 points (95 % interval 10.0 to 30.0)."),
        # Bea and Cid each share a letter with Ada, and none with each other
        (lettered({"a": "ab", "b": "a", "c": "b"}, ("a", "b", 0.01, -0.01, 0.03)),
         "Bea and Cid do not differ significantly from Ada."),
        (lettered(dict.fromkeys("abcdef", "a"), ("a", "b", 0.0, 0.0, 0.0)),
         "Bea, Cid, Dan and 2 more models do not differ significantly from Ada."),
        # lower is better, and the pair is stored the other way round
        (lettered({"a": "a", "b": "b"}, ("b", "a", 2.5, 1.0, 4.0), unit="seconds", higher_is_better=False),
         "Ada leads Bea by 2.5 s (95 % interval 1.0 to 4.0)."),
        (lettered({"a": "a", "b": "b"}, ("a", "b", -2.5, -4.0, -1.0), unit="seconds", higher_is_better=False),
         "Ada leads Bea by 2.5 s (95 % interval 1.0 to 4.0)."),
    ],
)  # fmt: skip
def test_what_a_ranking_shows(one: Ranking, sentence: str) -> None:
    assert finding(one, NAMED, cells(a=0.7, b=0.6, c=0.5, d=0.4, e=0.3, f=0.3)) == sentence


def test_models_not_above_chance_and_few_clusters_are_named() -> None:
    models = {**NAMED, "d": BoardModel(slug="d", name="Uniform", family="none", type="baseline")}
    one = lettered(dict.fromkeys("abcd", "a"), ("a", "b", 0.0, 0.0, 0.0), chance=0.2)
    said = finding(one, models, cells(a=0.3, b=0.2, c=0.1, d=0.1))
    assert said.endswith(" Bea and Cid are not above chance (20.0 %).")
    assert "not above chance" not in finding(one, models, cells(a=0.3, b=0.3, c=0.3, d=0.1))
    # the highest floor counts
    column = one.column.model_copy(update={"constant": 0.228, "constant_answer": "C"})
    constant = one.model_copy(update={"column": column})
    said = finding(constant, models, cells(a=0.3, b=0.22, c=0.25, d=0.1))
    assert said.endswith(" Bea is not above always answering C (22.8 %).")
    # few clusters are named
    one = lettered({"a": "a", "b": "a"}, ("a", "b", 0.9, 0.8, 1.0)).model_copy(
        update={"warning": "few", "clusters": 5}
    )
    said = finding(one, NAMED, cells(a=0.9, b=0.0))
    assert (
        said
        == "Ada and Bea do not differ significantly. With only 5 clusters, even large differences may not be significant."
    )
