"""Paired comparisons against scipy, sacrebleu and computations by hand; joint resamples against
single ones.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats as scipy_stats

from medtasks.metrics.base import corpus_score
from medtasks.metrics.registry import get_metric, lexical_statistics
from medtasks.stats.bootstrap import cluster_totals, joint_resamples
from medtasks.stats.cautions import few_clusters
from medtasks.stats.paired import PairedDifference, clustered_score, paired_difference

MEAN = get_metric("accuracy").score
CLUSTERS = [f"image{i // 5:02d}" for i in range(200)]
WORDS = [
    "the",
    "polyp",
    "is",
    "seen",
    "in",
    "upper",
    "left",
    "right",
    "part",
    "of",
    "image",
    "and",
    "removed",
]


def compared(first, second, clusters, score=MEAN) -> PairedDifference:  # type: ignore[no-untyped-def]
    return paired_difference(*(clustered_score(one, clusters, score) for one in (first, second)))


def answers(rate: float, seed: int) -> np.ndarray:
    """Scores of 200 samples in 40 clusters, as mean-type statistics."""
    draw = np.random.default_rng(seed)
    right = draw.random((200, 1)) < np.clip(
        rate + draw.normal(0, 0.2, (40, 1)).repeat(5, axis=0), 0, 1
    )
    return np.column_stack([right, np.ones(200)])


def texts(count: int, *shares: float) -> tuple[list[str], list[list[str]]]:
    """References of twelve words, and for each share the same with so many words exchanged."""
    draw = np.random.default_rng(0)
    references = [" ".join(draw.choice(WORDS, 12)) for _ in range(count)]
    return references, [
        [
            " ".join(w if draw.random() > share else str(draw.choice(WORDS)) for w in r.split())
            for r in references
        ]
        for share in shares
    ]


def test_an_oracle_against_guessing_on_four_patients_by_hand() -> None:
    """16 of 16 against 1 of 16: surpluses of 4, 4, 4 and 3, of which 2 of 16 choices of signs reach
    the sum of 15.
    """
    clusters = [f"p{number // 4}" for number in range(16)]
    guess = np.column_stack([np.arange(16) == 15, np.ones(16)]).astype(float)
    found = compared(np.ones((16, 2)), guess, clusters)
    assert (found.difference, found.clusters, found.p_value) == (15 / 16, 4, 0.125)
    left_out = [
        11 / 12,
        11 / 12,
        11 / 12,
        1,
    ]  # the oracle's lead over 12 questions, without each patient
    error = math.sqrt(3 / 4 * sum((one - 15 / 16) ** 2 for one in left_out))
    assert found.standard_error == pytest.approx(error)
    assert (found.low, found.high, found.reason) == (
        None,
        None,
        "an interval needs at least 6 clusters",
    )
    assert (
        few_clusters(4)
        == "with 4 clusters no difference can be significant at the 5 % level: p is at least 0.125"
    )


def swapped(
    first: np.ndarray, second: np.ndarray, clusters: list[str]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """All ways to give each cluster's rows to the other model."""
    names = sorted(set(clusters))
    found = []
    for chosen in product((False, True), repeat=len(names)):
        other = np.array([chosen[names.index(name)] for name in clusters])[:, None]
        found.append((np.where(other, second, first), np.where(other, first, second)))
    return found


def test_a_mean_is_tested_by_swapping_the_models_answers_of_whole_clusters() -> None:
    first, second, clusters = (
        answers(0.7, 1)[:40],
        answers(0.4, 2)[:40],
        [f"c{i // 5}" for i in range(40)],
    )
    apart = [one[:, 0].mean() - two[:, 0].mean() for one, two in swapped(first, second, clusters)]
    expected = np.mean([abs(one) >= abs(apart[0]) - 1e-12 for one in apart])
    assert compared(first, second, clusters).p_value == pytest.approx(expected)
    assert 0.01 < expected < 0.3


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf++", "rougeL"])
def test_whatever_the_metric_no_more_data_sets_are_rejected_than_the_level_says(
    metric: str,
) -> None:
    """The definition of an exact test: of all data sets that swapping clusters can make of one, at
    most the share p has a p-value of p or less, for any p. The two models differ much, and clusters
    have one to eight questions.
    """
    sizes = [1, 2, 3, 4, 5, 6, 8, 8]
    clusters = [f"c{number}" for number, size in enumerate(sizes) for _ in range(size)]
    references, said = texts(len(clusters), 0.1, 0.6)
    first, second = (
        lexical_statistics(list(zip(one, references, strict=True)), [metric])[metric]
        for one in said
    )
    score = get_metric(metric).score
    values = np.array(
        [compared(*pair, clusters, score).p_value for pair in swapped(first, second, clusters)]
    )
    assert values.min() == values[0] == 2 / 256
    for level in np.unique(values):
        assert np.mean(values <= level + 1e-12) <= level + 1e-12


def test_bleu_agrees_with_sacrebleus_approximate_randomization() -> None:
    """Where each sample is a cluster: sacrebleu swaps samples at random, and scores the corpus
    anew.
    """
    references, said = texts(150, 0.20, 0.23)
    bleu = BLEU(smooth_method="none")
    _, scores = PairedTest(
        [("first", said[0]), ("second", said[1])],
        {"BLEU": bleu},
        [references],
        test_type="ar",
        n_samples=10_000,
    )()
    expected = scores["BLEU"][1].p_value
    first, second = (
        lexical_statistics(list(zip(one, references, strict=True)), ["bleu"])["bleu"]
        for one in said
    )
    found = compared(first, second, [str(i) for i in range(150)], get_metric("bleu").score)
    assert [100 * found.first, 100 * found.second] == pytest.approx(
        [one.score for one in scores["BLEU"]], abs=1e-6
    )
    assert 0.02 < expected < 0.3
    assert found.p_value == pytest.approx(expected, rel=0.06)


def test_an_interval_holds_the_differences_that_the_test_does_not_reject() -> None:
    """Of 8 clusters: the score of the first model less d in every answer, tested against the
    second.
    """
    first, second, clusters = (
        answers(0.7, 1)[:40],
        answers(0.4, 2)[:40],
        [f"c{i // 5}" for i in range(40)],
    )
    found = compared(first, second, clusters)
    for end, outwards in ((found.low, -1e-9), (found.high, 1e-9)):
        assert end is not None
        for shift, inside in ((outwards, False), (-outwards, True)):
            p = compared(first - np.array([end + shift, 0.0]), second, clusters).p_value
            assert (p > 0.05) == inside


@pytest.mark.parametrize("clusters", [6, 9, 14, 40])
@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.95, 0.6), (0.8, 0.65), (1.0, 0.0)])
def test_interval_and_p_value_agree_and_no_accuracy_differs_by_more_than_1(
    clusters: int, rates: tuple[float, float]
) -> None:
    for seed in range(20):
        draw = np.random.default_rng(seed)
        sizes = draw.integers(1, 9, clusters)
        names = [f"c{number}" for number in np.repeat(np.arange(clusters), sizes)]
        first, second = (
            np.column_stack([draw.random(len(names)) < rate, np.ones(len(names))]) for rate in rates
        )
        found = compared(first, second, names)
        assert -1 <= found.low <= found.difference <= found.high <= 1  # type: ignore[operator]
        assert (found.low <= 0 <= found.high) == (found.p_value > 0.05)  # type: ignore[operator]


def test_samples_that_are_their_own_clusters_have_nearly_the_t_interval_of_their_differences() -> (
    None
):
    draw = np.random.default_rng(7)
    first, second = (
        np.column_stack([draw.normal(mean, 1, 400), np.ones(400)]) for mean in (0.1, 0.0)
    )
    found = compared(first, second, [f"{i:03d}" for i in range(400)])
    reference = scipy_stats.ttest_1samp(first[:, 0] - second[:, 0], 0)
    low, high = reference.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-3)
    assert 0.02 < reference.pvalue < 0.5
    assert found.p_value == pytest.approx(reference.pvalue, rel=0.02)


def test_the_standard_error_is_the_jackknifes_and_near_the_bootstraps() -> None:
    references, said = texts(120, 0.2, 0.3)
    clusters = [f"i{number % 17}" for number in range(120)]
    metric = get_metric("bleu")
    tables = [
        lexical_statistics(list(zip(one, references, strict=True)), ["bleu"])["bleu"]
        for one in said
    ]

    def difference(rows: list[int]) -> float:
        one, two = (corpus_score(metric, table[rows]) for table in tables)
        return one - two

    whole = difference(list(range(120)))
    left_out = [
        difference([row for row in range(120) if clusters[row] != name])
        for name in sorted(set(clusters))
    ]
    expected = math.sqrt(16 / 17 * sum((one - whole) ** 2 for one in left_out))
    found = compared(*tables, clusters, metric.score)
    assert found.difference == pytest.approx(whole)
    assert found.standard_error == pytest.approx(expected)
    drawn = joint_resamples(
        [(cluster_totals(table, clusters), metric.score) for table in tables], resamples=4000
    )
    assert found.standard_error == pytest.approx(np.std(drawn[0] - drawn[1]), rel=0.1)


def test_neither_order_nor_who_is_first_matters() -> None:
    first, second = answers(0.6, 1) * 0.3, answers(0.5, 2) * 0.3
    order = np.random.default_rng(1).permutation(200)
    expected = compared(first, second, CLUSTERS)
    assert compared(first[order], second[order], [CLUSTERS[i] for i in order]) == expected
    numbers = np.array([int(name[5:]) for name in CLUSTERS])
    assert compared(first[order], second[order], numbers[order]) == expected
    turned = compared(second, first, CLUSTERS)
    assert (turned.difference, turned.p_value) == (-expected.difference, expected.p_value)
    assert (turned.low, turned.high) == (-expected.high, -expected.low)  # type: ignore[operator]


def test_equal_models_do_not_differ_and_a_constant_lead_is_sure() -> None:
    same = compared(answers(0.5, 1), answers(0.5, 1), CLUSTERS)
    assert (same.difference, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)
    ones = np.ones((200, 2))
    constant = compared(ones * [0.3, 1], ones * [0.1, 1], CLUSTERS)
    assert constant.p_value == pytest.approx(2.0**-39)
    assert constant.low == pytest.approx(0.2)


def test_there_is_no_test_where_there_is_nothing_to_swap() -> None:
    one = compared(np.ones((2, 2)), np.array([[0.0, 1.0]] * 2), ["a", "a"])
    assert (one.difference, one.low, one.standard_error, one.p_value) == (1.0, None, None, None)
    assert one.reason == "found 1 cluster, a comparison needs at least 2"
    holes, full = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    assert (
        compared(holes, full, ["a", "b"]).reason == "the score is undefined without 1 of 2 clusters"
    )
    assert compared(holes, holes, ["a", "b"]).reason == one.reason
    nothing = compared(np.ones((0, 2)), np.ones((0, 2)), [])
    assert math.isnan(nothing.difference)
    assert nothing.p_value is None


@pytest.mark.parametrize(
    "counted", [6, 14], ids=["every subset of clusters is counted", "normal distribution"]
)
@pytest.mark.parametrize("at", [0, 3, -1])
def test_a_cluster_without_a_denominator_in_both_models_is_left_out(counted: int, at: int) -> None:
    """For instance a patient none of whose questions a rate counts."""
    draw = np.random.default_rng(counted)
    asked = draw.integers(1, 4, counted).astype(float)
    sides = [
        np.column_stack([draw.binomial(asked.astype(int), rate), asked]) for rate in (0.8, 0.4)
    ]
    names = [f"p{number:02d}" for number in range(counted)]
    expected = compared(*sides, names)
    place = at % counted
    added = [np.insert(side, place, 0.0, axis=0) for side in sides]
    found = compared(*added, [*names[:place], "nothing counted", *names[place:]])
    assert found.interval is not None
    assert found.model_copy(update={"items": counted}) == expected


def test_a_cluster_without_a_denominator_in_one_model_stays() -> None:
    first = np.array([[1.0, 2], [2, 2], [0, 2], [1, 2], [2, 2], [1, 2], [1, 2]])
    second = np.array([[0.0, 2], [1, 2], [0, 2], [1, 2], [1, 2], [1, 2], [0, 0]])
    found = compared(first, second, list("abcdefg"))
    assert found.clusters == 7
    assert found.interval is not None


def test_few_clusters_are_told_and_after_holms_correction_more_are_few() -> None:
    assert few_clusters(20) is few_clusters(1) is None  # of one cluster there is no test at all
    for clusters, tests, said in (
        (19, 1, "only large differences are detected"),
        (6, 1, "only large differences are detected"),
        (5, 1, "p is at least 0.0625"),
        (8, 10, "p is at least 0.0781 after Holm's correction of 10 tests"),
    ):
        assert str(few_clusters(clusters, tests)).endswith(said)


def test_every_entry_is_what_it_is_alone() -> None:
    draw = np.random.default_rng(4)
    tables = [draw.random((200, width)) for width in (1, 2, 1, 1, 10, 2, 300, 24)]

    def score(sums: np.ndarray) -> np.ndarray:
        return np.log(sums[..., 0]) - sums[..., -1]  # type: ignore[no-any-return]

    for resamples in (1, 60):
        entries = [(cluster_totals(table, CLUSTERS), score) for table in tables]
        drawn = joint_resamples(entries, resamples=resamples, seed=3)
        for entry, table in enumerate(tables):
            alone = joint_resamples(
                [(cluster_totals(table, CLUSTERS), score)], resamples=resamples, seed=3
            )
            assert drawn[entry].tolist() == alone[0].tolist()


def test_sums_of_clusters_are_correctly_rounded() -> None:
    rows = np.array([[1e16, 1.0], [0.1, 1.0], [0.5, 1.0], [-1e16, 1.0], [0.25, 1.0]])
    for clusters in (["b", "b", "a", "b", "a"], np.array([1, 1, 0, 1, 0])):
        assert cluster_totals(rows, clusters).tolist() == [[0.75, 2.0], [0.1, 3.0]]
