"""MedStreamBench's items out of responses: by hand, in any order, and never with a missing round
counted.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from release_rows import single_turn_row, streaming_row

from medtasks.answers import AlertStateFilter, AnswerabilityFilter
from medtasks.benchmarks import aggregations
from medtasks.benchmarks.medstreambench import (
    STREAMING_METRICS,
    documents,
    process_results,
)
from medtasks.benchmarks.medstreambench.parse import parse_medstream_row
from medtasks.benchmarks.medstreambench.table4 import OVERALL_TABLE4
from medtasks.catalog.records import Where
from medtasks.catalog.registry import get_benchmark, get_filter
from medtasks.runs.samples import Sample
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.scores import Scores

BENCHMARK = get_benchmark("medstreambench")


def open_streaming_row(**changes: Any) -> dict[str, Any]:
    """A future stream whose answers need a judge."""
    row = streaming_row(
        question_type="open",
        choices=None,
        answer=None,
        reference_answer="Bleeding from the bed.",
        judge_rubric={"correctness": "0-2", "evidence_grounding": "0-2", "safety": "0-1"},
        **changes,
    )
    for turn in row["rounds"]:
        if turn["answerable"]:
            turn["expected_output"] = "Bleeding from the bed."
    return row


def documents_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents of a record, each with one frame at its window's end."""
    record = parse_medstream_row(row, Where("x.jsonl", 1))
    rounds = [
        turn.model_copy(update={"media": ("v.mp4",), "frames": (0,), "times": (0.0,)})
        for turn in record.rounds
    ]
    made = documents(record.model_copy(update={"rounds": tuple(rounds), "media": ("v.mp4",)}))
    return [{"benchmark": "medstreambench", **document} for document in made]


def samples_of(row: dict[str, Any], responses: Sequence[str]) -> list[Sample]:
    """What a model that says ``responses`` round by round leaves in the sample log."""
    samples = []
    for document, response in zip(documents_of(row), responses, strict=True):
        step = AlertStateFilter if document["temporal_mode"] == "proactive" else AnswerabilityFilter
        (filtered,) = step().apply([[response]], [document])
        assert isinstance(filtered, str)
        values = process_results(document, [filtered])
        rest = {
            key: value
            for key, value in document.items()
            if key not in ("sample_id", "cluster", "media", "target")
        }
        samples.append(
            Sample(
                sample_id=document["sample_id"],
                task=f"medstreambench_{document['subtask']}",
                cluster=document["cluster"],
                media=("v.mp4",),
                prompt_hash="0",
                prompt="",
                target=document["target"],
                responses=(response,),
                filtered=filtered,
                status=get_filter(step.__name__).status(filtered),
                scores={name: value.get("score") for name, value in values.items()},
                statistics={},
                pending=tuple(name for name, value in values.items() if value.get("pending")),
                document=rest,
            )
        )
    return samples


def scored(row: dict[str, Any], responses: Sequence[str], *pooled: str) -> Scores:
    return score_samples(samples_of(row, responses), BENCHMARK, (), pooled)


def values(row: dict[str, Any], responses: Sequence[str], *pooled: str) -> dict[str, float | None]:
    return {name: score.value for name, score in scored(row, responses, *pooled).metrics.items()}


# Rounds end at 4, 6, 8 and 10 s of a stream that starts at 2 s; the answer is there from 8 s on. No
# tolerance is given, so it is half the smallest gap, 1 s: a response in the next round, 2 s away,
# has R = 1 - (2 - 1) / 1 = 0. Late means after 9 s; a delay counts for `alert_delay` unless the
# response was a false alarm.
CLOSED = [
    # responses, content, responsiveness, stability, false alarms, misses, late, delay
    (["unanswerable", "unanswerable", "closure", "closure"], 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0),
    (["closure"] * 4, 0.5, 0.0, 1.0, 1.0, 0.0, 0.0, -4.0),
    (["unanswerable"] * 3 + ["closure"], 0.75, 0.0, 0.5, 0.0, 0.0, 1.0, 2.0),
    (["unanswerable"] * 4, 0.5, 0.0, 0.0, 0.0, 1.0, 0.0, None),
    (
        ["unanswerable", "closure", "unanswerable", "unanswerable"],
        0.25,
        0.0,
        0.0,
        1.0,
        0.0,
        0.0,
        -2.0,
    ),
    (
        ["unanswerable", "unanswerable", "preparation", "closure"],
        0.75,
        1.0,
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ),
    (["", "", "", ""], 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, None),
]


@pytest.mark.parametrize("case", CLOSED)
def test_a_closed_future_stream(case: tuple[Any, ...]) -> None:
    responses, content, responsiveness, stability, alarms, misses, late, delay = case
    found = values(streaming_row(), responses, "late_rate", "alert_delay")

    assert found["content"] == found["content_closed"] == pytest.approx(content)
    assert found["responsiveness"] == pytest.approx(responsiveness)
    assert found["stability"] == pytest.approx(stability)
    assert found["overall"] == pytest.approx(0.7 * content + 0.3 * responsiveness)
    assert (found["false_alarm_rate"], found["miss_rate"], found["late_rate"]) == (
        alarms,
        misses,
        late,
    )
    assert found["signed_delay"] == (None if delay is None else pytest.approx(delay))
    assert found["alert_delay"] == (None if alarms else found["signed_delay"])
    assert found["invalid_rate"] == (1.0 if responses[0] == "" else 0.0)


ALERTS = [
    (["no_alert", "no_alert", "alert: bleeding", "alert: bleeding"], 1.0, 1.0, 0.0),
    (
        ["no_alert", "No alert.", "**Alert**: the bleeding.", "ALERT"],
        0.75,
        1.0,
        0.0,
    ),  # the last one has no reason
    (
        ["uncertain", "no_alert", "alert: bleeding", "alert: bleeding"],
        1.0,
        1.0,
        0.0,
    ),  # either will do, section 5.3
    (["no_alert", "what a nice view", "alert: bleeding", "alert: smoke"], 0.5, 1.0, 0.25),
    (["no_alert", "alert: too early", "alert: bleeding", "alert: bleeding"], 0.75, 0.0, 0.0),
]


@pytest.mark.parametrize(("responses", "content", "responsiveness", "invalid"), ALERTS)
def test_a_closed_proactive_stream(
    responses: list[str], content: float, responsiveness: float, invalid: float
) -> None:
    found = values(streaming_row("proactive"), responses)

    assert found["content"] == pytest.approx(content)
    assert found["responsiveness"] == pytest.approx(responsiveness)
    assert found["invalid_rate"] == invalid


def test_an_alert_that_the_record_gives_no_reason_for_is_right_with_any() -> None:
    row = streaming_row("proactive")
    row["rounds"] = [
        {**turn, "expected_output": "alert"} if turn["answerable"] else turn
        for turn in row["rounds"]
    ]
    assert values(row, ["no_alert", "no_alert", "alert: smoke", "alert"])["content"] == 1.0


def test_a_given_time_and_tolerance_go_before_what_the_rounds_say() -> None:
    row = streaming_row(expected_time=5.0, tolerance=2.0)
    # said at 8 s, 3 s late, of which 2 are forgiven: 1 - (3 - 2) / 2
    assert (
        values(row, ["unanswerable", "unanswerable", "closure", "closure"])["responsiveness"] == 0.5
    )


def test_both_laws_are_reported_from_the_same_responses() -> None:
    # one stream answered one round late, one at once, one missed; 1 s is forgiven, the streams are
    # 8 s long
    samples = [
        sample
        for number, said in enumerate((CLOSED[2][0], CLOSED[1][0], CLOSED[3][0]))
        for sample in samples_of(streaming_row(sample_id=f"s{number}"), said)
    ]
    single = samples_of(
        single_turn_row(sample_id="s9", temporal_mode="future"), ["closure"]
    )  # wrong
    metrics = score_samples(
        [*samples, *single],
        BENCHMARK,
        pooled=["responsiveness_stream_length", "overall_stream_length"],
    ).metrics

    over_length = [1 - (2 - 1) / 8, 1 - (4 - 1) / 8, 0.0]
    content = [0.75, 0.5, 0.5]
    assert metrics["responsiveness"].value == 0
    assert metrics["responsiveness_stream_length"].value == pytest.approx(sum(over_length) / 3)
    assert metrics["overall"].value == pytest.approx(0.7 * sum(content) / 4)
    assert metrics["overall_stream_length"].value == pytest.approx(
        (0.7 * sum(content) + 0.3 * sum(over_length)) / 4
    )


@pytest.mark.parametrize("option", ["unanswerable", "Unanswerable", "C. unanswerable"])
@pytest.mark.parametrize("said", ["C", "(C)", "C. unanswerable", "unanswerable"])
def test_the_letter_of_the_option_unanswerable_is_no_answer(option: str, said: str) -> None:
    choices = (
        ["A. dissection", "B. closure", option]
        if option.startswith("C.")
        else ["dissection", "closure", option]
    )
    row = streaming_row(choices=choices)
    found = values(row, [said, said, "B", "B"])
    assert (found["content"], found["responsiveness"], found["false_alarm_rate"]) == (1.0, 1.0, 0.0)
    silent = values(row, [said] * 4)
    assert (silent["miss_rate"], silent["stability"], silent["content"]) == (1.0, 0.0, 0.5)
    found = values(
        streaming_row(choices=["dissection", "closure", "unanswerable"]), ["A", "C", "B", "B"]
    )
    assert (found["content"], found["responsiveness"], found["false_alarm_rate"]) == (
        0.75,
        0.0,
        1.0,
    )


def test_an_open_stream_awaits_its_judge_between_two_bounds() -> None:
    # two rounds are decided by rule (one of them wrong), two await a judge: content lies in 1/4 ..
    # 3/4
    scores = scored(
        open_streaming_row(), ["unanswerable", "blood", "blood", "blood"], "overall_stream_length"
    )
    content, overall = scores.metrics["content"], scores.metrics["overall"]

    assert (content.value, content.judged, content.samples) == (None, 0, 1)
    assert content.reason == "1 of 1 items await a judge"
    assert content.bounds == pytest.approx((0.25, 0.75))
    assert scores.metrics["responsiveness"].value == 0
    assert overall.bounds == pytest.approx((0.7 * 0.25, 0.7 * 0.75))
    responsiveness = 1 - (2 - 1) / 8
    assert scores.metrics["overall_stream_length"].bounds == pytest.approx(
        (0.7 * 0.25 + 0.3 * responsiveness, 0.7 * 0.75 + 0.3 * responsiveness)
    )
    assert scores.metrics["content_closed"].value is None
    assert scores.metrics["content_closed"].reason == "it applies to no item here"


def test_a_single_turn_item_is_right_or_wrong() -> None:
    assert values(single_turn_row(), ["B"]) == {
        "content": 1.0,
        "content_closed": 1.0,
        "overall": 1.0,
    }
    assert (
        scored(single_turn_row(), ["closure"], "late_rate").metrics["late_rate"].samples == 0
    )  # it is never late
    unanswerable = single_turn_row(
        choices=["preparation", "dissection", "unanswerable"], answer="unanswerable"
    )
    assert [values(unanswerable, [said])["content"] for said in ("C", "unanswerable", "B")] == [
        1.0,
        1.0,
        0.0,
    ]
    assert values(single_turn_row(), ["closure"])["content"] == 0.0
    assert values(single_turn_row(), ["unanswerable"])["content"] == 0.0


WRITTEN = [
    "unanswerable",
    "Unanswerable.",
    "Unanswerable. The view is dark.",
    "Unanswerable: smoke, not tissue",
]


@pytest.mark.parametrize("mode", ["retrospective", "present", "future"])
@pytest.mark.parametrize("written", WRITTEN)
def test_an_open_question_that_cannot_be_answered_goes_to_the_judge_like_any_other(
    mode: str, written: str
) -> None:
    row = single_turn_row(
        temporal_mode=mode,
        question_type="open",
        reference_answer=written,
        answer=None,
        choices=None,
    )
    for said in ("The answer is: unanswerable", "closure"):
        content = scored(row, [said]).metrics["content"]
        assert (content.value, content.bounds) == (None, (0.0, 1.0))  # awaits its judge
    assert documents_of(row)[0]["expected"] == ["unanswerable"]
    assert values(row, [""])["content"] == 0.0  # no response, nothing to judge


@pytest.mark.parametrize("written", WRITTEN)
def test_a_gold_text_that_begins_with_unanswerable_is_unanswerable(written: str) -> None:
    stream = open_streaming_row()
    for turn in stream["rounds"]:
        if not turn["answerable"]:
            turn["expected_output"] = written
        del turn["answerable"]
    assert [document["answerable"] for document in documents_of(stream)] == [
        False,
        False,
        True,
        True,
    ]
    closed = single_turn_row(answer=written)
    assert values(closed, ["unanswerable"])["content"] == 1.0
    assert values(closed, ["dissection"])["content"] == 0.0


@pytest.mark.parametrize(
    "written", ["Unanswerable questions were raised.", "The question is not unanswerable."]
)
def test_a_gold_text_with_the_word_in_a_sentence_is_an_answer(written: str) -> None:
    row = single_turn_row(question_type="open", reference_answer=written, answer=None, choices=None)
    assert documents_of(row)[0]["answerable"]


def test_a_gold_letter_of_the_option_unanswerable_is_unanswerable() -> None:
    row = streaming_row(choices=["dissection", "closure", "unanswerable"])
    for turn in row["rounds"]:
        turn["expected_output"] = "B" if turn["answerable"] else "C"
    assert [document["answerable"] for document in documents_of(row)] == [False, False, True, True]
    assert values(row, ["unanswerable", "C", "closure", "B"])["content"] == 1.0


def test_an_item_of_which_a_round_is_missing_is_in_no_score_and_is_counted() -> None:
    whole = samples_of(streaming_row(), CLOSED[0][0])
    part = samples_of(streaming_row(sample_id="s2"), CLOSED[3][0])[:3]
    scores = score_samples([*whole, *part], BENCHMARK)

    assert (scores.items, scores.samples, scores.incomplete) == (1, 7, 1)
    assert scores.metrics["content"].value == 1.0


def test_table_4_combines_mode_means_where_the_pooled_overall_takes_items() -> None:
    # future: one single-turn item right (C 1), one stream missed (C 0.5, R 0); proactive: one
    # perfect stream
    samples = [
        *samples_of(single_turn_row(temporal_mode="future"), ["dissection"]),
        *samples_of(streaming_row(sample_id="s2"), CLOSED[3][0]),
        *samples_of(streaming_row("proactive", sample_id="s3"), ALERTS[0][0]),
    ]
    metrics = score_samples(
        samples, BENCHMARK, pooled=["overall_table4", "overall_table4_eq10"]
    ).metrics

    assert metrics["overall"].value == pytest.approx((1 + 0.35 + 1) / 3)
    # mode means: future C = 0.75 and R = 0, so O = 0.525, with two of the three items
    assert metrics["overall_table4"].value == pytest.approx((2 * 0.525 + 1) / 3)
    assert metrics["overall_table4_eq10"].value == pytest.approx(
        (2 * 0.525 + 1) / 3
    )  # R is 0 in either reading
    assert metrics["overall_table4"].signature == OVERALL_TABLE4.signature


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_rounds_and_items_changes_nothing(seed: int) -> None:
    samples = [
        sample
        for number, (responses, *_) in enumerate(CLOSED)
        for sample in samples_of(streaming_row(sample_id=f"s{number}"), responses)
    ]
    shuffled = list(samples)
    random.Random(seed).shuffle(shuffled)

    assert score_samples(shuffled, BENCHMARK, ["dataset"]) == score_samples(
        samples, BENCHMARK, ["dataset"]
    )


def test_the_harness_alone_aggregates_to_the_same_numbers() -> None:
    rows = [(streaming_row(sample_id=f"s{number}"), case[0]) for number, case in enumerate(CLOSED)]
    payloads = [
        process_results(document, [response])
        for row, responses in rows
        for document, response in zip(documents_of(row), responses, strict=True)
    ]
    assert {tuple(payload) for payload in payloads} == {STREAMING_METRICS}  # whatever is answered
    ours = score_samples(
        [sample for row, said in rows for sample in samples_of(row, said)], BENCHMARK
    ).metrics

    for name in STREAMING_METRICS:
        gathered = json.loads(json.dumps([payload[name] for payload in payloads]))
        assert getattr(aggregations, name)(gathered[::-1]) == pytest.approx(
            ours[name].value, abs=1e-12
        )
    payloads = [
        process_results(document, ["blood"])["content"]
        for document in documents_of(open_streaming_row())
    ]
    assert aggregations.content(payloads) == "not computed, because 1 of 1 items await a judge"
    assert (
        aggregations.content(payloads[:2]) == "not computed, because no item has all of its rounds"
    )


def test_a_delay_in_frames_is_no_delay_in_seconds() -> None:
    paths = {"clip.mp4": 0.0, "frames": None}
    for path, delay in paths.items():
        row = streaming_row(media_path=f"Stream_Bench/PitVis/{path}")
        assert (
            score_samples(samples_of(row, CLOSED[0][0]), BENCHMARK).metrics["signed_delay"].value
            == delay
        )


def test_breakdowns_go_by_item_and_not_by_round() -> None:
    samples = [
        *samples_of(streaming_row(sample_id="s1"), CLOSED[0][0]),
        *samples_of(streaming_row(sample_id="s2", dataset="PitVis"), CLOSED[3][0]),
    ]
    scores = score_samples(samples, BENCHMARK, ["dataset", "organ_group"])

    assert {key: part.items for key, part in scores.breakdowns["dataset"].items()} == {
        "PitVis": 1,
        "cholec80": 1,
    }
    assert set(scores.breakdowns["organ_group"]) == {"gallbladder", "pituitary gland"}
    assert scores.breakdowns["dataset"]["PitVis"].metrics["content"].value == 0.5
