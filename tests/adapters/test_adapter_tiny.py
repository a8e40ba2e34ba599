"""The tiny checkpoint: small, deterministic, an ordinary directory for transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from medtasks.errors import UsageError
from training.tiny import TinyConfig, build_tiny_vlm, tiny_checkpoint


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_weights(tiny: Path, tmp_path: Path) -> None:
    again = contents(build_tiny_vlm(tmp_path / "again"))
    other = contents(build_tiny_vlm(tmp_path / "other", seed=1))

    assert again == contents(tiny)
    assert again.keys() == other.keys()
    assert [name for name in again if again[name] != other[name]] == ["model.safetensors"]


def test_it_is_small(tiny: Path) -> None:
    assert sum(map(len, contents(tiny).values())) < 5 * 2**20


def test_building_leaves_global_randomness_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    build_tiny_vlm(tmp_path)

    assert torch.equal(torch.rand(3), expected)


def test_the_tokenizer_keeps_any_text(tiny: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    text = "Ödem im T3 → T4?\n\n  «5 mm»\t漢字 🩺 don't, isn't . , \u200b\x07"

    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_an_image_becomes_a_few_dozen_tokens(tiny: Path) -> None:
    from adapter_bench import draw
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny)
    messages = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]
    text = processor.apply_chat_template(messages, add_generation_prompt=True)
    inputs = processor(text=[text], images=[draw("a")], return_tensors="pt")

    assert text.startswith("<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>What is it?<|im_end|>")
    assert text.endswith("<|im_start|>assistant\n")
    assert (inputs["input_ids"] == processor.image_token_id).sum() == 36


def test_the_cache_is_used_again_and_holds_nothing_half_built(tiny: Path, cache: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tiny.iterdir()}

    assert tiny_checkpoint() == tiny
    assert {path: path.stat().st_mtime_ns for path in tiny.iterdir()} == before
    assert tiny in cache.iterdir()
    assert not [path for path in cache.iterdir() if path.name.startswith(".")]


def test_shapes_can_be_chosen(tmp_path: Path) -> None:
    from transformers import AutoConfig

    shape = TinyConfig(vocab_size=2048, hidden_size=96, heads=6, kv_heads=3, layers=3, vision_depth=5, dtype="bfloat16")
    config = AutoConfig.from_pretrained(build_tiny_vlm(tmp_path, config=shape))

    assert config.dtype == torch.bfloat16
    assert (config.text_config.vocab_size, config.text_config.hidden_size) == (2048, 96)
    assert config.vision_config.fullatt_block_indexes == [1, 3, 4]


def test_an_impossible_shape_is_refused() -> None:
    with pytest.raises(UsageError, match="hidden_size 100 over heads 3"):
        TinyConfig(hidden_size=100, heads=3)
