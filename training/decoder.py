"""How the decoder learns to answer, from what the vision tower makes of the pictures."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .examples import FOUND, JUDGED, KNOWN, Example
from .naming import Naming, schedule

BATCHES = {"kvasir": 12, "mi_cxr": 48, "med_cmr": 24, "medstream": 12}
"""Lessons of each benchmark in each step of the decoder."""
BLIND = 0.12
"""Share of lessons without pictures, so that the model also knows what to answer when it cannot
see.
"""
RATE = 2.5e-3
HINTED_LAYERS = (KNOWN, FOUND, JUDGED)


@dataclass(frozen=True)
class Attempt:
    """An example to answer, with its pictures or without (``blind``)."""

    example: Example
    blind: bool

    @property
    def prompt(self) -> list[int]:
        return self.example.blind if self.blind else self.example.prompt


@dataclass(frozen=True)
class Scored:
    """Scores of the next token at each token of the answers, the right tokens, and the rows of the
    batch that they are in.
    """

    scores: torch.Tensor
    labels: torch.Tensor
    rows: torch.Tensor


def answer_scores(model: Any, batch: Sequence[Attempt], seen: torch.Tensor) -> Scored:
    """The scores of the right answers.

    A picture is one token, so positions are those of text. Padding comes last, so no token attends
    to it.
    """
    longest = max(len(attempt.prompt) + len(attempt.example.answer) for attempt in batch)
    shape = len(batch), longest
    tokens, labels = torch.zeros(shape, dtype=torch.long), torch.full(shape, -100)
    places: list[int] = []
    for row, attempt in enumerate(batch):
        prompt, answer = attempt.prompt, attempt.example.answer
        start, end = len(prompt), len(prompt) + len(answer)
        tokens[row, :end] = torch.tensor(prompt + answer)
        labels[row, start:end] = torch.tensor(answer)
        if not attempt.blind:
            places += attempt.example.places
    language = model.model.language_model
    embedded = language.embed_tokens(tokens)
    if places:
        is_image = (tokens == model.config.image_token_id)[..., None].expand_as(embedded)
        embedded = embedded.masked_scatter(is_image, seen[places])
    hidden = language(inputs_embeds=embedded, use_cache=False).last_hidden_state[:, :-1]
    next_labels = labels[:, 1:]
    is_answer = next_labels != -100
    scores = model.lm_head(hidden[is_answer])
    return Scored(scores, next_labels[is_answer], is_answer.nonzero()[:, 0])


def share_right(model: Any, examples: Sequence[Example], seen: torch.Tensor, blind: bool) -> float:
    """Share of examples whose every token is the likeliest, given the right ones before it."""
    right = 0
    with torch.no_grad():
        for start in range(0, len(examples), 60):
            batch = [Attempt(example, blind) for example in examples[start : start + 60]]
            scored = answer_scores(model, batch, seen)
            is_wrong = scored.scores.argmax(-1) != scored.labels
            right += len(batch) - len(scored.rows[is_wrong].unique())
    return right / len(examples)


def report(model: Any, checked: Mapping[str, Sequence[Example]], seen: torch.Tensor) -> None:
    """Print the share of right answers to lessons that were not learned from, with and without
    pictures.
    """
    for benchmark, examples in checked.items():
        seeing = share_right(model, examples, seen, blind=False)
        blind = share_right(model, examples, seen, blind=True)
        lessons = f"{len(examples)} held-out lessons"
        message = f"  {benchmark}: {seeing:.3f} right on {lessons}, {blind:.3f} without pictures"
        print(message, flush=True)


class _LayerOutputs:
    """The outputs of the hinted layers in the last pass, by layer."""

    def __init__(self, language: Any) -> None:
        self._outputs: dict[int, torch.Tensor] = {}
        self._hooks = [
            language.layers[layer].register_forward_hook(self._keeper(layer))
            for layer in HINTED_LAYERS
        ]

    def _keeper(self, layer: int) -> Any:
        def keep(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
            self._outputs[layer] = output

        return keep

    def __getitem__(self, layer: int) -> torch.Tensor:
        return self._outputs[layer]

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()


def learn_to_answer(
    model: Any,
    examples: Mapping[str, Sequence[Example]],
    checked: Mapping[str, Sequence[Example]],
    seen: torch.Tensor,
    *,
    steps: int,
    seed: int,
) -> None:
    """Train the decoder on the answers; what the vision tower makes of the pictures (`seen`) stays
    as it is.

    Without hints on the way, it takes many times as many steps until it compares pictures.
    """
    language = model.model.language_model
    outputs = _LayerOutputs(language)
    naming = Naming(_hinted_facts(examples))
    learned = [*language.parameters(), *naming.heads.parameters()]
    optimizer = torch.optim.AdamW(learned, lr=RATE, weight_decay=0.05, betas=(0.9, 0.98))
    rate = schedule(optimizer, steps)
    draw = random.Random(seed)
    streams = {
        benchmark: batches(own_examples, BATCHES[benchmark], draw)
        for benchmark, own_examples in examples.items()
    }
    began = time.time()
    means: dict[str, float] = defaultdict(float)
    for step in range(steps):
        optimizer.zero_grad()
        for benchmark, stream in streams.items():
            batch = [Attempt(example, draw.random() < BLIND) for example in next(stream)]
            scored = answer_scores(model, batch, seen)
            loss = torch.nn.functional.cross_entropy(scored.scores, scored.labels)
            means[benchmark] += loss.item() / 100
            for layer in HINTED_LAYERS:
                hint_loss = _hint_loss(naming, batch, layer, outputs[layer])
                if hint_loss is not None:
                    means[f"{benchmark} {layer}"] += hint_loss.item() / 100
                    loss = loss + hint_loss
            loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        rate.step()
        if step % 100 == 99:
            rounded = {name: round(mean, 3) for name, mean in means.items()}
            print(f"answer {step + 1} {time.time() - began:.0f} s {rounded}", flush=True)
            means.clear()
        if step + 1 in (steps // 2, steps):
            report(model, checked, seen)
    outputs.remove()


def _hinted_facts(examples: Mapping[str, Sequence[Example]]) -> Iterator[dict[str, str]]:
    """The names and values of all hints."""
    for own_examples in examples.values():
        for example in own_examples:
            for hint in example.hints:
                yield {hint.name: hint.value}


def _hint_loss(
    naming: Naming, batch: Sequence[Attempt], layer: int, hidden: torch.Tensor
) -> torch.Tensor | None:
    """The mean loss of naming the hints of a batch after a layer; None if there are none.

    Without pictures, nothing can be known.
    """
    rows, tokens, facts = [], [], []
    for row, attempt in enumerate(batch):
        if attempt.blind:
            continue
        for hint in attempt.example.hints:
            if hint.layer == layer:
                rows.append(row)
                tokens.append(hint.token)
                facts.append({hint.name: hint.value})
    if not facts:
        return None
    losses = naming(hidden[rows, tokens], facts)
    return sum(losses.values(), torch.zeros(())) / len(facts)


def batches(examples: Sequence[Example], size: int, draw: random.Random) -> Iterator[list[Example]]:
    """Endless batches of examples of similar length."""
    while True:
        numbers = draw.sample(range(len(examples)), len(examples))
        numbers.sort(key=lambda number: len(examples[number].prompt) // 24)
        blocks = [numbers[start : start + size] for start in range(0, len(numbers), size)]
        draw.shuffle(blocks)
        for block in blocks:
            yield [examples[number] for number in block]
