"""Train the tiny model that ``medtasks demo`` evaluates, and write it as a transformers checkpoint.

    python -m training.train --out adapters/tiny_vlm

First the vision tower learns to name what is on the pictures, then the decoder learns to answer.
Lessons are drawn from `SEED`; scenes, patients and clips are not those of the miniature data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from medtasks.metrics.learned.checkpoints import no_progress_bars

from . import kvasir, med_cmr, medstream, mi_cxr
from .decoder import learn_to_answer
from .examples import Example, tokenized
from .lesson import Lesson
from .model import (
    add_files_for_transformers_4,
    attend_within_pictures,
    image_processor,
    model_for,
    processor_for,
)
from .tokenizer import tokenizer_for
from .vision import Pictures, learn_to_see, seen_pictures

SEED = 20261122
LESSONS = {
    "kvasir": (kvasir, 8000),
    "mi_cxr": (mi_cxr, 20000),
    "med_cmr": (med_cmr, 12000),
    "medstream": (medstream, 4000),
}
"""Lessons of each benchmark to learn from."""
CHECKED = 240
"""Lessons of each benchmark, from another seed, on which the model is checked."""
VISION_STEPS = 1200
STEPS = 3000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)  # another number gives other bytes
    torch.manual_seed(SEED)
    began = time.time()
    pictures = Pictures(image_processor())
    lessons, held_out = {}, {}
    for benchmark, (module, number) in LESSONS.items():
        lessons[benchmark] = pictures.take(module.lessons(SEED), number)
    for benchmark, (module, _) in LESSONS.items():
        held_out[benchmark] = pictures.take(module.lessons(SEED + 1), CHECKED)
    pictures.join()
    tokenizer = tokenizer_for(lessons)
    model, processor = model_for(tokenizer), processor_for(tokenizer)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(parameters, "parameters,", len(tokenizer), "tokens", flush=True)
    for block in model.model.visual.blocks:
        attend_within_pictures(block.attn)
    examples = as_examples(tokenizer, lessons, pictures)
    checked = as_examples(tokenizer, held_out, pictures)
    count, seconds = len(pictures.shown), time.time() - began
    lengths = {benchmark: mean_length(own) for benchmark, own in examples.items()}
    print(f"{count} pictures, {seconds:.0f} s, tokens of a prompt: {lengths}", flush=True)
    learn_to_see(model, pictures, VISION_STEPS, SEED)
    seen = seen_pictures(model, pictures)
    learn_to_answer(model, examples, checked, seen, steps=STEPS, seed=SEED)
    for block in model.model.visual.blocks:
        del block.attn.forward
    model.eval()
    with no_progress_bars():
        model.half().save_pretrained(options.out)
        processor.save_pretrained(options.out)
    add_files_for_transformers_4(options.out)


def as_examples(
    tokenizer: Any, lessons: Mapping[str, Sequence[Lesson]], pictures: Pictures
) -> dict[str, list[Example]]:
    """The lessons of each benchmark as tokens."""
    examples = {}
    for benchmark, own_lessons in lessons.items():
        examples[benchmark] = [
            tokenized(tokenizer, lesson, pictures.places) for lesson in own_lessons
        ]
    return examples


def mean_length(examples: Sequence[Example]) -> int:
    """The mean number of tokens of a prompt, rounded down."""
    return sum(len(example.prompt) for example in examples) // len(examples)


if __name__ == "__main__":
    main()
