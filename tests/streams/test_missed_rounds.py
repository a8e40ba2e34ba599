"""Missed rounds of paced streams: scored as empty responses, counted as neither failed nor
invalid.
"""

from __future__ import annotations

from typing import Any

import pytest
from release_rows import streaming_row
from test_stream_scoring import documents_of, open_streaming_row

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.metrics.timelines import timelines
from medtasks.runs.manifest import TaskFacts
from medtasks.runs.protocol import task_facts
from medtasks.runs.replies import ALL_BLANK, PacedRound, Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.finished_run import AskedDocument, _without_blank_run
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.scored_samples import scored_samples

BENCHMARK = get_benchmark("medstreambench")
MISSED = Reply("", paced=PacedRound(1, 2.0))


def paced_samples(row: dict[str, Any], replies: list[Reply]) -> list[Sample]:
    """The scored samples of a stream with these replies."""
    documents = documents_of(row)
    spec = load_spec(f"medstreambench_{documents[0]['subtask']}")
    samples = []
    for document, reply in zip(documents, replies, strict=True):
        samples.append(Sample.answered(spec.name, document, (reply,)))
    return scored_samples(spec, samples)


def scores_of(samples: list[Sample]) -> dict[str, float | None]:
    scores = score_samples(samples, BENCHMARK, ())
    return {name: score.value for name, score in scores.metrics.items()}


def test_a_missed_round_is_scored_as_an_empty_response_and_is_not_invalid() -> None:
    # rounds at 4, 6, 8 and 10 s, answerable from 8 s on, with half a gap, 1 s, as the tolerance
    row = streaming_row()
    said = [Reply("unanswerable"), MISSED, MISSED, Reply("closure")]
    samples = paced_samples(row, said)
    assert [sample.status for sample in samples] == ["unanswerable", "missed", "missed", "ok"]
    scores = scores_of(samples)
    # right at 4 and 10 s; the answer at 10 s is 2 s late: R = 1 - (2 - 1) / 1
    assert scores["content"] == 0.5
    assert scores["responsiveness"] == 0
    assert scores["stability"] == 0.5
    assert scores["signed_delay"] == 2
    assert scores["overall"] == pytest.approx(0.35)
    assert scores["invalid_rate"] == 0

    blank = scores_of(paced_samples(row, [said[0], Reply(""), Reply(""), said[3]]))
    assert blank.pop("invalid_rate") == 0.5
    scores.pop("invalid_rate")
    assert blank == scores


def test_a_missed_open_round_needs_no_judge() -> None:
    said = [Reply("unanswerable"), Reply("unanswerable"), MISSED, Reply("Bleeding.")]
    samples = paced_samples(open_streaming_row(), said)
    assert samples[2].scores["content"] == 0
    content = score_samples(samples, BENCHMARK, ()).metrics["content"]
    assert content.bounds == (0.5, 0.75)  # the judge decides on the last round alone


def test_a_sample_line_keeps_that_its_round_was_missed_and_other_lines_do_not_mention_it() -> None:
    answered, missed, *_ = paced_samples(streaming_row(), [Reply("A"), MISSED, Reply("A"), MISSED])
    assert '"missed"' not in answered.model_dump_json()
    read = Sample.model_validate_json(missed.model_dump_json())
    assert read == missed
    (again,) = scored_samples(load_spec(read.task), [read])
    assert again == missed


def test_the_manifest_counts_missed_rounds_as_neither_answered_nor_failed() -> None:
    replies = [Reply("alert", finish="stop"), MISSED, Reply.failure("gone"), MISSED]
    samples = paced_samples(streaming_row("proactive"), replies)
    spec = load_spec("medstreambench_proactive")
    planned = task_facts(spec, {}, 4, pace="realtime")
    facts = planned.with_outcomes([sample.outcome for sample in samples], replies)
    assert (facts.answered, facts.missed, facts.failed) == (1, 2, {"gone": 1})
    assert facts.attempted == 4
    assert facts.finish == {"stop": 1}
    assert facts.pace_text.startswith("rounds sent in real time (realtime): 2 of 4 missed")
    assert TaskFacts.model_validate_json(facts.model_dump_json()) == facts
    assert planned.protocol_hash != task_facts(spec, {}, 4).protocol_hash
    assert not {"pace", "missed"} & task_facts(spec, {}, 4).model_dump().keys()


def test_a_timeline_shows_a_missed_round() -> None:
    samples = paced_samples(streaming_row(), [Reply("unanswerable"), MISSED, MISSED, MISSED])
    assert BENCHMARK.scoring.join is not None
    assert BENCHMARK.stream.timeline is not None
    items = BENCHMARK.scoring.join([sample.view() for sample in samples]).items
    (line,) = timelines("medstreambench_future_streaming", items, BENCHMARK.stream.timeline)
    assert [shown.said for shown in line.rounds] == ["unanswerable", *["(missed)"] * 3]
    assert all(shown.valid for shown in line.rounds)


def test_missed_rounds_do_not_hide_that_every_response_is_blank() -> None:
    asked = [AskedDocument({}, "", [reply]) for reply in (Reply(" "), MISSED)]
    ((_, marked),) = _without_blank_run([("task", asked)])
    assert [document.replies[0].failed for document in marked] == [ALL_BLANK, None]
    assert marked[1].replies[0].missed
