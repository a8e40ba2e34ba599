"""A Qwen2.5-VL-architecture checkpoint with random weights, built on demand and never committed.

With it the tests run real multimodal inference offline: the files are an ordinary transformers
checkpoint directory. :class:`TinyConfig` also describes models of realistic size, so that a
benchmark can time real shapes without real weights. Not installed: only tests and ``performance/``
use it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.replacement import temporary_beside
from medtasks.metrics.learned.checkpoints import no_progress_bars

from .tiny_tokenizer import CHAT_TEMPLATE, IMAGE_TOKEN, VIDEO_TOKEN, train_tokenizer

RECIPE = 2  # raise it whenever the files that build_tiny_vlm writes change


@dataclass(frozen=True)
class TinyConfig:
    """Shapes of the checkpoint; the defaults are the tiny one's.

    ``vocab_size`` is the number of embedding rows (the tokenizer has at most 1,024 entries),
    ``max_pixels`` and ``min_pixels`` are pixels per image after resizing (one token covers ``28 *
    28`` pixels), and ``end_gain`` makes the end-of-turn token more likely, since random weights
    alone would hardly ever stop.
    """

    vocab_size: int = 1024
    hidden_size: int = 64
    intermediate_size: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    vision_hidden_size: int = 32
    vision_intermediate_size: int = 64
    vision_depth: int = 2
    vision_heads: int = 2
    min_pixels: int = 56 * 56
    max_pixels: int = 36 * 28 * 28
    end_gain: float = 4.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.hidden_size % self.heads or (self.hidden_size // self.heads) % 4:
            raise UsageError(
                f"TinyConfig: hidden_size {self.hidden_size} over heads {self.heads} must give a "
                f"multiple of 4."
            )
        if self.vocab_size < 512:
            raise UsageError(
                f"TinyConfig: vocab_size is {self.vocab_size}, but bytes and specials need 512 or "
                f"more."
            )


TOKENIZER_ENTRIES = 1024


def build_tiny_vlm(
    directory: str | os.PathLike[str], seed: int = 0, config: TinyConfig | None = None
) -> Path:
    """Write a random-weight Qwen2.5-VL-architecture checkpoint into ``directory`` and return it.

    The weights come from their own generator seeded with ``seed``; the global random state does not
    change. The same library versions give the same bytes.
    """
    import torch
    from transformers import GenerationConfig, Qwen2_5_VLForConditionalGeneration

    shape = config or TinyConfig()
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer(min(TOKENIZER_ENTRIES, shape.vocab_size))
    tokenizer.chat_template = CHAT_TEMPLATE
    with torch.random.fork_rng(devices=[]):
        before = torch.get_default_dtype()
        torch.set_default_dtype(getattr(torch, shape.dtype))
        try:
            model = Qwen2_5_VLForConditionalGeneration(_model_config(shape, tokenizer))
        finally:
            torch.set_default_dtype(before)
    _fill(model, seed, shape, tokenizer)
    model.generation_config = GenerationConfig(
        eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
        pad_token_id=tokenizer.pad_token_id,
    )
    with no_progress_bars():
        model.save_pretrained(target)
        _processor(shape, tokenizer).save_pretrained(target)
    return target


def _model_config(shape: TinyConfig, tokenizer: Any) -> Any:
    from transformers import Qwen2_5_VLConfig

    rotary = shape.hidden_size // shape.heads // 2
    temporal = rotary // 4
    height = (rotary - temporal) // 2
    identity = tokenizer.convert_tokens_to_ids
    return Qwen2_5_VLConfig(
        text_config={
            "vocab_size": shape.vocab_size,
            "hidden_size": shape.hidden_size,
            "intermediate_size": shape.intermediate_size,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads,
            "max_position_embeddings": 32768,
            "rope_scaling": {
                "type": "mrope",
                "mrope_section": [temporal, height, rotary - temporal - height],
            },
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={
            "depth": shape.vision_depth,
            "hidden_size": shape.vision_hidden_size,
            "intermediate_size": shape.vision_intermediate_size,
            "num_heads": shape.vision_heads,
            "out_hidden_size": shape.hidden_size,
            "fullatt_block_indexes": _full_attention(shape.vision_depth),
        },
        image_token_id=identity(IMAGE_TOKEN),
        video_token_id=identity(VIDEO_TOKEN),
        vision_start_token_id=identity("<|vision_start|>"),
        vision_end_token_id=identity("<|vision_end|>"),
        dtype=shape.dtype,
    )


def _full_attention(depth: int) -> list[int]:
    """Blocks with attention over the whole image instead of windows: the last of each quarter, as
    in Qwen2.5-VL.
    """
    step = max(2, depth // 4)
    return sorted({*range(step - 1, depth, step), depth - 1})


def _fill(model: Any, seed: int, shape: TinyConfig, tokenizer: Any) -> None:
    """Draw every matrix from N(0, 1 / fan-in), so that answers depend on image and text alike.

    Output rows of tokens that are not readable text are zero: random answers then look like words,
    not like bytes.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim == 1:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            spread = 1.0 if "embed_tokens" in name else weight[0].numel() ** -0.5
            weight.normal_(0.0, spread, generator=generator)
        readable = [tokenizer.decode([token]) for token in range(len(tokenizer))]
        special = set(tokenizer.all_special_ids)
        gains = torch.zeros(shape.vocab_size, 1)
        for token, text in enumerate(readable):
            if text and text.isascii() and text.isprintable() and token not in special:
                gains[token] = 1.0
        gains[tokenizer.eos_token_id] = shape.end_gain
        model.lm_head.weight.mul_(gains)


def _processor(shape: TinyConfig, tokenizer: Any) -> Any:
    from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    size = {"shortest_edge": shape.min_pixels, "longest_edge": shape.max_pixels}
    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=size),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(size=size),
        chat_template=CHAT_TEMPLATE,
    )


def tiny_checkpoint() -> Path:
    """The directory of the tiny checkpoint, built in the cache (``$MEDTASKS_CACHE``) on first
    use.
    """
    import transformers

    target = cache_root() / f"tiny-vlm-{RECIPE}-transformers-{transformers.__version__}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(target) as partial:
            build_tiny_vlm(partial)
            partial.rename(target)
    return target
