"""Random-weight checkpoints of the architectures that users run, as small as their classes
allow.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

from training.tiny import build_tiny_vlm
from training.tiny_tokenizer import CHAT_TEMPLATE, END_OF_TURN, PADDING, train_tokenizer

__all__ = ["ARCHITECTURES", "build"]

ROWS = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
PIXELS = {"height": 56, "width": 56}


def chat_template(image: str, video: str = "") -> str:
    """The tiny checkpoint's, with this architecture's placeholders."""
    shown = CHAT_TEMPLATE.replace("<|vision_start|><|image_pad|><|vision_end|>", image)
    return shown.replace("<|vision_start|><|video_pad|><|vision_end|>", video)


def tokenizer_with(named: dict[str, str], others: list[str] | None = None) -> Any:
    """The tiny checkpoint's tokenizer with further special tokens, ``named`` ones as attributes."""
    trained = train_tokenizer(1024)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained.backend_tokenizer,
        eos_token=END_OF_TURN,
        pad_token=PADDING,
        extra_special_tokens=named,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens(others or [], special_tokens=True)
    return tokenizer


def fill(model: Any, seed: int, end: int) -> None:
    """Draw every matrix from N(0, 1 / fan-in); the end of a turn is likely enough to happen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim > 1 and "embed" not in name:
                weight.normal_(0.0, weight[0].numel() ** -0.5, generator=generator)
            elif weight.ndim > 1:
                weight.normal_(0.0, 0.5, generator=generator)
            elif weight.ndim == 1 and "norm" not in name:
                weight.normal_(0.0, 0.02, generator=generator)
        model.get_output_embeddings().weight[end] *= 1.5


def text_shape(tokenizer: Any, **changes: Any) -> dict[str, Any]:
    """A decoder of two layers."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 32768,
        **changes,
    }


def vision_shape(**changes: Any) -> dict[str, Any]:
    """A vision transformer of two layers over 56 x 56 pixels."""
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 56,
        "patch_size": 14,
        **changes,
    }


def write(
    target: Path, seed: int, family: str, processor: dict[str, Any], config: dict[str, Any]
) -> Path:
    """Write model and processor of a family of transformers; its classes are named alike."""
    processing = getattr(transformers, f"{family}Processor")(**processor)
    ends = {
        "eos_token_id": processing.tokenizer.eos_token_id,
        "pad_token_id": processing.tokenizer.pad_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        shape = getattr(transformers, f"{family}Config")(**config)
        model = getattr(transformers, f"{family}ForConditionalGeneration")(shape)
    fill(model, seed, ends["eos_token_id"])
    model.generation_config = transformers.GenerationConfig(**ends)
    model.save_pretrained(target)
    processing.save_pretrained(target)
    return target


def qwen2_5_vl(target: Path, seed: int) -> Path:
    return build_tiny_vlm(target, seed=seed)


def qwen3_vl(target: Path, seed: int) -> Path:
    tokenizer = tokenizer_with({})
    size = {"shortest_edge": 64 * 64, "longest_edge": 128 * 128}
    processor = {
        "image_processor": transformers.Qwen2VLImageProcessor(size=size, patch_size=16),
        "tokenizer": tokenizer,
        "video_processor": transformers.Qwen3VLVideoProcessor(
            size={**size, "longest_edge": 8 * 128 * 128}
        ),
        "chat_template": CHAT_TEMPLATE,
    }
    rope = {"rope_type": "default", "mrope_section": [4, 2, 2], "rope_theta": 1e4}
    vision = {
        "depth": 3,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1],
    }
    tokens = {
        "image": "image_pad",
        "video": "video_pad",
        "vision_start": "vision_start",
        "vision_end": "vision_end",
    }
    named = {
        f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{token}|>")
        for name, token in tokens.items()
    }
    config = {
        "text_config": text_shape(tokenizer, rope_parameters=rope),
        "vision_config": vision,
        **named,
    }
    return write(target, seed, "Qwen3VL", processor, config)


def gemma3(target: Path, seed: int) -> Path:
    """MedGemma's architecture; the window of its sliding layers is shorter than a prompt."""
    named = {
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>",
    }
    tokenizer = tokenizer_with(named)
    processor = {
        "image_processor": transformers.Gemma3ImageProcessor(size=PIXELS),
        "tokenizer": tokenizer,
        "chat_template": chat_template("<start_of_image>"),
        "image_seq_length": 16,
    }
    text = text_shape(
        tokenizer,
        num_hidden_layers=3,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        sliding_window=24,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        query_pre_attn_scalar=16,
        tie_word_embeddings=False,
    )
    config = {
        "text_config": text,
        "vision_config": vision_shape(),
        "mm_tokens_per_image": 16,
        **{
            f"{name}_index": tokenizer.convert_tokens_to_ids(token) for name, token in named.items()
        },
        "tie_word_embeddings": False,
    }
    return write(target, seed, "Gemma3", processor, config)


def llava_onevision(target: Path, seed: int) -> Path:
    tokenizer = tokenizer_with({"image_token": "<image>", "video_token": "<video>"})
    pinpoints = [[56, 56], [56, 112], [112, 56], [112, 112]]
    processor = {
        "image_processor": transformers.LlavaOnevisionImageProcessor(
            size=PIXELS, image_grid_pinpoints=pinpoints
        ),
        "tokenizer": tokenizer,
        "video_processor": transformers.LlavaOnevisionVideoProcessor(size=PIXELS),
        "num_image_tokens": 16,
        "vision_feature_select_strategy": "full",
        "chat_template": chat_template("<image>\\n", "<video>\\n"),
    }
    config = {
        "text_config": {"model_type": "qwen2", **text_shape(tokenizer)},
        "vision_config": {
            "model_type": "siglip_vision_model",
            "vision_use_head": False,
            **vision_shape(),
        },
        "image_token_index": tokenizer.convert_tokens_to_ids("<image>"),
        "video_token_index": tokenizer.convert_tokens_to_ids("<video>"),
        "image_grid_pinpoints": pinpoints,
    }
    return write(target, seed, "LlavaOnevision", processor, config)


def idefics3(target: Path, seed: int) -> Path:
    """Pictures of up to 112 pixels, cut into tiles of 56."""
    specials = ["<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>", *ROWS]
    names = ("fake_image_token", "image_token", "end_of_utterance_token", "global_image_token")
    tokenizer = tokenizer_with(dict(zip(names, specials, strict=False)), specials)
    processor = {
        "image_processor": transformers.Idefics3ImageProcessor(
            size={"longest_edge": 112},
            max_image_size={"longest_edge": 56},
            return_row_col_info=True,
        ),
        "tokenizer": tokenizer,
        "image_seq_len": 4,
        "chat_template": chat_template("<image>"),
    }
    config = {
        "text_config": {
            "model_type": "llama",
            **text_shape(tokenizer, pad_token_id=tokenizer.pad_token_id),
        },
        "vision_config": vision_shape(),
        "image_token_id": tokenizer.convert_tokens_to_ids("<image>"),
        "scale_factor": 2,
    }
    return write(target, seed, "Idefics3", processor, config)


ARCHITECTURES: dict[str, Callable[[Path, int], Path]] = {
    function.__name__: function
    for function in (qwen2_5_vl, qwen3_vl, gemma3, llava_onevision, idefics3)
}


def build(name: str, target: Path, seed: int = 0) -> Path:
    """Write a checkpoint of architecture ``name`` into ``target``."""
    target.mkdir(parents=True, exist_ok=True)
    return ARCHITECTURES[name](target, seed)
