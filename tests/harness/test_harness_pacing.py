"""Paced streams: rounds are sent when they are due, and a model that is still busy misses them."""

from __future__ import annotations

import json
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from failing_server import FailingServer, completion, error
from hypothesis import given, settings
from hypothesis import strategies as some
from lmms_eval.api.instance import Instance
from release_rows import streaming_row
from runs import Run, baseline

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.core.settings import Pace, read_pace, using
from medtasks.harness import run_tasks
from medtasks.harness.pacing import GIVE_UP, NOT_SENT, play
from medtasks.harness.requests import Requests
from medtasks.harness.stream_times import StreamRound, paced_rounds
from medtasks.runs.replies import Reply, Slot
from medtasks.runs.signature import differences, parse_signature
from medtasks.runs.times import read_times
from medtasks.runs.unfinished import AnswerStore, read_answers
from training.drawings.clips import encode_clip

PROACTIVE = "medstreambench_proactive"


class Stopwatch:
    """A clock that passes only when it is waited for, or set forward."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def wait_until(self, moment: float) -> None:
        self.time = max(self.time, moment)


def played(due_times: Sequence[float], seconds: Sequence[float]) -> list[Reply]:
    """The replies of a model that takes so many seconds for its first, second, … request."""
    clock = Stopwatch()
    durations = iter(seconds)

    def ask(number: int) -> Reply:
        clock.time += next(durations)
        return Reply(f"round {number}")

    return play(due_times, ask, clock)


def missed(replies: Sequence[Reply]) -> list[int]:
    return [number for number, reply in enumerate(replies) if reply.missed]


def test_the_newest_due_round_is_sent_and_those_before_it_are_missed() -> None:
    # the second request, sent at 2, is answered at 9.5: the rounds at 4, 6 and 8 are due by then
    replies = played([0, 2, 4, 6, 8, 10, 12], [0.5, 7.5, 0.2, 1.9, 30])
    assert missed(replies) == [2, 3]
    assert [reply.text for reply in replies if not reply.missed] == [
        f"round {number}" for number in (0, 1, 4, 5, 6)
    ]
    times = [reply.paced for reply in replies if reply.paced is not None]
    assert [paced.sent for paced in times] == [0, 2, None, None, 9.5, 10, 12]
    assert [paced.answered for paced in times] == [0.5, 9.5, None, None, 9.7, 11.9, 42]


def test_a_late_model_that_catches_up_misses_nothing() -> None:
    assert missed(played([0, 2, 4, 6], [2, 2, 2, 2])) == []
    assert missed(played([0, 2, 4, 6], [3.99, 2, 0.5, 1])) == []
    assert missed(played([0, 2, 4, 6], [4, 0.5, 0.5])) == [1]


GAPS = some.lists(some.integers(1, 40), min_size=0, max_size=12)


@settings(max_examples=150)
@given(GAPS, some.lists(some.integers(0, 120), min_size=13, max_size=13))
def test_missed_rounds_are_those_that_a_newer_due_round_overtook(
    gaps: list[int], seconds: list[int]
) -> None:
    due_times = [float(sum(gaps[:number])) for number in range(len(gaps) + 1)]
    replies = played(due_times, seconds)
    assert len(replies) == len(due_times)
    assert not replies[0].missed
    assert not replies[-1].missed
    free_at = 0.0
    for number, reply in enumerate(replies):
        assert reply.paced is not None
        assert reply.paced.due == due_times[number]
        if reply.missed:
            # the next round was due, too, when the model was free again
            assert due_times[number + 1] <= free_at
            continue
        assert reply.paced.sent == max(free_at, due_times[number])
        assert bisect_right(due_times, reply.paced.sent) == number + 1
        assert reply.paced.answered is not None
        free_at = reply.paced.answered


# --- requests, the store, and runs that are resumed ---


class Model:
    """A back-end of ours that takes ``seconds`` of ``clock`` for each request; a request of the
    documents ``broken`` fails, and one of ``killed`` ends the process.
    """

    def __init__(self, clock: Stopwatch, seconds: float = 0.5) -> None:
        self.clock = clock
        self.seconds = seconds
        self.broken: set[int] = set()
        self.killed: set[int] = set()
        self.asked: list[int] = []
        self.rank = 0

    def describe(self) -> dict[str, Any]:
        return {"model": "model"}

    def stream(self, requests: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        (request,) = requests
        self.asked.append(request.doc_id)
        self.clock.time += self.seconds
        if request.doc_id in self.killed:
            raise KeyboardInterrupt
        reply = Reply(f"answer {len(self.asked)}")
        yield [(0, Reply.failure("gone") if request.doc_id in self.broken else reply)]


ROUNDS = {
    number: StreamRound(f"stream {number % 2}", number // 2, float(number // 2))
    for number in range(8)
}
"""Two streams with a round each second, whose documents take turns."""


@pytest.fixture
def send(tmp_path: Path) -> Callable[[Model], dict[int, Reply]]:
    """Send the requests of `ROUNDS` to a model as one command, and read its replies back."""

    def sent(model: Model) -> dict[int, Reply]:
        store = AnswerStore(tmp_path / "answers")
        requests = Requests(store, None, {"task"}, False, {"task": ROUNDS}, model.clock)
        instances = []
        for number in ROUNDS:
            facts = {"task": "task", "doc_id": number, "repeats": 1}
            instances.append(Instance("generate_until", ("prompt",), 0, facts))
        try:
            requests.execute(model, "generate_until", instances)
        finally:
            store.close()
        kept = {answer.slot.doc_id: answer.reply for answer in read_answers(tmp_path / "answers")}
        reopened = AnswerStore(tmp_path / "answers")
        for number, reply in kept.items():
            assert reopened.reply(Slot("task", number, 0, "prompt")) == reply
        reopened.close()
        return kept

    return sent


def test_streams_are_sent_one_after_another_and_a_finished_one_is_not_sent_again(
    send: Callable[[Model], dict[int, Reply]],
) -> None:
    model = Model(Stopwatch(), seconds=2.5)
    replies = send(model)
    # after the rounds at 0 and (sent at 2.5, when those at 1 and 2 are due) 2, that at 3 is sent
    assert model.asked == [0, 4, 6, 1, 5, 7]
    assert {number for number, reply in replies.items() if reply.missed} == {2, 3}
    again = Model(Stopwatch())
    assert send(again) == replies
    assert again.asked == []


def test_an_interrupted_stream_starts_again_from_its_first_round(
    send: Callable[[Model], dict[int, Reply]],
) -> None:
    model = Model(Stopwatch())
    model.killed = {5}
    with pytest.raises(KeyboardInterrupt):
        send(model)
    assert model.asked == [0, 2, 4, 6, 1, 3, 5]
    again = Model(Stopwatch())
    replies = send(again)
    assert again.asked == [1, 3, 5, 7]
    assert [replies[number].text for number in (0, 2, 4, 6)] == [
        f"answer {n}" for n in (1, 2, 3, 4)
    ]


def test_only_the_last_attempt_at_a_stream_counts(
    send: Callable[[Model], dict[int, Reply]],
) -> None:
    first = Model(Stopwatch())
    first.broken = {3}
    replies = send(first)
    assert replies[3].failed == "gone"
    assert replies[5].text == "answer 7"

    second = Model(Stopwatch())
    second.broken = {5}
    replies = send(second)
    assert second.asked == [1, 3, 5, 7]
    # although the first attempt had a response to it
    assert [replies[number].failed for number in (1, 3, 5, 7)] == [None, None, "gone", None]
    assert {replies[number].attempt for number in (1, 3, 5, 7)} == {2}

    slow = Model(Stopwatch(), seconds=2.5)
    replies = send(slow)
    assert slow.asked == [1, 5, 7]
    assert replies[3].missed


def test_a_model_that_only_fails_is_given_up(send: Callable[[Model], dict[int, Reply]]) -> None:
    rounds = {
        number: StreamRound(f"stream {number // 2}", number % 2, float(number % 2))
        for number in range(2 * GIVE_UP)
    }
    assert len(ROUNDS) == GIVE_UP
    model = Model(Stopwatch())
    model.broken = set(rounds)
    replies = send(model)
    assert len(model.asked) == GIVE_UP
    assert {reply.failed for reply in replies.values()} == {"gone"}
    assert NOT_SENT not in {reply.failed for reply in replies.values()}


# --- what is refused ---


@pytest.mark.parametrize(
    "text", ["fast", "realtime@", "realtime@0", "realtime@-1", "realtime@x", "@25"]
)
def test_a_malformed_pace_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"MEDTASKS_PACE is '.*realtime@25"):
        read_pace(text)


def test_frames_are_seconds_only_at_a_stated_rate() -> None:
    assert Pace().seconds(50, in_seconds=True) == 50
    assert Pace().seconds(50, in_seconds=False) is None
    assert Pace(25).seconds(50, in_seconds=False) == 2


def test_a_pace_without_streams_is_refused(tmp_path: Path) -> None:
    with using(pace=Pace()), pytest.raises(UsageError, match="no task of the run is of streams"):
        baseline("oracle", ["med_cmr_mcq_ltg"], tmp_path)
    assert not list(tmp_path.rglob("*_medtasks"))


def rounds_of(medium: str, pace: Pace, processes: int = 1) -> dict[str, Any]:
    """The paced rounds of the miniature proactive streams, as if all had this medium."""
    documents = [{**document, "medium": medium} for document in task_documents(PROACTIVE)]
    task = SimpleNamespace(eval_docs=documents)
    return dict(paced_rounds([(load_spec(PROACTIVE), task)], pace, processes)[PROACTIVE])


def test_rounds_have_the_seconds_of_their_stream() -> None:
    rounds = rounds_of("video", Pace())
    times = [entry.time for entry in rounds.values() if entry.item == "mini_hei04_alert"]
    assert times == [6, 9, 10, 13]
    in_frames = rounds_of("sequence", Pace(25))
    assert in_frames[0].time == rounds[0].time / 25


def test_streams_in_frames_need_their_rate_and_a_pace_needs_one_process() -> None:
    with pytest.raises(UsageError, match=r"4 streams of image sequences .*realtime@25"):
        rounds_of("sequence", Pace())
    with pytest.raises(UsageError, match="the run has 2 processes, expected 1"):
        rounds_of("video", Pace(), processes=2)


# --- real runs ---

TIMES = (1.0, 3.0, 5.0, 7.0, 9.0)
"""The rounds of the stream, one every two seconds."""
SLOW = 4.6
"""Seconds that the model takes for the round at 3 s; that at 5 s is overtaken by that at 7 s."""


def stream_row() -> dict[str, Any]:
    """A proactive stream that becomes answerable at 5 s."""
    rounds = []
    for moment in TIMES:
        is_answerable = moment >= 5
        rounds.append(
            {
                "current_time": moment,
                "input_range": [0.5, moment],
                "expected_output": "alert: bleeding" if is_answerable else "no_alert",
                "answerable": is_answerable,
            }
        )
    path = "Stream_Bench/cholec80/v.mp4"
    return streaming_row(
        "proactive", sample_id="late", media_path=path, query_time=0.5, tolerance=1, rounds=rounds
    )


@pytest.fixture(scope="module")
def stream_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data with the stream of `stream_row`."""
    root = tmp_path_factory.mktemp("streams")
    video = root / "media" / "cholec80" / "v.mp4"
    video.parent.mkdir(parents=True)
    grey = np.full((48, 64, 3), 90, dtype=np.uint8)
    encode_clip(video, [Fraction(number, 2) for number in range(22)], lambda *_: grey)
    records = root / "records"
    records.mkdir()
    (records / "cholec80.jsonl").write_text(json.dumps(stream_row()), encoding="utf-8")
    prepare_medstream(str(records), root / "media", root / "data" / "medstreambench")
    return root / "data"


def window_end(text: str) -> float:
    """The time of the round that a prompt asks about."""
    (moment,) = re.findall(r"runs from [0-9.]+ s to ([0-9.]+) s of", text)
    return float(moment)


class SlowModel:
    """Answers a proactive stream; remembers when each round began and ended."""

    def __init__(self) -> None:
        self.times: dict[float, tuple[float, float]] = {}

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        began = time.monotonic()
        text = messages[0]["content"][-1]["text"]
        moment = window_end(text)
        if moment == 3:
            time.sleep(SLOW)
        self.times[moment] = (began, time.monotonic())
        return "alert: bleeding" if moment >= 5 else "no_alert"

    @property
    def longest_delay(self) -> float:
        """The longest time from when a round could be sent to when the model got it."""
        first_began, free_at = self.times[TIMES[0]]
        delays = []
        for moment, (began, ended) in self.times.items():
            due = first_began + moment - TIMES[0]
            delays.append(began - max(due, free_at if moment > TIMES[0] else due))
            free_at = ended
        return max(delays)


@pytest.mark.slow
def test_a_slow_model_misses_exactly_the_rounds_that_it_must(
    request: pytest.FixtureRequest,
    stream_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(stream_data))
    monkeypatch.setenv("MEDTASKS_PACE", "realtime")
    model = SlowModel()
    result = medtasks.evaluate(model, PROACTIVE, output_path=tmp_path / "paced")
    assert result.path is not None
    run = Run(result.path)
    printed = capsys.readouterr()
    assert "1 stream in real time, one at a time: at least 0:00:08" in printed.err

    number = 5 - len(model.times)
    lines = dict(zip(TIMES, run.samples(PROACTIVE), strict=True))
    missed_rounds = {moment for moment, line in lines.items() if line["status"] == "missed"}
    assert missed_rounds == set(TIMES) - model.times.keys()
    # at 3 s the model is busy for 4.6 s or more, on any machine
    assert 5 in missed_rounds
    if model.longest_delay < 1:
        assert missed_rounds == {5}

    times = dict(zip(TIMES, read_times(run.folder)[PROACTIVE], strict=True))
    due_times = [moment - TIMES[0] for moment in TIMES]
    for place, (moment, time_of_round) in enumerate(times.items()):
        paced = time_of_round.paced
        assert paced is not None
        assert paced.due == due_times[place]
        if moment in missed_rounds:
            assert (time_of_round.missed, time_of_round.seconds) == (True, None)
            continue
        # it was the newest round that was due when it was sent
        assert paced.sent is not None
        assert bisect_right(due_times, paced.sent) == place + 1
        began, ended = model.times[moment]
        assert time_of_round.seconds is not None
        assert time_of_round.seconds >= ended - began - 1e-3
    latency = json.loads((run.folder / "latency.json").read_text(encoding="utf-8"))
    stream = latency["tasks"][PROACTIVE]["stream"]
    assert (stream["measured"], stream["missed"], stream["pace"]) == (1, number, "realtime")
    # the round at 3 s took 4.6 s of the 2 s until the next one; of four, one was missed, too
    assert stream["real_time_factor_p95"]["value"] >= 2.3
    assert stream["answered_in_time"]["value"] <= 0.5

    facts = run.manifest["tasks"][PROACTIVE]
    assert (facts["pace"], facts["asked"], facts["failed"]) == ("realtime", 5, {})
    assert (facts["answered"], facts["missed"]) == (5 - number, number)
    assert run.scores[PROACTIVE]["status"]["missed"] == number
    assert f"({number} of 5 rounds missed)" in printed.out
    assert f"rounds sent in real time (realtime): {number} of 5 missed" in printed.out
    line = lines[5.0]
    assert (line["missed"], line["responses"], line["scores"]["content"]) == (True, [""], 0)

    (missed_in_python,) = result.latency().arrow.column("missed").to_pylist()
    assert missed_in_python == number
    command = request.getfixturevalue("medtasks")
    printed_again = command("score", str(result.path)).stdout
    assert "Streams on the clock" in printed_again
    assert f"{PROACTIVE}: {number} of 5 rounds missed (realtime)" in printed_again

    monkeypatch.delenv("MEDTASKS_PACE")
    whole = medtasks.evaluate(SlowModel(), PROACTIVE, output_path=tmp_path / "unpaced")
    signatures = [other.scores().arrow.column("signature")[0].as_py() for other in (result, whole)]
    with_pace, without_pace = map(parse_signature, signatures)
    assert with_pace.pop("pace") == "realtime"
    assert with_pace.pop("protocol") != without_pace.pop("protocol")
    assert with_pace == without_pace
    reason = "rounds of streams sent in real time instead of without pace"
    assert reason in differences(*signatures)


@pytest.mark.slow
def test_a_stream_in_which_a_server_failed_is_sent_again_from_its_first_round(
    stream_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(stream_data))
    monkeypatch.setenv("MEDTASKS_PACE", "realtime")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    broken = [5.0]

    def answer(text: str) -> tuple[int, dict[str, Any]]:
        if window_end(text) in broken:
            return error(400, "no picture")
        return completion("no_alert")

    with FailingServer(answer) as server:
        arguments = f"model_version=m,base_url={server.url},max_retries=1,num_cpus=4"
        first = Run(run_tasks("async_openai", arguments, [PROACTIVE], tmp_path))
        asked_first = [window_end(text) for text in server.asked]
        broken.clear()
        again = Run(run_tasks("async_openai", arguments, [PROACTIVE], tmp_path))
        asked_again = [window_end(text) for text in server.asked[len(asked_first) :]]

    statuses = [line["status"] for line in first.samples(PROACTIVE)]
    assert statuses.count("failed") == 1
    assert asked_first[0] == asked_again[0] == TIMES[0]
    assert asked_again == sorted(asked_again)
    facts = again.manifest["tasks"][PROACTIVE]
    assert facts["failed"] == {}
    assert facts["answered"] == len(asked_again)
    times = read_times(again.folder)[PROACTIVE]
    assert {time.paced.attempt for time in times if time.paced is not None} == {2}
    assert not list(tmp_path.rglob("*_unfinished"))
