"""The tokenizer of the trained model: byte-level BPE with a token for each phrase that many prompts
or answers share.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.prompts import render

from .lesson import Lesson
from .tiny_tokenizer import CHAT_TEMPLATE, END_OF_TURN, PADDING, SPECIAL_TOKENS

VOCABULARY = 480
NUMBERED_TEMPLATE = CHAT_TEMPLATE.replace(
    "{%- for message", "{%- set shown = namespace(pictures=0) -%}{%- for message", 1
).replace(
    "{{- '<|vision_start|><|image_pad|><|vision_end|>",
    "{%- set shown.pictures = shown.pictures + 1 -%}{{- 'Picture ' ~ shown.pictures ~ ': "
    "<|vision_start|><|image_pad|>",
)
"""Pictures are numbered, as Qwen2-VL's template does on request: the model need not count them."""

_FIXED_PHRASES = (
    "<|im_start|>user\n",
    "<|im_end|>\n<|im_start|>assistant\n",
    "Question: ",
    "Final answer: ",
    ", and ",
    ", ",
    *(f"Picture {number}: " for number in range(1, 17)),
    *(f"{letter}. " for letter in "ABCDE"),
)


def tokenizer_for(lessons: Mapping[str, Sequence[Lesson]]) -> Any:
    """A tokenizer of the prompts and answers of ``lessons``, which are by benchmark."""
    phrases = dict.fromkeys(_FIXED_PHRASES)
    texts: list[str] = []
    for benchmark_lessons in lessons.values():
        prompts = [render(lesson.template, **lesson.fields) for lesson in benchmark_lessons]
        replies = [lesson.answer for lesson in benchmark_lessons]
        least = 0.004 * len(benchmark_lessons)
        phrases |= dict.fromkeys(shared_lines(prompts))
        phrases |= dict.fromkeys(shared_parts([*prompts, *replies], least))
        texts += [*prompts[::8], *replies]
    for phrase in sorted(phrases, key=len, reverse=True):
        texts = [text.replace(phrase, "\n") for text in texts]
    return _with_phrases(_byte_level(texts), list(phrases))


def _byte_level(texts: Sequence[str]) -> Any:
    """A byte-level BPE tokenizer that is trained on ``texts``."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _with_phrases(byte_level: Any, phrases: Sequence[str]) -> Any:
    """The tokenizer as a transformers one, with ``phrases`` as tokens."""
    from tokenizers import AddedToken
    from transformers import Qwen2TokenizerFast

    tokenizer = Qwen2TokenizerFast(
        tokenizer_object=byte_level,
        eos_token=END_OF_TURN,
        pad_token=PADDING,
        additional_special_tokens=["<|im_start|>", *SPECIAL_TOKENS[3:]],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokens = []
    for phrase in phrases:
        tokens.append(AddedToken(phrase, single_word=phrase[-1].isalnum(), normalized=False))
    tokenizer.add_tokens(tokens)
    tokenizer.chat_template = NUMBERED_TEMPLATE
    return tokenizer


def shared_lines(prompts: Sequence[str]) -> list[str]:
    """Runs of lines that many prompts share, with the line breaks around them."""
    counts: Counter[str] = Counter()
    for prompt in prompts:
        counts.update(set(prompt.split("\n")))
    common = {line for line, count in counts.items() if count >= 0.05 * len(prompts)}
    runs: Counter[str] = Counter()
    for prompt in prompts:
        runs.update(_common_runs(prompt.split("\n"), common))
    most_prompts = 0.01 * len(prompts)
    return [run for run, count in sorted(runs.items()) if count >= most_prompts and run.strip()]


def _common_runs(lines: Sequence[str], common: set[str]) -> list[str]:
    """The runs of common lines in a prompt; questions are not part of them."""
    is_common = [line in common and not line.startswith("Question") for line in lines]
    runs = []
    start = 0
    for is_run, group in itertools.groupby(is_common):
        end = start + len(list(group))
        if is_run:
            before, after = "\n" * (start > 0), "\n" * (end < len(lines))
            runs.append(before + "\n".join(lines[start:end]) + after)
        start = end
    return runs


def shared_parts(texts: Sequence[str], least: float) -> list[str]:
    """Lines, or parts of lines that are not shared as a whole, that occur ``least`` times or
    more.
    """
    parts: Counter[str] = Counter()
    for text in texts:
        parts.update(re.split(r"\n(?:[A-E]\. )?|Question: |Final answer: ", text))
    shared: list[str] = []
    for separator in ("$", r"(\b\d+(?:(?:\.|, )\d+)*)", r"(, and |, )"):
        counts: Counter[str] = Counter()
        for text, count in parts.items():
            for part in re.split(separator, text):
                counts[part] += count
        shared += [part for part, count in counts.items() if count >= least and len(part) > 3]
        parts = Counter({part: count for part, count in counts.items() if count < least})
    return shared
