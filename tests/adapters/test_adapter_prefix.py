"""What prompts share is computed once, and answers stay what they were: architectures, streams,
fall-backs, memory.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import architectures
import pytest
import torch
import transformers
from adapter_bench import Bench, questions, texts
from medtasks.adapters import _token_budget as token_budget
from medtasks.adapters._checkpoint import TINY
from packaging.version import Version

Create = Callable[..., Any]


def clinic(bench: Bench) -> list[Any]:
    """Questions about one picture, about three, about none, and a stream whose prompts grow."""
    one = [{**doc, "media": [f"image-{i // 4}.png"]} for i, doc in enumerate(questions(6))]
    three = [{**doc, "media": ["a.png", "b.png", "c.png"]} for doc in questions(2)]
    none = questions(2, images=0)
    stream = [
        {**doc, "media": [f"frame-{k}.png" for k in range(i + 1)]}
        for i, doc in enumerate(questions(3))
    ]
    tasks = {"one": one, "three": three, "none": none, "stream": stream}
    return [request for name, docs in tasks.items() for request in bench.task(name, docs)]


KINDS = ("qwen2_5_vl", "gemma3", "llava_onevision")
"""Positions in three dimensions, a sliding window, pictures of several tiles: the other
architectures combine these.
"""
OTHERS = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in architectures.ARCHITECTURES
    if name not in KINDS
]


@pytest.mark.parametrize("name", [*KINDS, *OTHERS, pytest.param("tiny", marks=pytest.mark.slow)])
def test_sharing_changes_no_answer(name: str, bench: Bench, vlm: Create, tmp_path: Path) -> None:
    requests = clinic(bench)
    path = TINY if name == "tiny" else architectures.build(name, tmp_path, seed=3)
    given = {"pretrained": str(path), "max_new_tokens": 8}
    alone = texts(vlm(**given, share_prefix=False, batch_size=1).replies(requests))
    model = vlm(**given, batch_size=5)

    assert texts(model.replies(requests)) == alone
    assert len(set(alone)) > len(alone) // 2
    shares = model.describe()["share_prefix"]
    if name == "gemma3" and Version(transformers.__version__) < Version("5.21"):
        assert str(shares).startswith(
            "scores differ"
        )  # before 5.21 a cache changed them, and we noticed
    else:
        assert shares is True


def test_the_vision_tower_sees_each_picture_once(bench: Bench, vlm: Create) -> None:
    requests = bench.task("t", [{**doc, "media": ["same.png"]} for doc in questions(12)])
    seen, computed = [], []
    for share in (True, False):
        model = vlm(share_prefix=share, batch_size=12)
        grids: list[int] = []

        def look(_: Any, __: Any, given: dict[str, Any], grids: list[int] = grids) -> None:
            grids.append(len(given["grid_thw"]))

        model._model.model.visual.register_forward_pre_hook(look, with_kwargs=True)
        model.replies(requests)
        seen.append(sum(grids))
        computed.append(model.describe()["usage"]["prompt_tokens_computed"])

    assert seen == [
        1 + 2,
        12,
    ]  # and the two prompts of the comparison with computing from the start
    assert computed[0] < 0.7 * computed[1]  # the pictures of the tiny checkpoint have few tokens


def test_nothing_is_kept_for_gradients(bench: Bench, vlm: Create) -> None:
    """They would keep every intermediate tensor of the pictures and prefixes that prompts share."""
    model = vlm()
    model.replies(bench.task("t", [{**doc, "media": ["same.png"]} for doc in questions(3)]))

    assert model.describe()["usage"]["prompt_tokens_reused"] > 0
    assert not [
        one for one in gc.get_objects() if type(one) is torch.Tensor and one.grad_fn is not None
    ]


def test_a_stream_goes_on_from_the_frames_before(bench: Bench, vlm: Create) -> None:
    rounds = [
        {
            "sample_id": f"r{i}",
            "media": [f"frame-{k}.png" for k in range(i + 1)],
            "question": "Alert now?",
        }
        for i in range(5)
    ]
    requests = bench.task("stream", rounds)
    model = vlm(batch_size=1)
    answers = texts(model.replies(requests))
    usage = model.describe()["usage"]

    assert answers == texts(vlm(batch_size=1, share_prefix=False).replies(requests))
    assert usage["media_reused"] >= 0 + 1 + 2 + 3 + 4
    assert usage["prompt_tokens_reused"] > usage["prompt_tokens_computed"]


def test_a_class_that_takes_no_encoded_media_falls_back(
    bench: Bench, vlm: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import Qwen2_5_VLForConditionalGeneration

    requests = bench.task("t", questions(4))
    expected = texts(vlm().replies(requests))
    monkeypatch.setattr(
        Qwen2_5_VLForConditionalGeneration, "_supports_mm_encoder_outputs", lambda _: False
    )
    model = vlm()

    assert texts(model.replies(requests)) == expected
    assert model.describe()["share_prefix"] == "its class takes no encoded media"


def test_a_model_whose_scores_change_falls_back(
    bench: Bench, vlm: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a class does, for example, that takes positions differently once there is a cache."""
    requests = bench.task("t", questions(4))
    expected = texts(vlm().replies(requests))
    model = vlm()
    shared = model._shared
    right = shared.inputs

    def elsewhere(prompts: Any, padding: int) -> Any:
        inputs, reused = right(prompts, padding)
        return {**inputs, "position_ids": inputs["position_ids"] + 100}, reused

    monkeypatch.setattr(shared, "inputs", elsewhere)

    assert texts(model.replies(requests)) == expected
    assert model.describe()["share_prefix"].startswith("scores differ by ")


def sizes_of_batches(monkeypatch: pytest.MonkeyPatch, most: int = 99) -> list[int]:
    """The sizes of batches that transformers generates; above ``most`` rows it is out of memory."""
    from transformers import Qwen2_5_VLForConditionalGeneration

    sizes: list[int] = []
    generate = Qwen2_5_VLForConditionalGeneration.generate

    def counted(model: Any, *args: Any, **inputs: Any) -> Any:
        rows = len(inputs["input_ids"])
        sizes.append(rows)
        if rows > most:
            raise torch.OutOfMemoryError
        return generate(model, *args, **inputs)

    monkeypatch.setattr(Qwen2_5_VLForConditionalGeneration, "generate", counted)
    return sizes


def test_a_batch_that_runs_out_of_memory_is_halved_and_goes_on(
    bench: Bench, vlm: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = bench.task("t", questions(12))
    expected = texts(vlm().replies(requests))
    model = vlm(batch_size=8)
    sizes = sizes_of_batches(monkeypatch, most=3)

    assert texts(model.replies(requests)) == expected
    too_large = [size for size in sizes if size > 3]
    assert too_large == [8, 4]
    assert max(sizes[sizes.index(4) + 1 :]) <= 3  # later batches are small from the beginning
    sizes.clear()
    monkeypatch.setattr(token_budget, "GROW_AFTER", 3)
    model.replies(bench.task("more", questions(12)))
    assert max(sizes) > 3  # after so many batches, larger ones are tried again


def test_a_batch_keeps_within_its_tokens_and_a_single_row_always_goes(
    bench: Bench, vlm: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = bench.task("t", questions(6))
    model = vlm(batch_size=6)
    longest = max(reply.input_tokens for reply in model.replies(requests)) + 12
    sizes = sizes_of_batches(monkeypatch)
    largest = []
    for tokens in (1, longest, 2 * longest):
        model._budget.tokens = tokens
        sizes.clear()
        model.replies(requests)
        largest.append(max(sizes))

    assert largest == [1, 1, 2]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            torch.OutOfMemoryError(),
            r"The device ran out of memory on a single sample of \d+ tokens, its answer included",
        ),
        (
            RuntimeError("shapes cannot be multiplied"),
            "RuntimeError: shapes",
        ),  # is not a lack of memory
    ],
)
def test_a_sample_too_large_says_how_large_it_is(
    error: Exception, reason: str, bench: Bench, vlm: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import Qwen2_5_VLForConditionalGeneration

    def generate(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Qwen2_5_VLForConditionalGeneration, "generate", generate)
    (reply,) = vlm(share_prefix=False).replies(bench.task("t", questions(1)))
    assert re.match(reason, reply.failed)
