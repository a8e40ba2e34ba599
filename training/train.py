"""Train the tiny model that ``medtasks demo`` evaluates, and write it as a transformers checkpoint.

    python -m training.train --out adapters/tiny_vlm

First the vision tower learns to name what is on the pictures, then the decoder learns to answer.
Lessons are drawn from `SEED`; scenes, patients and clips are not those of the miniature data.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from medtasks.catalog.prompts import render
from medtasks.metrics.learned.checkpoints import no_progress_bars

from . import kvasir, med_cmr, medstream, mi_cxr
from .lesson import Lesson, Shown
from .tiny import CHAT_TEMPLATE, END_OF_TURN, IMAGE_TOKEN, PADDING, SPECIAL_TOKENS, VIDEO_TOKEN

SEED = 20261122
LESSONS = {
    "kvasir": (kvasir, 8000),
    "mi_cxr": (mi_cxr, 20000),
    "med_cmr": (med_cmr, 12000),
    "medstream": (medstream, 4000),
}
"""Lessons of each benchmark to learn from."""
BATCHES = {"kvasir": 12, "mi_cxr": 48, "med_cmr": 24, "medstream": 12}
"""Lessons of each benchmark in each step of the decoder."""
NAMED = {"kvasir": 32, "mi_cxr": 16, "med_cmr": 112, "medstream": 32}
"""Pictures of each benchmark in each step of the vision tower."""
CHECKED = 240
"""Lessons of each benchmark, from another seed, on which the model is checked."""
BLIND = 0.12
"""Share of lessons without pictures, so that the model also knows what to answer when it cannot
see.
"""
VOCABULARY = 480
HIDDEN, LAYERS, HEADS, MIDDLE = 96, 5, 4, 192
PATCH, MERGED, VISION, BLOCKS = 16, 4, 32, 1
SIDE = PATCH * MERGED
"""Every picture is resized to a square of this side, and becomes one token."""
VISION_STEPS, VISION_RATE = 1200, 2e-3
STEPS, RATE = 3000, 2.5e-3
KNOWN, FOUND, JUDGED = 1, 2, 3
"""Layers after which the decoder must know what the pictures so far show, what is true about a
claim, and whether it or an option is right.
"""
TEMPLATE = CHAT_TEMPLATE.replace(
    "{%- for message", "{%- set shown = namespace(pictures=0) -%}{%- for message", 1
).replace(
    "{{- '<|vision_start|><|image_pad|><|vision_end|>",
    "{%- set shown.pictures = shown.pictures + 1 -%}{{- 'Picture ' ~ shown.pictures ~ ': "
    "<|vision_start|><|image_pad|>",
)
"""Pictures are numbered, as Qwen2-VL's template does on request: the model need not count them."""


@dataclass(frozen=True)
class Example:
    """Tokens of a lesson: its prompt, the same without pictures, and the answer."""

    prompt: list[int]
    blind: list[int]
    answer: list[int]
    places: list[int]
    """Its pictures, as rows of `Pictures`."""
    hints: list[tuple[int, int, str, str]]
    """What is known at a token of the prompt after a layer: name and value."""


def tokenizer_for(lessons: Mapping[str, Sequence[Lesson]]) -> Any:
    """Byte-level BPE; what many prompts or answers share is one token each."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import Qwen2TokenizerFast

    phrases = dict.fromkeys(
        (
            "<|im_start|>user\n",
            "<|im_end|>\n<|im_start|>assistant\n",
            "Question: ",
            "Final answer: ",
            ", and ",
            ", ",
        )
    )
    phrases |= dict.fromkeys(f"Picture {number}: " for number in range(1, 17))
    phrases |= dict.fromkeys(f"{letter}. " for letter in "ABCDE")
    texts: list[str] = []
    for some in lessons.values():
        prompts, replies = (
            [render(one.template, **one.fields) for one in some],
            [one.answer for one in some],
        )
        phrases |= dict.fromkeys(
            [*shared_lines(prompts), *shared_parts([*prompts, *replies], 0.004 * len(some))]
        )
        texts += [*prompts[::8], *replies]
    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    for phrase in sorted(phrases, key=len, reverse=True):
        texts = [text.replace(phrase, "\n") for text in texts]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bare.train_from_iterator(texts, trainer)
    tokenizer = Qwen2TokenizerFast(
        tokenizer_object=bare,
        eos_token=END_OF_TURN,
        pad_token=PADDING,
        additional_special_tokens=["<|im_start|>", *SPECIAL_TOKENS[3:]],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens(
        [
            AddedToken(phrase, single_word=phrase[-1].isalnum(), normalized=False)
            for phrase in phrases
        ]
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def shared_lines(prompts: Sequence[str]) -> list[str]:
    """Runs of lines that many prompts share, with the line breaks around them."""
    lines = Counter(line for prompt in prompts for line in dict.fromkeys(prompt.split("\n")))
    runs: Counter[str] = Counter()
    for prompt in prompts:
        parts = prompt.split("\n")
        common = [
            lines[part] >= 0.05 * len(prompts) and not part.startswith("Question") for part in parts
        ]
        start = 0
        for same, group in itertools.groupby(common):
            end = start + len(list(group))
            if same:
                runs[
                    "\n" * (start > 0) + "\n".join(parts[start:end]) + "\n" * (end < len(parts))
                ] += 1
            start = end
    return [
        run for run, count in sorted(runs.items()) if count >= 0.01 * len(prompts) and run.strip()
    ]


def shared_parts(texts: Sequence[str], least: float) -> list[str]:
    """Lines, or parts of lines that are not shared as a whole, that occur ``least`` times or
    more.
    """
    shared: list[str] = []
    parts = Counter(
        part
        for text in texts
        for part in re.split(r"\n(?:[A-E]\. )?|Question: |Final answer: ", text)
    )
    for between in ("$", r"(\b\d+(?:(?:\.|, )\d+)*)", r"(, and |, )"):
        found: Counter[str] = Counter()
        for text, count in parts.items():
            for part in re.split(between, text):
                found[part] += count
        shared += [part for part, count in found.items() if count >= least and len(part) > 3]
        parts = Counter({part: count for part, count in found.items() if count < least})
    return shared


def model_for(tokenizer: Any) -> Any:
    from transformers import GenerationConfig, Qwen3VLConfig, Qwen3VLForConditionalGeneration

    identity = tokenizer.convert_tokens_to_ids
    rotation = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "mrope_section": [4, 4, 4],
        "mrope_interleaved": True,
    }
    config = Qwen3VLConfig(
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
        image_token_id=identity(IMAGE_TOKEN),
        video_token_id=identity(VIDEO_TOKEN),
        vision_start_token_id=identity("<|vision_start|>"),
        vision_end_token_id=identity("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    model = Qwen3VLForConditionalGeneration(config)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim < 2:
                if "q_norm" in name or "k_norm" in name:
                    weight.fill_(1.6)  # sharper attention to begin with
                continue
            spread = weight[0].numel() ** -0.5
            if (
                "o_proj" in name or "down_proj" in name
            ):  # small, or they drown what the embeddings say
                spread *= 0.15
            elif "pos_embed" in name:
                spread = 0.02
            if "embed_tokens" in name:
                weight.copy_(first_embeddings(tokenizer, *weight.shape))
            else:
                weight.normal_(0.0, spread)
    model.generation_config = GenerationConfig(
        eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
        pad_token_id=tokenizer.pad_token_id,
    )
    return model


def first_embeddings(tokenizer: Any, tokens: int, width: int) -> torch.Tensor:
    """Tokens that share words begin alike: what is learned about a word in one phrase serves in all
    others.
    """
    parts: dict[str, torch.Tensor] = defaultdict(lambda: torch.randn(width))
    found = torch.randn(tokens, width)
    for token in range(len(tokenizer)):
        words = re.findall(r"[A-Za-z]+|\d", tokenizer.decode([token]))
        named = [
            parts[one] for one in (*words, *(" ".join(pair) for pair in itertools.pairwise(words)))
        ]
        if len(words) > 1:
            found[token] = (torch.stack(named).sum(0) + 0.5 * found[token]) / (
                len(named) + 0.25
            ) ** 0.5
    return 0.1 * found


def image_processor() -> Any:
    from transformers import Qwen2VLImageProcessor

    return Qwen2VLImageProcessor(size={"shortest_edge": SIDE**2, "longest_edge": SIDE**2}, **_GRID)


def processor_for(tokenizer: Any) -> Any:
    from transformers import Qwen3VLProcessor, Qwen3VLVideoProcessor

    pictures = image_processor()
    like_pictures = {"image_mean": pictures.image_mean, "image_std": pictures.image_std}
    size = {"shortest_edge": SIDE**2, "longest_edge": 64 * SIDE**2}
    return Qwen3VLProcessor(
        image_processor=pictures,
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(size=size, **_GRID, **like_pictures),
        chat_template=TEMPLATE,
    )


_GRID = {"patch_size": PATCH, "temporal_patch_size": 1, "merge_size": MERGED}


class Pictures:
    """The patches of all pictures: (pictures, patches, channels)."""

    def __init__(self, image_processor: Any) -> None:
        self.shown: list[Shown] = []
        self.places: dict[int, int] = {}
        self.patches = torch.empty(0)
        self._processor = image_processor
        self._parts: list[torch.Tensor] = []

    def of(self, lessons: Iterator[Lesson], number: int) -> list[Lesson]:
        """The first ``number`` lessons, whose pictures are read and dropped."""
        found: list[Lesson] = []
        while some := list(itertools.islice(lessons, min(64, number - len(found)))):
            found += some
            new = {
                id(one): one
                for lesson in some
                for one in lesson.shown
                if id(one) not in self.places
            }
            self.places |= {one: len(self.shown) + place for place, one in enumerate(new)}
            self.shown += new.values()
            if new:
                drawn = [one.picture for one in new.values()]
                patches = self._processor(images=drawn, return_tensors="pt")["pixel_values"]
                self._parts.append(patches.unflatten(0, (len(new), -1)).half())
            for one in new.values():
                one.picture = None
        return found

    def join(self) -> None:
        """All pictures are there."""
        self.patches = torch.cat(self._parts)
        self._parts.clear()

    def tokens(self, model: Any, places: Sequence[int]) -> torch.Tensor:
        """What the vision tower makes of these pictures: (pictures, HIDDEN)."""
        grids = torch.tensor([[1, MERGED, MERGED]] * len(places))
        seen = model.model.visual(
            self.patches[places].float().flatten(0, 1), grid_thw=grids, return_dict=True
        )
        return seen.pooler_output


def together(attention: Any) -> None:
    """Let the vision tower attend within all pictures at once; they have equally many patches."""
    from transformers.models.qwen3_vl.modeling_qwen3_vl import apply_rotary_pos_emb_vision

    def forward(hidden_states: torch.Tensor, position_embeddings: Any, **_: Any) -> torch.Tensor:
        parts = (
            attention.qkv(hidden_states)
            .reshape(len(hidden_states), 3, attention.num_heads, -1)
            .unbind(1)
        )
        query, key = apply_rotary_pos_emb_vision(parts[0], parts[1], *position_embeddings)
        query, key, value = (
            one.unflatten(0, (-1, MERGED**2)).transpose(1, 2) for one in (query, key, parts[2])
        )
        found = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, scale=attention.scaling
        )
        return attention.proj(found.transpose(1, 2).flatten(0, 1).flatten(1))

    attention.forward = forward


class Naming:
    """Names what a vector shows, with a linear head for each name."""

    def __init__(self, facts: Iterable[Mapping[str, str]]) -> None:
        values: dict[str, dict[str, int]] = {}
        for one in facts:
            for name, value in one.items():
                known = values.setdefault(name, {})
                known.setdefault(value, len(known))
        self.values = values
        self.heads = torch.nn.ModuleList(
            torch.nn.Linear(HIDDEN, len(one)) for one in values.values()
        )

    def __call__(
        self, vectors: torch.Tensor, facts: Sequence[Mapping[str, str]]
    ) -> dict[str, torch.Tensor]:
        """The summed loss of naming each vector's facts, by benchmark."""
        rows: dict[str, list[int]] = defaultdict(list)
        for row, example_facts in enumerate(facts):
            for name in example_facts:
                rows[name].append(row)
        losses: dict[str, torch.Tensor] = defaultdict(lambda: torch.zeros(()))
        for (name, known), head in zip(self.values.items(), self.heads, strict=True):
            if some := rows[name]:
                right = torch.tensor([known[facts[row][name]] for row in some])
                loss = torch.nn.functional.cross_entropy(
                    head(vectors[some]), right, reduction="sum"
                )
                losses[name.split()[0]] = losses[name.split()[0]] + loss
        return losses


def learn_to_see(model: Any, pictures: Pictures, steps: int) -> None:
    """Train the vision tower to name the facts of each picture."""
    kinds: dict[str, list[int]] = {}
    for place, one in enumerate(pictures.shown):
        kinds.setdefault(next(iter(one.facts)).split()[0], []).append(place)
    heads = Naming(one.facts for one in pictures.shown)
    learned = [*model.model.visual.parameters(), *heads.heads.parameters()]
    optimizer = torch.optim.AdamW(learned, lr=VISION_RATE, weight_decay=0.02, betas=(0.9, 0.98))
    rate = schedule(optimizer, steps)
    chance = random.Random(SEED)
    began = time.time()
    losses: dict[str, float] = defaultdict(float)
    for step in range(steps):
        batch = [
            place for name, kind in kinds.items() for place in chance.sample(kind, NAMED[name])
        ]
        found = heads(
            pictures.tokens(model, batch), [pictures.shown[place].facts for place in batch]
        )
        loss = sum(found.values(), torch.zeros(())) / 48
        for name, part in found.items():
            losses[name] += part.item() / 48
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        rate.step()
        if step % 200 == 199:
            said = {name: round(one / 200, 3) for name, one in losses.items()}
            print(f"see {step + 1} {time.time() - began:.0f} s {said}", flush=True)
            losses.clear()


def schedule(optimizer: Any, steps: int) -> Any:
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / 40) * (0.52 + 0.48 * math.cos(math.pi * step / steps)),
    )


def example(tokenizer: Any, lesson: Lesson, pictures: Pictures) -> Example:
    text = render(lesson.template, **lesson.fields)

    def whole(number: int) -> str:
        content = [{"type": "image"}] * number + [{"type": "text", "text": text}]
        message = [{"role": "user", "content": content}]
        return str(
            tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        )

    def tokens_of(parts: Iterable[str]) -> list[int]:
        """The token in which each part ends; parts are in order."""
        found, at = [], 0
        for part in parts:
            at = prompt.index(part, at) + len(part)
            found.append(
                next(token for token, (_, end) in enumerate(read["offset_mapping"]) if end >= at)
            )
        return found

    prompt = whole(len(lesson.shown))
    read = tokenizer(prompt, return_offsets_mapping=True)
    tokens = list(read["input_ids"])
    image = tokenizer.convert_tokens_to_ids(IMAGE_TOKEN)
    seen = [place for place, token in enumerate(tokens) if token == image]
    hints = [
        (at, KNOWN, *fact)
        for at, known in zip(seen, lesson.known, strict=False)
        for fact in known.items()
    ]
    for name, value in lesson.asked.items():
        hints.append((len(tokens) - 1, JUDGED if name.startswith("event") else KNOWN, name, value))
    for at, one in zip(
        tokens_of(claim.text for claim in lesson.claims), lesson.claims, strict=True
    ):
        hints += [(at, KNOWN, "about", one.about), (at, FOUND, "true", one.true)]
        hints.append((at, JUDGED, "claim", str(one.true == one.claimed)))
    choices = lesson.fields.get("choices", {})
    ends = tokens_of(f"\n{letter}. {choice}" for letter, choice in choices.items())
    if len({*ends}) == len(ends):  # several options may be one token
        hints += [
            (at, JUDGED, "option", str(one == lesson.answer))
            for one, at in zip(choices, ends, strict=True)
        ]
    places = [pictures.places[id(one)] for one in lesson.shown]
    answer = list(tokenizer(lesson.answer + END_OF_TURN)["input_ids"])
    return Example(tokens, list(tokenizer(whole(0))["input_ids"]), answer, places, hints)


def answers(
    model: Any, batch: Sequence[tuple[Example, bool]], seen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores of the next token at each token of the answers, the right tokens, and their rows.

    A picture is one token, so positions are those of text. Padding comes last, so no token attends
    to it.
    """
    rows = [(one.blind if blind else one.prompt, one.answer) for one, blind in batch]
    shape = len(rows), max(len(prompt) + len(answer) for prompt, answer in rows)
    tokens, labels = torch.zeros(shape, dtype=torch.long), torch.full(shape, -100)
    for row, (prompt, answer) in enumerate(rows):
        start, end = len(prompt), len(prompt) + len(answer)
        tokens[row, :end] = torch.tensor(prompt + answer)
        labels[row, start:end] = torch.tensor(answer)
    language = model.model.language_model
    embedded = language.embed_tokens(tokens)
    shown = [place for one, blind in batch if not blind for place in one.places]
    if shown:
        where = (tokens == model.config.image_token_id)[..., None].expand_as(embedded)
        embedded = embedded.masked_scatter(where, seen[shown])
    hidden = language(inputs_embeds=embedded, use_cache=False).last_hidden_state[:, :-1]
    asked = labels[:, 1:] != -100
    return model.lm_head(hidden[asked]), labels[:, 1:][asked], asked.nonzero()[:, 0]


def right(model: Any, examples: Sequence[Example], seen: torch.Tensor, blind: bool) -> float:
    """Share of examples whose every token is the likeliest, given the right ones before it."""
    good = 0
    with torch.no_grad():
        for start in range(0, len(examples), 60):
            batch = [(one, blind) for one in examples[start : start + 60]]
            scores, labels, rows = answers(model, batch, seen)
            wrong = {
                int(row)
                for row, hit in zip(rows, scores.argmax(-1) == labels, strict=True)
                if not hit
            }
            good += len(batch) - len(wrong)
    return good / len(examples)


def learn_to_answer(
    model: Any,
    examples: Mapping[str, Sequence[Example]],
    checked: Mapping[str, Sequence[Example]],
    seen: torch.Tensor,
    steps: int,
) -> None:
    """Train the decoder on the answers; what the vision tower makes of the pictures (`seen`) stays
    as it is.

    Without hints on the way, it takes many times as many steps until it compares pictures.
    """
    language = model.model.language_model
    after: dict[int, torch.Tensor] = {}
    hooks = [
        language.layers[layer].register_forward_hook(
            lambda _, __, out, layer=layer: after.update({layer: out})
        )
        for layer in (KNOWN, FOUND, JUDGED)
    ]
    heads = Naming(
        {name: value}
        for some in examples.values()
        for one in some
        for _, _, name, value in one.hints
    )
    learned = [*language.parameters(), *heads.heads.parameters()]
    optimizer = torch.optim.AdamW(learned, lr=RATE, weight_decay=0.05, betas=(0.9, 0.98))
    rate = schedule(optimizer, steps)
    chance = random.Random(SEED)
    turns = {name: batches(some, BATCHES[name], chance) for name, some in examples.items()}
    began = time.time()
    losses: dict[str, float] = defaultdict(float)
    for step in range(steps):
        optimizer.zero_grad()
        for name, turn in turns.items():
            batch = [(one, chance.random() < BLIND) for one in next(turn)]
            scores, labels, _ = answers(model, batch, seen)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            losses[name] += loss.item() / 100
            for layer in (KNOWN, FOUND, JUDGED):
                told = [
                    (row, at, {what: value})
                    for row, (one, blind) in enumerate(batch)
                    for at, when, what, value in one.hints
                    if not blind and when == layer
                ]
                if told:
                    rows, places, facts = zip(*told, strict=True)
                    parts = heads(after[layer][list(rows), list(places)], facts).values()
                    part = sum(parts, torch.zeros(())) / len(told)
                    losses[f"{name} {layer}"] += part.item() / 100
                    loss = loss + part
            loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        rate.step()
        if step % 100 == 99:
            said = {name: round(one, 3) for name, one in losses.items()}
            print(f"answer {step + 1} {time.time() - began:.0f} s {said}", flush=True)
            losses.clear()
        if step + 1 in (steps // 2, steps):
            report(model, checked, seen)
    for hook in hooks:
        hook.remove()


def report(model: Any, checked: Mapping[str, Sequence[Example]], seen: torch.Tensor) -> None:
    """Print the share of right answers to lessons that were not learned from, with and without
    pictures.
    """
    for name, some in checked.items():
        seeing, blind = (right(model, some, seen, blind) for blind in (False, True))
        print(
            f"  {name}: {seeing:.3f} right on {len(some)} held-out lessons, {blind:.3f} without "
            f"pictures",
            flush=True,
        )


def batches(
    examples: Sequence[Example], size: int, chance: random.Random
) -> Iterator[list[Example]]:
    """Endless batches of examples of similar length."""
    while True:
        mixed = chance.sample(range(len(examples)), len(examples))
        mixed.sort(key=lambda number: len(examples[number].prompt) // 24)
        some = [mixed[start : start + size] for start in range(0, len(mixed), size)]
        chance.shuffle(some)
        yield from ([examples[number] for number in batch] for batch in some)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)  # another number gives other bytes
    torch.manual_seed(SEED)
    began = time.time()
    pictures = Pictures(image_processor())
    lessons = {
        name: pictures.of(one.lessons(SEED), number) for name, (one, number) in LESSONS.items()
    }
    tests = {
        name: pictures.of(one.lessons(SEED + 1), CHECKED) for name, (one, _) in LESSONS.items()
    }
    pictures.join()
    tokenizer = tokenizer_for(lessons)
    model, processor = model_for(tokenizer), processor_for(tokenizer)
    print(
        sum(one.numel() for one in model.parameters()),
        "parameters,",
        len(tokenizer),
        "tokens",
        flush=True,
    )
    for block in model.model.visual.blocks:
        together(block.attn)
    examples = {
        name: [example(tokenizer, one, pictures) for one in some] for name, some in lessons.items()
    }
    checked = {
        name: [example(tokenizer, one, pictures) for one in some] for name, some in tests.items()
    }
    lengths = {
        name: sum(len(one.prompt) for one in some) // len(some) for name, some in examples.items()
    }
    print(
        f"{len(pictures.shown)} pictures, {time.time() - began:.0f} s, tokens of a prompt: "
        f"{lengths}",
        flush=True,
    )
    learn_to_see(model, pictures, VISION_STEPS)
    with torch.no_grad():
        every = range(len(pictures.shown))
        seen = torch.cat(
            [pictures.tokens(model, every[start : start + 500]) for start in every[::500]]
        )
        scale = (
            0.1 / seen.square().mean().sqrt()
        )  # like the embeddings of words, or pictures drown them
        seen *= scale
        for part in model.model.visual.merger.linear_fc2.parameters():
            part *= scale
    print(f"pictures scaled by {scale:.3f}", flush=True)
    learn_to_answer(model, examples, checked, seen, STEPS)
    for block in model.model.visual.blocks:
        del block.attn.forward
    model.eval()
    with no_progress_bars():
        model.half().save_pretrained(given.out)
        processor.save_pretrained(given.out)
    for_transformers_4(given.out)


def for_transformers_4(directory: Path) -> None:
    """Add what transformers 5 writes in another place than transformers 4.57 reads it."""

    def change(name: str, update: Callable[[dict[str, Any]], object]) -> None:
        content = json.loads((directory / name).read_text(encoding="utf-8"))
        update(content)
        (directory / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def rope(config: dict[str, Any]) -> None:
        text = config["text_config"]
        text["rope_scaling"] = {**text["rope_parameters"]}
        text["rope_theta"] = text["rope_scaling"].pop("rope_theta")

    change("config.json", rope)
    change(
        "tokenizer_config.json",
        lambda one: one.update(additional_special_tokens=one.pop("extra_special_tokens")),
    )
    whole = json.loads((directory / "processor_config.json").read_text(encoding="utf-8"))
    for name, part in (
        ("preprocessor", "image_processor"),
        ("video_preprocessor", "video_processor"),
    ):
        (directory / f"{name}_config.json").write_text(
            json.dumps(whole[part], indent=2) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
