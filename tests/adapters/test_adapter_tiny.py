"""The tiny checkpoint: small, deterministic, an ordinary directory for transformers."""

from __future__ import annotations

from pathlib import Path

from training.tiny import build_tiny_vlm


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_weights(tiny: Path, tmp_path: Path) -> None:
    again = contents(build_tiny_vlm(tmp_path / "again"))
    other = contents(build_tiny_vlm(tmp_path / "other", seed=1))

    assert again == contents(tiny)
    assert sum(map(len, again.values())) < 5 * 2**20
    assert again.keys() == other.keys()
    assert [name for name in again if again[name] != other[name]] == ["model.safetensors"]


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
