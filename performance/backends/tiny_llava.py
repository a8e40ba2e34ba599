"""A LLaVA-1.5-architecture checkpoint with random weights, for back-ends that take nothing else."""

from __future__ import annotations

from pathlib import Path

from training.tiny_tokenizer import train_tokenizer

__all__ = ["build_tiny_llava"]

IMAGE = "<image>"
PATCH, SIDE = 14, 56  # pixels

# As the released LLaVA-1.5 checkpoints have it: contents are lists of parts; a plain string gives
# an empty turn.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- message['role'] | upper + ': ' -}}"
    "{%- for kind in ('image', 'text') -%}"
    "{%- for part in message['content'] | selectattr('type', 'equalto', kind) -%}"
    "{{- '<image>\\n' if kind == 'image' else part['text'] + ' ' -}}"
    "{%- endfor -%}{%- endfor -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}"
)


def build_tiny_llava(directory: Path, seed: int = 0) -> Path:
    """Write the checkpoint into ``directory`` and return it; global random state is left as it
    was.
    """
    import torch
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        GenerationConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    tokenizer = train_tokenizer(1024)
    tokenizer.add_special_tokens({"additional_special_tokens": [IMAGE]})
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=SIDE,
        patch_size=PATCH,
        projection_dim=32,
    )
    config = LlavaConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlavaForConditionalGeneration(config)
    with torch.no_grad():  # random weights alone would hardly ever stop
        model.lm_head.weight[tokenizer.eos_token_id] *= 4.0
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(directory)
    LlavaProcessor(
        image_processor=CLIPImageProcessor(
            size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
        ),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token=IMAGE,
        chat_template=CHAT_TEMPLATE,
    ).save_pretrained(directory)
    return directory
