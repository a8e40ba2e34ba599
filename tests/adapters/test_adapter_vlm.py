"""The VLM adapter answers each request on its own terms, whatever stands beside it in the batch."""

from __future__ import annotations

import json
import random
import shutil
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from adapter_bench import Bench, draw, questions, show_and_ask, texts
from loguru import logger
from medtasks.adapters._messages import media_in, read_messages
from medtasks.adapters._reading import video_inputs
from medtasks.adapters._settings import GeneratingArguments
from medtasks.adapters.baseline import MedtasksBaseline
from medtasks.adapters.replay import MedtasksReplay

Create = Callable[..., Any]


def aloud(doc: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": doc["question"].upper()}]}]


def test_neither_batches_nor_the_order_of_requests_change_greedy_answers(
    bench: Bench, vlm: Create
) -> None:
    requests = bench.task("one", questions(7)) + bench.task("five", questions(3, images=5))
    requests += bench.task("aloud", questions(2), to_messages=aloud)
    alone = vlm(batch_size=1).replies(requests)
    shuffled = random.Random(3).sample(range(12), 12)
    together = vlm(batch_size=4).replies([requests[place] for place in shuffled])

    for place, answer in zip(shuffled, together, strict=True):
        assert replace(answer, reused_tokens=None) == replace(alone[place], reused_tokens=None)
    assert len(set(texts(alone))) > 8, (
        "the questions must have different answers for this test to see anything"
    )


def test_tokens_are_those_of_the_processor(bench: Bench, vlm: Create, tiny: Path) -> None:
    from transformers import AutoConfig, AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny)

    def encoded(doc: dict[str, Any]) -> list[int]:
        """The prompt as the checkpoint's processor encodes it, placeholders of pictures
        expanded.
        """
        (message,) = show_and_ask(doc)
        images = [part["url"] for part in message["content"] if part["type"] == "image"]
        parts = [
            {"type": "image"} if part["type"] == "image" else part for part in message["content"]
        ]
        text = processor.apply_chat_template(
            [{**message, "content": parts}], add_generation_prompt=True
        )
        return list(map(int, processor(text=[text], images=images or None)["input_ids"][0]))

    placeholder = int(AutoConfig.from_pretrained(tiny).image_token_id)
    docs = [{**doc, "media": ["same.png"]} for doc in questions(6)]
    answers = vlm(batch_size=6).replies(bench.task("same", docs))
    expected = [encoded(doc) for doc in docs]
    common = next(
        place for place, column in enumerate(zip(*expected, strict=False)) if len(set(column)) > 1
    )
    assert [one.input_tokens for one in answers] == [len(one) for one in expected]
    assert [one.vision_tokens for one in answers] == [one.count(placeholder) for one in expected]
    # the comparison with computing from the start has left the prefix on the device, so all rows
    # reuse it
    assert [one.reused_tokens for one in answers] == [common] * 6
    assert all(one.media_seconds > 0 for one in answers)

    several = [{**questions(1, images=count)[0], "question": "Which?"} for count in (0, 1, 5)]
    model = vlm(batch_size=3, share_prefix=False)
    answers = model.replies(bench.task("several", several))
    assert [one.input_tokens for one in answers] == [len(encoded(doc)) for doc in several]
    assert [(one.vision_tokens, one.reused_tokens) for one in answers] == [
        (0, 0),
        (36, 0),
        (5 * 36, 0),
    ]
    assert answers[0].media_seconds == 0
    model._reader._placeholders = []  # of a class whose placeholders are unknown
    assert model.replies(bench.task("several", several))[1].vision_tokens is None


def test_prompts_without_pictures_are_no_batch_with_others(bench: Bench, vlm: Create) -> None:
    first = [
        {**doc, "sample_id": f"a{number}"} for number, doc in enumerate(questions(2, images=0))
    ]
    requests = bench.task("none", first) + bench.task("one", questions(2))
    together = vlm(batch_size=4, share_prefix=False).replies(requests)

    assert together == vlm(batch_size=1, share_prefix=False).replies(requests)


def test_images_live_no_longer_than_their_batch(bench: Bench, vlm: Create) -> None:
    alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
    most = 0

    def watched(doc: dict[str, Any]) -> list[dict[str, Any]]:
        nonlocal most
        messages = show_and_ask(doc)
        alive.update(
            {id(part["url"]): part["url"] for part in messages[0]["content"] if "url" in part}
        )
        most = max(most, len(alive))
        return messages

    vlm(batch_size=2).replies(bench.task("many", questions(8), to_messages=watched))

    assert most <= 4  # this batch and, at most, the one just finished


def test_padding_requests_are_answered_without_looking(
    bench: Bench, vlm: Create, tmp_path: Path
) -> None:
    def untouchable(doc: dict[str, Any]) -> list[dict[str, Any]]:
        raise AssertionError(doc)

    [request] = bench.task("padding", questions(1), to_messages=untouchable)
    request.metadata["__padding_only__"] = True
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_text('{"sample_id": "elsewhere", "response": "x"}\n')
    for model in (vlm(), MedtasksBaseline(), MedtasksReplay(path=str(recorded))):
        model.task_dict = bench.task_dict
        assert texts(model.replies([request])) == [""]


def test_an_answer_ends_before_its_first_stop_string(bench: Bench, vlm: Create) -> None:
    docs = questions(6)
    model = vlm(batch_size=3)
    free = texts(model.replies(bench.task("free", docs, until=[])))
    stop = free[0][3:5]
    cut = model.replies(bench.task("cut", docs, until=[stop, "\n\n"]))

    assert stop in free[0]
    assert texts(cut) == [text.split(stop)[0] for text in free]
    assert cut[0].finish == "stop"


def test_the_adapter_limit_wins_over_the_task_and_what_it_cuts_off_is_marked(
    bench: Bench, vlm: Create
) -> None:
    requests = bench.task("short", questions(5), max_new_tokens=3)
    of_task, of_adapter = (vlm(max_new_tokens=limit).replies(requests) for limit in (None, 2))

    assert [max(one.output_tokens for one in results) for results in (of_task, of_adapter)] == [
        3,
        2,
    ]
    assert {one.finish for one in of_adapter if one.output_tokens < 2} <= {"stop"}
    assert "length" in [one.finish for one in of_adapter]


def test_more_pixels_are_scaled_away_before_the_processor(bench: Bench, vlm: Create) -> None:
    requests = bench.task("large", questions(1))
    full, small = (
        vlm(max_pixels=pixels).replies(requests)[0].input_tokens for pixels in (None, 112 * 112)
    )

    assert full - small == 36 - 16


def test_samples_are_drawn_by_seed_id_and_repeat_alone(bench: Bench, vlm: Create) -> None:
    requests = bench.task("draws", questions(4), repeats=3, temperature=1.5, top_p=0.9)
    rows = texts(vlm(batch_size=4).replies(requests))
    by_sample = [rows[start : start + 3] for start in range(0, 12, 3)]
    shard = texts(vlm(batch_size=1).replies(requests[6:]))

    assert shard == rows[6:]
    assert all(len(set(answers)) > 1 for answers in by_sample), "repeats must be different draws"
    assert texts(vlm(seed=1).replies(requests)) != rows


def test_do_sample_false_is_greedy_and_says_what_it_ignores(bench: Bench, vlm: Create) -> None:
    docs = questions(3)
    greedy = bench.task("greedy", docs, temperature=0)
    off = bench.task("off", docs, do_sample=False, temperature=0.8, image_aspect_ratio="pad")
    model = vlm(batch_size=2)
    warnings: list[str] = []
    sink = logger.add(warnings.append, level="WARNING", format="{message}")
    try:
        assert texts(model.replies(greedy)) == texts(model.replies(off))
    finally:
        logger.remove(sink)
    ignored = [line for line in warnings if "without effect" in line]
    assert ignored == [
        "medtasks_vlm: generation settings without effect: image_aspect_ratio, temperature\n"
    ]
    assert model.describe()["ignored_generation_settings"] == ["image_aspect_ratio", "temperature"]


@pytest.fixture
def opinionated(tiny: Path, tmp_path: Path) -> str:
    """The tiny checkpoint with sampling settings of its own, of the kind that published checkpoints
    ship.
    """
    directory = shutil.copytree(tiny, tmp_path / "opinionated")
    path = directory / "generation_config.json"
    own = {"do_sample": True, "temperature": 1e-6, "top_k": 1, "min_p": 0.9, "max_length": 20}
    path.write_text(json.dumps({**json.loads(path.read_text()), **own}))
    return str(directory)


def test_a_checkpoints_own_sampling_settings_never_count(
    bench: Bench, vlm: Create, opinionated: str
) -> None:
    greedy = bench.task("greedy", questions(3))
    drawn = bench.task("drawn", questions(3), temperature=1.5)

    for requests in (greedy, drawn):
        assert vlm(pretrained=opinionated).replies(requests) == vlm().replies(requests)


def test_greedy_runs_warn_of_nothing(
    bench: Bench,
    vlm: Create,
    opinionated: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    from transformers.utils import logging

    requests = bench.task(
        "quiet", questions(2), temperature=0, do_sample=False, top_p=None, num_beams=1, until=[]
    )
    model = vlm(pretrained=opinionated)
    capfd.readouterr()
    logging.enable_propagation()
    try:
        model.replies(requests)
    finally:
        logging.disable_propagation()

    assert caplog.messages == []
    printed = [line for line in capfd.readouterr().err.splitlines() if line]
    assert all(
        line.startswith("medtasks: ") and "/2 [" in line for line in printed
    )  # the progress bar


def test_a_system_prompt_replaces_the_tasks_own(bench: Bench, vlm: Create) -> None:
    def with_system(doc: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"role": "system", "content": doc["system"]}, *show_and_ask(doc)]

    docs = [{**doc, "system": "One sentence."} for doc in questions(1)]
    requests = bench.task("system", docs, to_messages=with_system)
    [task_own], [longer] = (
        vlm(system_prompt=p).replies(requests) for p in (None, "One letter. " * 9)
    )
    [same] = vlm(system_prompt="One sentence.").replies(requests)

    assert longer.input_tokens > task_own.input_tokens
    assert same == task_own


def test_a_lora_adapter_changes_the_answers(
    bench: Bench, vlm: Create, tiny: Path, tmp_path: Path
) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForImageTextToText

    base = AutoModelForImageTextToText.from_pretrained(tiny)
    adapted = get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.fill_(0.2)
    adapted.save_pretrained(tmp_path)
    requests = bench.task("lora", questions(4))
    model = vlm(peft=str(tmp_path))

    assert texts(model.replies(requests)) != texts(vlm().replies(requests))
    assert model.describe()["peft"]["fingerprint"]


def test_the_description_is_json_and_does_not_depend_on_where_the_files_lie(
    vlm: Create, tiny: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(tiny, tmp_path / "moved")
    (moved / "README.md").write_text("Not part of the model.")
    here, there = vlm().describe(), vlm(pretrained=str(moved)).describe()
    (moved / "generation_config.json").write_text('{"eos_token_id": 2, "pad_token_id": 0}')

    assert json.loads(json.dumps(here)) == here
    assert here["architecture"] == "Qwen2_5_VLForConditionalGeneration"
    assert (here["device"], here["dtype"], here["parameters"]) == ("cpu", "float32", 288992)
    assert here["fingerprint"] == there["fingerprint"]
    assert vlm(pretrained=str(moved)).describe()["fingerprint"] != here["fingerprint"]


def test_the_harness_creates_it_from_a_string_and_frees_it(bench: Bench, vlm: Create) -> None:  # noqa: ARG001
    from medtasks.adapters.vlm import MedtasksVLM

    harness = {"batch_size": "1", "max_batch_size": None, "device": "cpu"}
    arguments = "pretrained=tiny,batch_size=4,max_pixels=432000,dtype=bfloat16,max_new_tokens=4"
    model = MedtasksVLM.create_from_arg_string(arguments, harness)
    model.task_dict = bench.task_dict

    assert (model.batch_size, model.rank, model.world_size, str(model.device)) == (4, 0, 1, "cpu")
    assert not model.is_simple
    assert len(model.replies(bench.task("half", questions(1)))) == 1
    before = model.describe()
    assert (before["max_pixels"], before["pretrained"], before["dtype"]) == (
        432000,
        "tiny",
        "bfloat16",
    )
    model.clean()
    assert model.describe() == before


def test_an_image_can_be_a_file(bench: Bench, vlm: Create, tmp_path: Path) -> None:
    draw("image-0-0.png").save(tmp_path / "image.png")

    def from_file(doc: dict[str, Any]) -> list[dict[str, Any]]:
        (message,) = show_and_ask(doc)
        image, text = message["content"]
        return [{**message, "content": [{**image, "url": str(tmp_path / "image.png")}, text]}]

    docs, model = questions(1), vlm()
    from_disk = model.replies(bench.task("file", docs, to_messages=from_file))
    assert from_disk == model.replies(bench.task("drawn", docs))


def timed(doc: dict[str, Any]) -> list[dict[str, Any]]:
    """Frames two seconds apart and one at the end, then the question."""
    times = [0.001, 2.001, 4.001, 5.5][: doc.get("shown", 4)]
    frames = [
        {"type": "image", "url": draw(f"{doc['sample_id']}-{time}"), "time": time} for time in times
    ]
    return [{"role": "user", "content": [*frames, {"type": "text", "text": doc["question"]}]}]


def test_a_native_video_costs_half_the_tokens_and_answers_by_its_frames(
    bench: Bench, vlm: Create
) -> None:
    docs = [
        {**doc, "shown": 1 + number % 4, "question": "What?"}
        for number, doc in enumerate(questions(9))
    ]
    requests = bench.task("frames", docs, to_messages=timed) + bench.task("still", questions(3))
    model = vlm(video="native", batch_size=4)
    answers, frames = model.replies(requests), vlm().replies(requests)

    # this architecture merges two frames into one step: 4 frames cost 2 x 36 tokens, a start and an
    # end
    assert answers[3].input_tokens == frames[3].input_tokens - 2 * 36 - 6
    assert [one.input_tokens for one in answers[8:]] == [
        one.input_tokens for one in frames[8:]
    ]  # no videos
    assert len(set(texts(answers))) > 5
    assert model.describe()["video"] == "native"
    assert texts(answers) == texts(vlm(video="native", batch_size=1).replies(requests))


def test_times_reach_the_processor_in_milliseconds() -> None:
    given = GeneratingArguments(pretrained="any")
    talk = read_messages(timed({"sample_id": "s", "question": "What?"}), given, native_video=True)
    inputs = video_inputs(media_in(talk, "video"))

    assert [part["type"] for part in talk[0]["content"]] == ["video", "text"]
    (metadata,) = inputs["video_metadata"]
    assert [index / metadata.fps for index in metadata.frames_indices] == [0.001, 2.001, 4.001, 5.5]
    assert inputs["do_sample_frames"] is False
