"""Scores of samples: by hand, whatever their order, and never of nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intervals import interval_of
from made_samples import made_manifest, made_sample

from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.metrics.registry import get_metric
from medtasks.runs.sample_files import SampleLines, sample_lines
from medtasks.runs.samples import JudgedScore, Repeat, Sample
from medtasks.scoring.group_scores import score_samples, score_table
from medtasks.scoring.item_table import item_table
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore

MI_CXR = get_benchmark("mi_cxr")
TASK = "mi_cxr_tel_single"
NO_RUN = made_manifest()


def sample(number: int, filtered: str, target: str, patient: str = "p1") -> Sample:
    return made_sample(
        TASK,
        number,
        filtered == target,
        sample_id=f"tel-{number}",
        cluster=patient,
        target=target,
        filtered=filtered,
        status="ok" if len(filtered) == 1 else filtered.strip("[]"),
        document={"target": target, "qtype": "single_emergence", "group_type": "TEL"},
    )


FOUR = [
    sample(0, "A", "A", "p1"),
    sample(1, "E", "B", "p1"),
    sample(2, "[none]", "E", "p2"),
    sample(3, "C", "E", "p2"),
]


def test_accuracy_counts_unextracted_answers_as_wrong() -> None:
    scores = score_samples(FOUR, MI_CXR, ["null_option"])
    assert scores.metrics["accuracy"].value == 0.25
    assert scores.metrics["accuracy"].margin_over_chance == pytest.approx(0.05)
    assert scores.status == {"none": 1, "ok": 3}
    assert scores.breakdowns["null_option"]["null option right"].metrics["accuracy"].value == 0.0
    assert scores.breakdowns["null_option"]["another option right"].metrics["accuracy"].value == 0.5


def test_chance_is_that_of_the_options_of_the_items_scored() -> None:
    own = [
        one.model_copy(update={"document": {**one.document, "choices": dict.fromkeys("ABC", "?")}})
        for one in FOUR
    ]
    score = score_samples(own, MI_CXR).metrics["accuracy"]
    assert (score.chance, score.margin_over_chance) == (1 / 3, pytest.approx(0.25 - 1 / 3))
    mixed = score_samples([*own[:2], *FOUR[2:]], MI_CXR, ["null_option"])
    assert mixed.metrics["accuracy"].chance == pytest.approx((2 / 3 + 2 / 5) / 4)
    assert mixed.breakdowns["null_option"]["null option right"].metrics["accuracy"].chance == 0.2
    several = FOUR[3].model_copy(update={"document": {**FOUR[3].document, "multi_select": True}})
    assert (
        score_samples([*FOUR[:3], several], MI_CXR).metrics["accuracy"].chance is None
    )  # cannot be guessed


def test_letters_abstention_and_commitment() -> None:
    letters = score_samples(FOUR, MI_CXR).letters
    assert letters is not None
    assert letters.gold == {"A": 1, "B": 1, "C": 0, "D": 0, "E": 2}
    assert letters.chosen == {"A": 1, "B": 0, "C": 1, "D": 0, "E": 1, "[none]": 1}
    assert (letters.null_chosen_when_wrong, letters.null_missed_when_right) == (1, 1)


UNKNOWN = ((0.0, 1.0), (1.0, 1.0))  # wrong at worst, right at best


def unanswered(number: int, patient: str = "p1") -> Sample:
    return sample(number, "[failed]", "A", patient).model_copy(
        update={
            "status": "failed",
            "failed": ("timeout",),
            "scores": {"accuracy": None},
            "statistics": {},
            "limits": {"accuracy": UNKNOWN},
        }
    )


def judged(number: int, low: float, high: float, judge: str | None = "panel") -> Sample:
    """An answer of which a judge decided if ``low`` and ``high`` are equal."""
    score = JudgedScore(rubric="r", judge=judge, limits=((low, 1.0), (high, 1.0)))
    return sample(number, "A", "A", f"p{number}").model_copy(
        update={"scores": {"accuracy": None}, "statistics": {}, "judged": {"accuracy": score}}
    )


def accuracy(samples: list[Sample], threshold: float = 0.99) -> MetricScore:
    return score_samples(samples, MI_CXR, threshold=threshold).metrics["accuracy"]


def test_requests_without_response_are_counted_and_bound_the_score() -> None:
    scores = score_samples([*FOUR, unanswered(4)], MI_CXR)
    found = scores.metrics["accuracy"]
    assert (found.value, found.samples, found.answered, found.known, found.judged) == (
        0.25,
        5,
        4,
        4,
        None,
    )
    assert found.bounds == (0.2, 0.4)
    assert found.incomplete
    assert scores.status == {"failed": 1, "none": 1, "ok": 3}
    assert scores.letters is not None
    assert sum(scores.letters.gold.values()) == sum(scores.letters.chosen.values()) == 4
    assert "failed" not in found.signature


def test_as_many_responses_as_the_threshold_asks_for_make_a_complete_score() -> None:
    assert not accuracy([*FOUR, unanswered(4)], threshold=0.8).incomplete
    assert accuracy([*FOUR, unanswered(4)], threshold=0.81).incomplete


def test_no_response_at_all_has_no_score() -> None:
    found = accuracy([unanswered(0), unanswered(1)])
    assert (found.value, found.interval, found.reason) == (
        None,
        None,
        "none of 2 items is answered",
    )
    assert (found.answered, found.bounds, found.incomplete) == (0, (0.0, 1.0), False)


def test_the_score_of_decided_answers_and_what_the_others_could_make_of_it() -> None:
    found = accuracy(
        [judged(0, 1, 1), judged(1, 0.5, 0.5), judged(2, 0, 1), judged(3, 0.25, 0.75)],
        threshold=0.5,
    )
    assert (found.value, found.samples, found.judged, found.answered) == (0.75, 4, 2, None)
    assert found.bounds == (1.75 / 4, 3.25 / 4)
    assert found.signature.endswith("|judge:panel")
    assert not found.incomplete
    assert accuracy([judged(0, 1, 1), judged(1, 0, 1)], threshold=0.51).incomplete


def test_a_score_that_awaits_its_judge_has_no_value() -> None:
    found = accuracy([judged(0, 1, 1), judged(1, 0, 1, judge=None)])
    assert (found.value, found.reason, found.judged) == (None, "1 of 2 items await a judge", 1)
    assert found.bounds == (0.5, 1.0)
    assert not found.incomplete
    assert accuracy([judged(0, 1, 1), judged(1, 0, 1, judge=None)], threshold=0.5).value == 1.0
    assert accuracy([judged(0, 0, 1), judged(1, 0, 1)]).reason == "none of 2 items has a verdict"


def test_the_judges_of_all_answers_are_in_the_signature() -> None:
    found = accuracy([judged(0, 1, 1, "two"), judged(1, 0, 0, "one"), judged(2, 0, 0, "two")])
    assert found.signature.endswith("|judge:one|judge:two")


def test_a_score_that_some_samples_lack_is_named() -> None:
    lacking = sample(4, "A", "A").model_copy(update={"statistics": {}})
    found = accuracy([*FOUR, lacking])
    assert found.value is None
    assert (
        found.reason
        == "1 of 5 samples lack it: the run that made these samples could not compute it"
    )
    assert accuracy([lacking]).reason == "the run that made these samples could not compute it"


def test_repeats_have_a_score_each_and_a_spread() -> None:
    """Three runs of two questions score 1, 0.5 and 0: mean 0.5, deviation 0.5, t of two degrees of
    freedom 4.3027.
    """
    runs = [("A", "A", "B"), ("A", "B", "B")]
    samples = [
        sample(number, "A", "A", f"p{number}").model_copy(
            update={
                "repeats": tuple(
                    Repeat(
                        filtered=letter,
                        status="ok",
                        statistics={"accuracy": (float(letter == "A"), 1.0)},
                    )
                    for letter in letters
                ),
                "statistics": {"accuracy": (float(letters.count("A")), 3.0)},
            }
        )
        for number, letters in enumerate(runs)
    ]
    found = accuracy(samples)
    assert found.value == 0.5
    assert found.repeats is not None
    assert found.repeats.values == (1.0, 0.5, 0.0)
    assert (found.repeats.mean, found.repeats.deviation) == pytest.approx((0.5, 0.5))
    reach = 4.302653 * 0.5 / 3**0.5
    assert found.repeats.interval == pytest.approx((0.5 - reach, 0.5 + reach))
    assert score_samples(samples, MI_CXR).status == {"ok": 6}


def test_intervals_are_clustered_by_patient() -> None:
    """Overall and by breakdown: each as if it were computed alone."""
    samples = [
        sample(n, "A" if n % 3 else "B", "E" if n % 7 == 0 else "A", f"p{n % 11}")
        for n in range(60)
    ]
    table = item_table(samples, MI_CXR, ["null_option"])
    whole = score_table(table)
    for scores, rows in (
        (whole, samples),
        *(
            (part, [one for one in samples if (one.target == "E") == (key == "null option right")])
            for key, part in whole.breakdowns["null_option"].items()
        ),
    ):
        statistics = np.array([one.statistics["accuracy"] for one in rows])
        alone = interval_of(statistics, [one.cluster for one in rows], get_metric("accuracy").score)
        assert scores.metrics["accuracy"].interval == (alone.low, alone.high)
        assert scores.clusters == len({one.cluster for one in rows})
    reported = RunRecord(NO_RUN, {}, {"all": whole}, {}).intervals()["all"]["accuracy"]
    assert reported == {
        "value": whole.metrics["accuracy"].value,
        "interval": whole.metrics["accuracy"].interval,
        "interval_method": "wilson-clustered",
        "reason": None,
    }


def test_one_cluster_has_no_interval_and_says_why() -> None:
    accuracy = score_samples(FOUR[:2], MI_CXR).metrics["accuracy"]
    assert accuracy.interval is None
    assert accuracy.reason is not None
    assert "at least 2" in accuracy.reason


@settings(max_examples=20, deadline=None)
@given(st.permutations(FOUR))
def test_the_order_of_samples_changes_nothing(samples: list[Sample]) -> None:
    assert score_samples(samples, MI_CXR) == score_samples(FOUR, MI_CXR)


def test_nothing_has_no_score() -> None:
    with pytest.raises(MedtasksError, match="no sample to score"):
        score_samples([], MI_CXR)


def test_whatever_a_model_says_can_be_read_again(tmp_path: Path) -> None:
    """Among it the characters that end a line of text for some, but not of JSON."""
    said = "one\u2028two\u2029three\x85four\x0bfive\x1c\r\nsix"
    samples = [FOUR[0].model_copy(update={"responses": (said,)}), *FOUR[1:]]
    SampleLines(samples[::-1]).write(tmp_path / "x.jsonl")
    assert [one for *_, one in sample_lines(tmp_path / "x.jsonl")] == sorted(
        samples, key=lambda one: one.sample_id
    )


def test_a_line_that_is_no_sample_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with pytest.raises(
        DataError, match=r"x\.jsonl: cannot be read \(No such file or directory\); restore it"
    ):
        list(sample_lines(path))
    SampleLines(FOUR).write(path)
    first, second, *rest = path.read_bytes().splitlines(keepends=True)
    for broken, message in (
        (b"\xff\xfe", r"line 1: not valid JSON (.*); restore it\.$"),
        (b"\n{", r"line 2: not valid JSON (.*); restore it\.$"),
        (
            first + second.replace(b'"cluster": "p1"', b'"cluster": 7') + b"".join(rest),
            "line 2: field `cluster`",
        ),
    ):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=rf"x\.jsonl, {message}"):
            list(sample_lines(path))


def test_finished_results_are_never_overwritten(tmp_path: Path) -> None:
    run = RunRecord(
        NO_RUN, samples={TASK: FOUR}, tasks={TASK: score_samples(FOUR, MI_CXR)}, groups={}
    )
    write_run(tmp_path / "run", run)
    with pytest.raises(UsageError, match="never overwritten"):
        write_run(tmp_path / "run", run)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
