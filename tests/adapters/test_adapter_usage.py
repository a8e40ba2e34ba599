"""Tokens and times of answers, against counts made with the checkpoint's processor alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapter_bench import Bench, questions, show_and_ask

Create = Callable[..., Any]


def tokens(tiny: Path, docs: list[dict[str, Any]]) -> list[list[int]]:
    """Each document's prompt as the processor encodes it, placeholders of pictures expanded."""
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny)
    found = []
    for doc in docs:
        (message,) = show_and_ask(doc)
        images = [part["url"] for part in message["content"] if part["type"] == "image"]
        parts = [{"type": "image"} if part["type"] == "image" else part for part in message["content"]]
        text = processor.apply_chat_template([{**message, "content": parts}], add_generation_prompt=True)
        found.append(processor(text=[text], images=images or None)["input_ids"][0])
    return [list(map(int, one)) for one in found]


def shared(prompts: list[list[int]]) -> int:
    """Number of tokens that all prompts begin with, at most all but the last."""
    alike = 0
    for column in zip(*prompts, strict=False):
        if len(set(column)) > 1:
            break
        alike += 1
    return min(alike, min(map(len, prompts)) - 1)


def placeholder(tiny: Path) -> int:
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(tiny).image_token_id)


def test_tokens_are_those_of_the_processor(bench: Bench, vlm: Create, tiny: Path) -> None:
    docs = [{**doc, "media": ["same.png"]} for doc in questions(6)]
    answers = vlm(batch_size=6).replies(bench.task("t", docs))
    expected = tokens(tiny, docs)
    assert [one.input_tokens for one in answers] == [len(one) for one in expected]
    assert [one.vision_tokens for one in answers] == [one.count(placeholder(tiny)) for one in expected]
    assert answers[0].vision_tokens > 0
    # the comparison with computing from the start has left the prefix on the device, so all rows reuse it
    assert [one.reused_tokens for one in answers] == [shared(expected)] * 6
    assert all(one.media_seconds > 0 for one in answers)


def test_nothing_is_reused_or_seen_where_nothing_can_be(bench: Bench, vlm: Create) -> None:
    alone = vlm(share_prefix=False).replies(bench.task("t", questions(2)))
    assert [one.reused_tokens for one in alone] == [0, 0]
    text = vlm().replies(bench.task("text", questions(2, images=0)))
    assert [(one.vision_tokens, one.media_seconds) for one in text] == [(0, 0.0)] * 2


def test_a_class_whose_placeholders_are_unknown_has_no_count(
    bench: Bench, vlm: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = vlm(share_prefix=False)
    monkeypatch.setattr(model._answering._reader, "_placeholders", [])
    (answer,) = model.replies(bench.task("t", questions(1)))
    assert answer.vision_tokens is None
