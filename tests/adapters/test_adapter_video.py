"""Frames of a video as a list of images, or as one native video, through a real (tiny) model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapter_bench import Bench, draw, questions, texts
from medtasks.adapters._generating import GeneratingArguments, read_messages
from medtasks.adapters._reading import video_inputs

Create = Callable[..., Any]
ANY = GeneratingArguments(pretrained="any")


def timed(doc: dict[str, Any]) -> list[dict[str, Any]]:
    """Frames two seconds apart and one at the end, then the question."""
    times = [0.001, 2.001, 4.001, 5.5][: doc.get("shown", 4)]
    frames = [{"type": "image", "url": draw(f"{doc['sample_id']}-{time}"), "time": time} for time in times]
    return [{"role": "user", "content": [*frames, {"type": "text", "text": doc["question"]}]}]


def test_by_default_frames_are_images(bench: Bench, vlm: Create) -> None:
    docs = [{**questions(1)[0], "shown": number, "question": "What?"} for number in (1, 4)]
    one, four = vlm().replies(bench.task("frames", docs, to_messages=timed))
    assert four.input_tokens == one.input_tokens + 3 * (36 + 2)


def test_a_native_video_costs_half_the_tokens_and_answers_by_its_frames(bench: Bench, vlm: Create) -> None:
    docs = [{**doc, "question": "What?"} for doc in questions(6)]
    requests = bench.task("frames", docs, to_messages=timed)
    model = vlm(video="native")
    answers = model.replies(requests)

    # this architecture merges two frames into one step: 4 frames cost 2 x 36 tokens, a start and an end
    frames = vlm().replies(requests)
    assert answers[0].input_tokens == frames[0].input_tokens - 2 * 36 - 6
    assert len(set(texts(answers))) > 3
    assert model.describe()["video"] == "native"


def test_batches_do_not_change_what_is_said_of_videos(bench: Bench, vlm: Create) -> None:
    docs = [{**doc, "shown": 1 + number % 4} for number, doc in enumerate(questions(9))]
    requests = bench.task("frames", docs, to_messages=timed) + bench.task("still", questions(3))

    alone = vlm(video="native", batch_size=1).replies(requests)
    assert texts(vlm(video="native", batch_size=4).replies(requests)) == texts(alone)


def test_times_reach_the_processor_in_milliseconds() -> None:
    doc = {"sample_id": "s", "question": "What?"}
    talk = read_messages(timed(doc), ANY, native_video=True)
    inputs = video_inputs(talk.videos)

    assert talk.images == []
    assert [part["type"] for part in talk.messages[0]["content"]] == ["video", "text"]
    (metadata,) = inputs["video_metadata"]
    assert [index / metadata.fps for index in metadata.frames_indices] == [0.001, 2.001, 4.001, 5.5]
    assert inputs["do_sample_frames"] is False


def test_a_single_frame_and_images_without_times_stay_images() -> None:
    lone = read_messages(timed({"sample_id": "s", "question": "?", "shown": 1}), ANY, native_video=True)
    assert (len(lone.images), lone.videos) == (1, [])
    stills = [{"role": "user", "content": [{"type": "image", "url": draw(name)} for name in "abc"]}]
    assert len(read_messages(stills, ANY, native_video=True).images) == 3
