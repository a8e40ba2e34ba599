"""A byte-level BPE tokenizer with Qwen2.5-VL's special tokens, trained on the spot, and its chat
template.
"""

from __future__ import annotations

from itertools import product
from typing import Any

IMAGE_TOKEN = "<|image_pad|>"
VIDEO_TOKEN = "<|video_pad|>"
END_OF_TURN = "<|im_end|>"
PADDING = "<|endoftext|>"
_VISION = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", IMAGE_TOKEN, VIDEO_TOKEN)
SPECIAL_TOKENS = (PADDING, "<|im_start|>", END_OF_TURN, *_VISION)

# Turns have Qwen2.5-VL's form; a prompt without a system message does not get one.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\\n' -}}"
    "{%- if message['content'] is string -%}{{- message['content'] -}}"
    "{%- else -%}{%- for part in message['content'] -%}"
    "{%- if part['type'] == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}"
    "{%- elif part['type'] == 'video' -%}{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}"
    "{%- elif part['type'] == 'text' -%}{{- part['text'] -}}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{- '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)

_SUBJECTS = [
    "A polyp",
    "An ulcer",
    "The opacity",
    "A small effusion",
    "The instrument",
    "No finding",
    "A nodule",
]
_VERBS = [
    "is seen",
    "appears",
    "has grown",
    "has resolved",
    "is unchanged",
    "may be there",
    "was removed",
]
_PLACES = (
    "in the upper left part of the image",
    "in the lower right lung zone",
    "near the centre",
    "at the cecum",
    "between the first and the second visit",
    "since T1 and before T5",
    "on the last radiograph",
)
_EXTRAS = (
    "Is there any text or a coloured box in the picture?",
    "How many findings are present, and what is their size and colour?",
    "The polyp is pink, red or white and measures less than 5 mm, 5 to 10 mm or 11 to 20 mm.",
    "Answer with the letter of one option only: A, B, C, D or E.",
    "The procedure is a colonoscopy or a gastroscopy; biopsy forceps and a metal clip are visible.",
    (
        "Pneumonia, edema, consolidation, atelectasis and cardiomegaly were looked for on the "
        "chest radiograph."
    ),
    "None of the listed intervals shows the change described in the question.",
    "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    (
        "a b c d e f g h i j k l m n o p q r s t u v w x y z "
        "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
    ),
)


def _corpus() -> list[str]:
    """Every sentence of a subject, a verb and a place, and eight times the rest."""
    sentences = [f"{' '.join(parts)}." for parts in product(_SUBJECTS, _VERBS, _PLACES)]
    for extra in _EXTRAS:
        sentences += [extra] * 8
    return sentences


def train_tokenizer(vocabulary: int) -> Any:
    """Return a fast transformers tokenizer of at most ``vocabulary`` entries, special tokens
    included.

    Training has no randomness: the same versions of ``tokenizers`` and ``transformers`` give the
    same files.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    # the only kind that transformers 4 accepts in Qwen2.5-VL's processor
    from transformers import Qwen2TokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    return Qwen2TokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_OF_TURN,
        pad_token=PADDING,
        additional_special_tokens=["<|im_start|>", *_VISION],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
