"""Two ways of asking the same questions, and what lies behind a score; each against a computation
by hand.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_samples import made_sample

from medtasks.catalog.registry import get_benchmark
from medtasks.runs.samples import Sample
from medtasks.scoring.comparisons import Paired, compare_tables, comparisons, level_gap, same_tasks
from medtasks.scoring.diagnostics import diagnose
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.item_table import item_table
from medtasks.scoring.run_tables import RunTables

MI_CXR = get_benchmark("mi_cxr")


def answered(
    number: int, filtered: str, target: str, task: str = "mi_cxr_icr", patient: str | None = None
) -> Sample:
    return made_sample(
        task,
        number,
        filtered == target,
        sample_id=f"icr-{number}",
        cluster=patient or f"p{number % 7}",
        target=target,
        filtered=filtered,
        status="ok" if len(filtered) == 1 else filtered.strip("[]"),
        document={"qtype": "icr_multi_abn", "group_type": "ICR"},
    )


def run(letters: str, gold: str, task: str = "mi_cxr_icr") -> list[Sample]:
    return [
        answered(number, said, right, task)
        for number, (said, right) in enumerate(zip(letters, gold, strict=True))
    ]


GOLD = "ABCDEABCDEABCDEABCDE"
FIRST = "ABCDEABCDEABCDAAAAAA"
SECOND = "ABCDAAAAAAABCDEABAAA"


def compare_samples(
    first: tuple[str, list[Sample]], second: tuple[str, list[Sample]], breakdowns: list[str]
) -> Paired:
    one, other = (
        (name, item_table(samples, MI_CXR, breakdowns)) for name, samples in (first, second)
    )
    return compare_tables(one, other)


def test_the_difference_is_that_of_the_accuracies_and_p_swaps_patients() -> None:
    paired = compare_samples(("new", run(FIRST, GOLD)), ("old", run(SECOND, GOLD)), ["family"])
    score = paired.metrics["accuracy"]
    ours = [a == g for a, g in zip(FIRST, GOLD, strict=True)]
    theirs = [b == g for b, g in zip(SECOND, GOLD, strict=True)]
    surplus = [
        sum(ours[n] - theirs[n] for n in range(20) if n % 7 == patient) for patient in range(7)
    ]
    flips = [
        sum(sign * one for sign, one in zip(signs, surplus, strict=True))
        for signs in product((1, -1), repeat=7)
    ]

    assert (score.first, score.second) == (sum(ours) / 20, sum(theirs) / 20)
    assert score.difference == pytest.approx(sum(surplus) / 20)
    assert score.p_value == pytest.approx(np.mean([abs(one) >= sum(surplus) for one in flips]))
    assert (score.items, score.clusters) == (20, 7)
    assert "7 clusters, fewer than 20" in (score.warning or "")
    assert score.interval is not None
    assert score.interval[0] <= score.difference <= score.interval[1]
    assert paired.breakdowns["family"]["ICR"].metrics["accuracy"] == score


def test_an_oracle_against_guessing_on_four_patients() -> None:
    """Sixteen questions taken for independent gave p = 0.00098; four patients cannot say more than
    2 of 16.
    """
    gold, guess = "ABCDABCDABCDABCD", "AAAAAAAAAAAAAAAA"
    oracle, guesser = (
        [answered(n, letter, gold[n], patient=f"p{n // 4}") for n, letter in enumerate(said)]
        for said in (gold, guess)
    )
    score = compare_samples(("oracle", oracle), ("guess", guesser), []).metrics["accuracy"]
    assert (score.difference, score.p_value) == (0.75, 0.125)
    assert "no difference can be significant" in (score.warning or "")


def test_only_shared_samples_are_paired_and_the_others_counted() -> None:
    paired = compare_samples(("a", run(FIRST, GOLD)[:15]), ("b", run(SECOND, GOLD)[5:]), [])
    assert (paired.items, paired.unpaired) == (10, 10)
    nothing = compare_samples(("a", run(FIRST, GOLD)[:5]), ("b", run(SECOND, GOLD)[5:]), ["family"])
    assert (nothing.items, nothing.unpaired, nothing.metrics, nothing.breakdowns["family"]) == (
        0,
        20,
        {},
        {},
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_order_of_samples_changes_nothing_and_swapping_changes_the_sign(seed: int) -> None:
    one, two = run(FIRST, GOLD), run(SECOND, GOLD)
    expected = compare_samples(("a", one), ("b", two), [])
    shuffled = random.Random(seed).sample(one, len(one))
    assert compare_samples(("a", shuffled), ("b", two), []) == expected
    swapped = compare_samples(("b", two), ("a", one), []).metrics["accuracy"]
    assert swapped.difference == -expected.metrics["accuracy"].difference
    assert swapped.p_value == expected.metrics["accuracy"].p_value


def test_a_metric_is_compared_over_the_samples_that_have_it_in_both() -> None:
    one, two = run(FIRST, GOLD), run(SECOND, GOLD)
    two[3] = two[3].model_copy(update={"statistics": {}, "scores": {"accuracy": None}})
    paired = compare_samples(("a", one), ("b", two), [])
    assert (paired.items, paired.metrics["accuracy"].items) == (20, 19)
    alone = [[sample for sample in side if sample.sample_id != "icr-3"] for side in (one, two)]
    assert compare_samples(("a", alone[0]), ("b", alone[1]), []).metrics == paired.metrics


def test_partners_are_those_that_the_task_files_name() -> None:
    direct, staged = run(SECOND, GOLD), run(FIRST, GOLD, "mi_cxr_stagewise_icr")
    one = RunTables({"mi_cxr_icr": direct})
    found = comparisons(RunTables({"mi_cxr_icr": direct, "mi_cxr_stagewise_icr": staged}), one)
    assert list(found) == ["mi_cxr_stagewise_icr"]
    assert found["mi_cxr_stagewise_icr"].second == "mi_cxr_icr"
    assert comparisons(RunTables({"mi_cxr_stagewise_icr": staged}), RunTables({})) == {}
    assert list(same_tasks(one, one)) == ["mi_cxr_icr (both)"]


def test_diagnostics_by_hand() -> None:
    # gold: A 2, B 2, E 4; chosen: A 4, B 1, E 2 and one not extracted
    samples = [
        answered(number, said, right)
        for number, (said, right) in enumerate(zip("AAAABE", "AABBEE", strict=True))
    ]
    samples += [answered(6, "E", "E"), answered(7, "[none]", "E")]
    found = diagnose(score_samples(samples, MI_CXR), "E", {})

    assert found.responses == 8
    assert found.extraction_failures == 1 / 8
    # shares chosen of 7: A 4/7, B 1/7, E 2/7; right of 8: 2/8, 2/8, 4/8
    assert found.letter_bias == pytest.approx(
        (abs(4 / 7 - 2 / 8) + abs(1 / 7 - 2 / 8) + abs(2 / 7 - 4 / 8)) / 2
    )
    assert found.false_abstention == 0.0
    assert (
        found.false_commitment == 1 / 4
    )  # one B where E was right; the unextracted one chose nothing


def test_nothing_to_divide_by_is_none_and_not_zero() -> None:
    found = diagnose(
        score_samples([answered(0, "[none]", "A"), answered(1, "[empty]", "B")], MI_CXR), "E", {}
    )
    assert (found.letter_bias, found.false_commitment, found.extraction_failures) == (
        None,
        None,
        1.0,
    )


def test_the_gap_between_levels_resamples_images_with_all_their_questions() -> None:
    generator = np.random.default_rng(0)
    low = [
        answered(n, "A" if generator.random() < 0.8 else "B", "A", patient=f"i{n % 20}")
        for n in range(100)
    ]
    high = [
        answered(n, "A" if generator.random() < 0.4 else "B", "A", patient=f"i{n % 20}")
        for n in range(60)
    ]
    gap = level_gap(*(item_table(level, MI_CXR) for level in (low, high)), "accuracy")

    assert gap is not None
    means = [np.mean([one.scores["accuracy"] for one in members]) for members in (high, low)]
    assert gap.difference == pytest.approx(means[0] - means[1])
    assert gap.interval is not None
    assert gap.interval[0] < gap.difference < gap.interval[1] < 0
    assert level_gap(*(item_table(level, MI_CXR) for level in (low, high)), "rougeL") is None
