"""The trained model: a small Qwen3-VL, its first weights and its processor."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from .tiny_tokenizer import IMAGE_TOKEN, VIDEO_TOKEN
from .tokenizer import NUMBERED_TEMPLATE

HIDDEN, LAYERS, HEADS, MIDDLE = 96, 5, 4, 192
PATCH, MERGED, VISION, BLOCKS = 16, 4, 32, 1
SIDE = PATCH * MERGED
"""Every picture is resized to a square of this side, and becomes one token."""
_GRID = {"patch_size": PATCH, "temporal_patch_size": 1, "merge_size": MERGED}


def model_for(tokenizer: Any) -> Any:
    """The model with its first weights, and one embedding for each token."""
    from transformers import GenerationConfig, Qwen3VLForConditionalGeneration

    model = Qwen3VLForConditionalGeneration(_model_config(tokenizer))
    _draw_weights(model, tokenizer)
    model.generation_config = GenerationConfig(
        eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
        pad_token_id=tokenizer.pad_token_id,
    )
    return model


def _model_config(tokenizer: Any) -> Any:
    from transformers import Qwen3VLConfig

    token_id = tokenizer.convert_tokens_to_ids
    rotation = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "mrope_section": [4, 4, 4],
        "mrope_interleaved": True,
    }
    return Qwen3VLConfig(
        text_config={
            "vocab_size": -(-len(tokenizer) // 8) * 8,
            "hidden_size": HIDDEN,
            "intermediate_size": MIDDLE,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS,
            "head_dim": HIDDEN // HEADS,
            "max_position_embeddings": 32768,
            "rope_parameters": rotation,
            "tie_word_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={
            "depth": BLOCKS,
            "hidden_size": VISION,
            "intermediate_size": 2 * VISION,
            "num_heads": 4,
            "patch_size": PATCH,
            "temporal_patch_size": 1,
            "spatial_merge_size": MERGED,
            "out_hidden_size": HIDDEN,
            "num_position_embeddings": MERGED**2,
            "deepstack_visual_indexes": [],
        },
        image_token_id=token_id(IMAGE_TOKEN),
        video_token_id=token_id(VIDEO_TOKEN),
        vision_start_token_id=token_id("<|vision_start|>"),
        vision_end_token_id=token_id("<|vision_end|>"),
        tie_word_embeddings=True,
    )


def _draw_weights(model: Any, tokenizer: Any) -> None:
    """Draw every matrix from N(0, 1 / fan-in), with exceptions that let training begin faster."""
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim < 2:
                if "q_norm" in name or "k_norm" in name:
                    weight.fill_(1.6)  # sharper attention to begin with
                continue
            spread = weight[0].numel() ** -0.5
            if "o_proj" in name or "down_proj" in name:
                spread *= 0.15  # or they drown what the embeddings say
            elif "pos_embed" in name:
                spread = 0.02
            if "embed_tokens" in name:
                weight.copy_(first_embeddings(tokenizer, *weight.shape))
            else:
                weight.normal_(0.0, spread)


def first_embeddings(tokenizer: Any, tokens: int, width: int) -> torch.Tensor:
    """The first embeddings ``(tokens, width)``: tokens that share words begin alike, so what is
    learned about a word in one phrase serves in all others.
    """
    word_vectors: dict[str, torch.Tensor] = defaultdict(lambda: torch.randn(width))
    embeddings = torch.randn(tokens, width)
    for token in range(len(tokenizer)):
        words = re.findall(r"[A-Za-z]+|\d", tokenizer.decode([token]))
        pairs = [" ".join(pair) for pair in itertools.pairwise(words)]
        vectors = [word_vectors[part] for part in (*words, *pairs)]
        if len(words) > 1:
            total = torch.stack(vectors).sum(0) + 0.5 * embeddings[token]
            embeddings[token] = total / (len(vectors) + 0.25) ** 0.5
    return 0.1 * embeddings


def image_processor() -> Any:
    from transformers import Qwen2VLImageProcessor

    return Qwen2VLImageProcessor(size={"shortest_edge": SIDE**2, "longest_edge": SIDE**2}, **_GRID)


def processor_for(tokenizer: Any) -> Any:
    """The processor of prompts with pictures or a video."""
    from transformers import Qwen3VLProcessor, Qwen3VLVideoProcessor

    pictures = image_processor()
    like_pictures = {"image_mean": pictures.image_mean, "image_std": pictures.image_std}
    size = {"shortest_edge": SIDE**2, "longest_edge": 64 * SIDE**2}
    return Qwen3VLProcessor(
        image_processor=pictures,
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(size=size, **_GRID, **like_pictures),
        chat_template=NUMBERED_TEMPLATE,
    )


def attend_within_pictures(attention: Any) -> None:
    """Let the vision tower attend within all pictures at once; they have equally many patches."""
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.models.qwen3_vl.modeling_qwen3_vl import apply_rotary_pos_emb_vision

    def by_picture(heads: torch.Tensor) -> torch.Tensor:
        """``(patches, heads, width)`` as ``(pictures, heads, patches of each, width)``."""
        return heads.unflatten(0, (-1, MERGED**2)).transpose(1, 2)

    def forward(hidden_states: torch.Tensor, position_embeddings: Any, **_: Any) -> torch.Tensor:
        projected = attention.qkv(hidden_states)
        parts = projected.reshape(len(hidden_states), 3, attention.num_heads, -1)
        query, key, value = parts.unbind(1)
        query, key = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
        attended = scaled_dot_product_attention(
            by_picture(query), by_picture(key), by_picture(value), scale=attention.scaling
        )
        return attention.proj(attended.transpose(1, 2).flatten(0, 1).flatten(1))

    attention.forward = forward


def add_files_for_transformers_4(directory: Path) -> None:
    """Add to a checkpoint what transformers 5 writes in another place than transformers 4.57 reads
    it.
    """
    config = _read_json(directory / "config.json")
    text_config = config["text_config"]
    text_config["rope_scaling"] = {**text_config["rope_parameters"]}
    text_config["rope_theta"] = text_config["rope_scaling"].pop("rope_theta")
    _write_json(directory / "config.json", config)

    tokenizer = _read_json(directory / "tokenizer_config.json")
    tokenizer["additional_special_tokens"] = tokenizer.pop("extra_special_tokens")
    _write_json(directory / "tokenizer_config.json", tokenizer)

    processor = _read_json(directory / "processor_config.json")
    _write_json(directory / "preprocessor_config.json", processor["image_processor"])
    _write_json(directory / "video_preprocessor_config.json", processor["video_processor"])


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
