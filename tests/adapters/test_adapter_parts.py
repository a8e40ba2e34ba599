"""The small pure parts of the VLM adapter: pixel limits, stop strings, settings, batches."""

from __future__ import annotations

from typing import Any

import pytest
from adapter_bench import Bench
from hypothesis import given
from hypothesis import strategies as st
from medtasks.adapters._answer_text import cut_at_stop, ends_of_turn
from medtasks.adapters._messages import fit_pixels
from medtasks.adapters._requests import plan_batches, read_requests, sample_seed
from medtasks.adapters._settings import GenerationSettings, read_settings
from PIL import Image
from transformers import AddedToken

sides, limits = st.integers(1, 400), st.integers(1, 50_000)


@given(width=sides, height=sides, limit=limits)
def test_pictures_are_scaled_to_their_limits_and_keep_their_shape(
    width: int, height: int, limit: int
) -> None:
    image, pixels = Image.new("L", (width, height)), width * height
    fitted, grown = fit_pixels(image, None, limit), fit_pixels(image, limit, None)

    assert fitted.width * fitted.height <= limit
    assert grown.width * grown.height >= limit or (pixels >= limit and grown is image)
    assert fitted is image or pixels > limit
    for scaled in {id(one): one for one in (fitted, grown)}.values():
        scale = (
            (scaled.width * scaled.height / pixels) ** 0.5
            if scaled is image
            else (limit / pixels) ** 0.5
        )
        assert abs(scaled.width - width * scale) < 1 or min(scaled.size) == 1
        assert abs(scaled.height - height * scale) < 1 or min(scaled.size) == 1


def test_defaults_are_greedy_with_512_tokens() -> None:
    assert read_settings({}) == GenerationSettings(
        max_new_tokens=512, temperature=0, num_beams=1, until=()
    )
    assert not read_settings({"temperature": 0, "top_p": 0.9}).sampling
    assert read_settings({"do_sample": True}).temperature == 1
    assert read_settings({"temperature": 0.7}).sampling
    assert read_settings({"max_new_tokens": 9}, max_new_tokens=3).max_new_tokens == 3
    assert read_settings({"until": "\n"}).until == ("\n",)
    assert read_settings({"until": ["", "b"]}).until == ("b",)
    assert cut_at_stop("a b c", ("c", "b")) == "a "


def test_seeds_differ_by_each_of_their_parts() -> None:
    named = {
        sample_seed(*key)
        for key in [(0, "a", 0), (1, "a", 0), (0, "b", 0), (0, "a", 1), (0, "a0", 0)]
    }

    assert len(named) == 5
    assert sample_seed(0, "a", 0) == 7_756_895_851_570_414_870


def test_batches_keep_settings_apart_and_shared_images_together(bench: Bench) -> None:
    docs = [
        {"sample_id": f"s{i}", "media": [f"{i % 3}.png"], "question": "?" * (9 - i)}
        for i in range(7)
    ]
    requests = bench.task("long", docs, max_new_tokens=9) + bench.task(
        "short", docs[:2], max_new_tokens=3
    )
    requests += bench.task("drawn", docs[:2], temperature=1.0)
    read = read_requests(requests[::-1], bench.task_dict)

    batches = [
        (
            batch[0].settings.get("max_new_tokens"),
            [(request.task, request.sample_id) for request in batch],
        )
        for batch in plan_batches(read, size=3)
    ]

    assert batches == [
        (3, [("short", "s0"), ("short", "s1")]),
        (9, [("long", "s0"), ("long", "s3"), ("long", "s6")]),
        (9, [("long", "s1"), ("long", "s4"), ("long", "s2")]),
        (9, [("long", "s5")]),
        (None, [("drawn", "s0")]),
        (None, [("drawn", "s1")]),
    ]


def test_documents_without_ids_are_named_after_task_and_place(bench: Bench) -> None:
    documents = [{"question": "a"}, {"question": "b", "choices": ["yes", "no"]}]
    [first, second] = read_requests(bench.task("foreign", documents), bench.task_dict)

    assert (first.sample_id, second.sample_id) == ("foreign-0", "foreign-1")
    assert first.media != second.media


class Tokenizer:
    """The two properties of a tokenizer that decide what ends an answer."""

    def __init__(self, *special: str, plain: str = "</s>", pad: int | None = None) -> None:
        texts = [AddedToken(text, special=True) for text in special] + [
            AddedToken(plain, special=False)
        ]
        self.added_tokens_decoder = dict(enumerate(texts))
        self.pad_token_id = pad


@pytest.mark.parametrize(
    ("tokenizer", "own", "ends"),
    [
        # a fine-tune that names only its base model's end of text, whose template ends turns with
        # <|im_end|>
        (Tokenizer("<|endoftext|>", "<|im_start|>", "<|im_end|>"), 0, [0, 2]),
        (
            Tokenizer("<|im_end|>", "<|endoftext|>", pad=1),
            [0],
            [0],
        ),  # padding ends an answer only if the checkpoint
        (Tokenizer("<|im_end|>", "<|endoftext|>", pad=1), [0, 1], [0, 1]),  # says so
        (Tokenizer("<bos>", "<eos>", "<end_of_turn>"), 1, [1, 2]),
        (
            Tokenizer("<|channel|>", "<|end|>"),
            7,
            [7],
        ),  # ends a message of reasoning, before the answer
        (object(), 5, [5]),
        (object(), None, []),
    ],
)
def test_an_answer_ends_at_the_end_of_its_turn(tokenizer: Any, own: Any, ends: list[int]) -> None:
    assert ends_of_turn(tokenizer, own) == ends
