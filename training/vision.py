"""The pictures of the lessons, and how the vision tower learns to name what is on them."""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .lesson import Drawing, Lesson
from .model import MERGED
from .naming import Naming, schedule

NAMED = {"kvasir": 32, "mi_cxr": 16, "med_cmr": 112, "medstream": 32}
"""Pictures of each benchmark in each step of the vision tower."""
RATE = 2e-3
_LESSONS_AT_ONCE = 64


class Pictures:
    """The patches of all pictures: (pictures, patches, channels)."""

    def __init__(self, image_processor: Any) -> None:
        self.shown: list[Drawing] = []
        self.places: dict[int, int] = {}
        self.patches = torch.empty(0)
        self._processor = image_processor
        self._parts: list[torch.Tensor] = []

    def take(self, lessons: Iterator[Lesson], number: int) -> list[Lesson]:
        """The first ``number`` lessons, whose pictures are read and dropped."""
        taken: list[Lesson] = []
        while len(taken) < number:
            count = min(_LESSONS_AT_ONCE, number - len(taken))
            block = list(itertools.islice(lessons, count))
            if not block:
                break
            taken += block
            self._read(block)
        return taken

    def _read(self, lessons: Sequence[Lesson]) -> None:
        """Turn the pictures of ``lessons`` that are new into patches."""
        new: dict[int, Drawing] = {}
        for lesson in lessons:
            for drawing in lesson.shown:
                if id(drawing) not in self.places:
                    new[id(drawing)] = drawing
        if not new:
            return
        for place, identity in enumerate(new, start=len(self.shown)):
            self.places[identity] = place
        self.shown += new.values()
        pictures = [drawing.picture for drawing in new.values()]
        patches = self._processor(images=pictures, return_tensors="pt")["pixel_values"]
        self._parts.append(patches.unflatten(0, (len(new), -1)).half())
        for drawing in new.values():
            drawing.picture = None

    def join(self) -> None:
        """Join the patches, once all pictures are read."""
        self.patches = torch.cat(self._parts)
        self._parts.clear()

    def tokens(self, model: Any, places: Sequence[int]) -> torch.Tensor:
        """What the vision tower makes of these pictures: (pictures, HIDDEN)."""
        grids = torch.tensor([[1, MERGED, MERGED]] * len(places))
        patches = self.patches[places].float().flatten(0, 1)
        return model.model.visual(patches, grid_thw=grids, return_dict=True).pooler_output


def learn_to_see(model: Any, pictures: Pictures, steps: int, seed: int) -> None:
    """Train the vision tower to name the facts of each picture."""
    places: dict[str, list[int]] = {}
    for place, drawing in enumerate(pictures.shown):
        benchmark = next(iter(drawing.facts)).split()[0]
        places.setdefault(benchmark, []).append(place)
    naming = Naming(drawing.facts for drawing in pictures.shown)
    learned = [*model.model.visual.parameters(), *naming.heads.parameters()]
    optimizer = torch.optim.AdamW(learned, lr=RATE, weight_decay=0.02, betas=(0.9, 0.98))
    rate = schedule(optimizer, steps)
    draw = random.Random(seed)
    began = time.time()
    sums: dict[str, float] = defaultdict(float)
    for step in range(steps):
        batch: list[int] = []
        for benchmark, own_places in places.items():
            batch += draw.sample(own_places, NAMED[benchmark])
        facts = [pictures.shown[place].facts for place in batch]
        losses = naming(pictures.tokens(model, batch), facts)
        loss = sum(losses.values(), torch.zeros(())) / 48
        for benchmark, part in losses.items():
            sums[benchmark] += part.item() / 48
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        rate.step()
        if step % 200 == 199:
            means = {benchmark: round(total / 200, 3) for benchmark, total in sums.items()}
            print(f"see {step + 1} {time.time() - began:.0f} s {means}", flush=True)
            sums.clear()


def seen_pictures(model: Any, pictures: Pictures) -> torch.Tensor:
    """What the vision tower makes of all pictures: (pictures, HIDDEN); from now on it makes vectors
    as long as the embeddings of words, which would drown in longer ones.
    """
    count = len(pictures.shown)
    with torch.no_grad():
        blocks = []
        for start in range(0, count, 500):
            places = range(start, min(start + 500, count))
            blocks.append(pictures.tokens(model, places))
        seen = torch.cat(blocks)
        scale = 0.1 / seen.square().mean().sqrt()
        seen *= scale
        for parameter in model.model.visual.merger.linear_fc2.parameters():
            parameter *= scale
    print(f"pictures scaled by {scale:.3f}", flush=True)
    return seen
