"""Checkpoints of a few kilobytes, of the architectures that BERTScore and BLEURT ask for, with
random weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SENTENCES = (
    "a small polyp is seen in the lower left part of the image",
    "an ulcer is red and measures less than 5 mm",
    "no polyp is seen",
    "there is no instrument in the image, and the procedure is a colonoscopy",
)
LONG = "the small polyp is red and the ulcer is not, " * 60
TRICKY = (
    "",
    "  \n",
    "naïve Größe 5–10 µm",
    "内視鏡で小さなポリープ",
    "🩺 polyp \u200d",
    "<b>polyp</b>",
    LONG,
    LONG + "end",
)

PAIRS: list[tuple[str, str]] = [
    *((left, right) for left in SENTENCES for right in SENTENCES),
    *((text, SENTENCES[index % 4]) for index, text in enumerate(TRICKY)),
    *((SENTENCES[index % 4], text) for index, text in enumerate(TRICKY)),
    ("", ""),
]

POSITIONS = 128


def tiny_roberta(
    folder: Path, *, prefix_space: bool, limit: int | None = 64, seed: int = 0
) -> Path:
    """RobertaModel of three layers, with the tokenizer's own setting for a space before the first
    word.
    """
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder.mkdir(parents=True)
    trained = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(
        SENTENCES, vocab_size=330, special_tokens=special, min_frequency=1, show_progress=False
    )
    trained.save_model(str(folder))
    stated: dict[str, Any] = {} if limit is None else {"model_max_length": limit}
    tokenizer = RobertaTokenizerFast.from_pretrained(
        str(folder), add_prefix_space=prefix_space, **stated
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=40,
        max_position_embeddings=POSITIONS,
        initializer_range=0.3,
    )
    RobertaModel(config).save_pretrained(folder)
    return folder


def tiny_bleurt(folder: Path, *, labels: int = 1, positions: int = POSITIONS) -> Path:
    """BertForSequenceClassification of two layers with an uncased word-piece tokenizer."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True)
    letters = sorted(
        {letter for sentence in SENTENCES for letter in sentence if letter.isalnum()}
        | {"[", "]", ","}
    )
    words = sorted(
        {word.strip(",") for sentence in SENTENCES for word in sentence.split() if len(word) > 1}
    )
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *(f"##{letter}" for letter in letters),
        *words,
    ]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast.from_pretrained(str(folder), do_lower_case=True)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=40,
        max_position_embeddings=positions,
        num_labels=labels,
        initializer_range=0.1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder
