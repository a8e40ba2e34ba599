"""Shared prompt prefixes: for many questions about one picture, the common part is computed once.

The keys and values of the tokens that several prompts share stay on the device; the rest of each prompt is added to a
copy of them, and all prompts of a batch continue as one left-padded batch, at the same positions as without sharing.
A prefix common to successive batches (a system prompt, an example, earlier frames of a stream) is kept, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, GenerationMixin
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from ._pictures import Features, Vision, as_encoder_output
from ._reading import Prompt, stacked

Layers = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer, (rows, heads, tokens, width)."""
_TOKEN_TYPES = ("token_type_ids", "mm_token_type_ids")
_NEWER = "cache" in inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
_CACHE = "cache" if _NEWER else "past_key_values"
"""What transformers calls the cache: ``cache`` since 5.24."""


def refusal(model: Any) -> str | None:
    """Why models of this class cannot share prefixes; None if they can."""
    if not getattr(model, "_supports_mm_encoder_outputs", lambda: False)():
        return "its class takes no encoded media"
    layers = DynamicCache(config=model.config.get_text_config(decoder=True)).layers
    other = {type(layer).__name__ for layer in layers if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer)}
    return f"its cache is not one of keys and values alone ({', '.join(sorted(other))})" if other else None


@dataclass(frozen=True)
class Row:
    """One prompt on the device.

    ``keys`` identify its tokens, placeholders by the media they show: two prompts whose keys agree up to some token
    have the same keys and values up to there. ``positions`` are those of all its tokens, (…, 1, tokens).
    """

    ids: torch.Tensor
    keys: torch.Tensor
    positions: torch.Tensor
    types: dict[str, torch.Tensor]
    features: dict[str, list[Features]]
    placeholders: dict[str, torch.Tensor]
    media: tuple[bytes, ...]

    def __len__(self) -> int:
        return int(self.ids.shape[1])

    def features_between(self, start: int, stop: int) -> dict[str, list[Features]]:
        """Features of the placeholders among the tokens from ``start`` to before ``stop``, by modality."""
        found: dict[str, list[Features]] = {}
        for modality, places in self.placeholders.items():
            first, last = (int((places < token).sum()) for token in (start, stop))
            passed = 0
            for part in self.features[modality]:
                count = len(part.pooled)
                low, high = max(first - passed, 0), min(last - passed, count)
                if low < high:
                    found.setdefault(modality, []).append(part.part(low, high))
                passed += count
        return found


class SharedPrefix:
    """Prepares batches for ``generate`` with all but the last token of each prompt already computed.

    ``computed`` counts prompt tokens run through the decoder, ``reused`` those taken from a shared prefix.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.vision = Vision(model)
        self._keys = torch.empty(0, dtype=torch.long)
        self._layers: Layers = []
        self.computed = 0
        self.reused = 0

    def forget(self) -> None:
        """Release everything on the device."""
        self._keys, self._layers = torch.empty(0, dtype=torch.long), []
        self.vision.kept.clear()

    def inputs(self, prompts: Sequence[Prompt], padding: int) -> tuple[dict[str, Any], list[int]]:
        """Arguments of ``generate`` for a left-padded batch of ``prompts``, in their order; the tokens that each
        reuses."""
        rows = [self._row(prompt) for prompt in prompts]
        self.vision.kept.trim({content_hash for row in rows for content_hash in row.media})
        groups: dict[tuple[bytes, ...], list[int]] = {}
        for number, row in enumerate(rows):
            groups.setdefault(row.media, []).append(number)
        parts: dict[int, tuple[Layers, int]] = {}
        reused: dict[int, int] = {}
        for numbers in groups.values():
            layers, counts = self._computed([rows[number] for number in numbers])
            parts |= {number: (layers, place) for place, number in enumerate(numbers)}
            reused.update(zip(numbers, counts, strict=True))
        longest = max(map(len, rows))
        inputs = {
            "input_ids": stacked([row.ids for row in rows], longest, padding, left=True),
            "attention_mask": stacked([torch.ones_like(row.ids) for row in rows], longest, left=True),
            "position_ids": stacked([row.positions for row in rows], longest, left=True),
            _CACHE: _cache(_aligned([parts[number] for number in range(len(rows))], rows)),
        }
        return inputs, [reused[number] for number in range(len(rows))]

    def _row(self, prompt: Prompt) -> Row:
        ids = prompt.inputs["input_ids"]
        text = {name: value for name, value in prompt.inputs.items() if not name.startswith("pixel")}
        keys = ids[0].clone()
        features: dict[str, list[Features]] = {}
        identities: dict[str, list[torch.Tensor]] = {}
        for unit in prompt.units:
            base = int.from_bytes(unit.content_hash[:7], "big")
            for modality, part in self.vision.features(unit).items():
                features.setdefault(modality, []).append(part)
                identities.setdefault(modality, []).append(-1 - base - torch.arange(len(part.pooled)))
        placeholders = {}
        for modality, named in identities.items():
            places = (ids[0] == getattr(self._model.config, f"{modality}_token_id")).nonzero().flatten()
            keys[places] = torch.cat(named)
            placeholders[modality] = places
        positions = self._model._prepare_position_ids_for_generation(ids, text)
        device = self._model.device
        return Row(
            ids=ids.to(device),
            keys=keys,
            positions=positions.to(device),
            types={name: text[name].to(device) for name in _TOKEN_TYPES if name in text},
            features=features,
            placeholders=placeholders,
            media=tuple(unit.content_hash for unit in prompt.units),
        )

    def _computed(self, rows: Sequence[Row]) -> tuple[Layers, list[int]]:
        """Keys and values of all but the last token of each of ``rows`` (all with the same media), right-padded, and
        how many tokens of each row were not computed again."""
        lengths = [len(row) - 1 for row in rows]
        shared = min([_common(rows[0].keys, row.keys) for row in rows[1:]] + lengths)
        kept = min(_common(self._keys, rows[0].keys), shared)
        self._layers = [(keys[:, :, :kept], values[:, :, :kept]) for keys, values in self._layers]
        if kept < shared:
            self._layers = self._forward(rows[:1], self._layers, kept, [shared])
        self._keys = rows[0].keys[:shared]
        reused = [kept, *[shared] * (len(rows) - 1)]
        self.computed += sum(map(len, rows)) - sum(reused)
        self.reused += sum(reused)
        each = (len(rows), -1, -1, -1)
        layers = [(keys.expand(each), values.expand(each)) for keys, values in self._layers]
        return (layers if max(lengths) == shared else self._forward(rows, layers, shared, lengths)), reused

    def _forward(self, rows: Sequence[Row], layers: Layers, start: int, stops: Sequence[int]) -> Layers:
        """Keys and values with those of tokens ``start`` to before ``stops`` added; shorter rows are padded right.

        No token attends to later ones, so the padding changes nothing, and its own values are never read.
        """
        stop = max(stops)
        features: dict[str, list[Features]] = {}
        for row, last in zip(rows, stops, strict=True):
            for modality, parts in row.features_between(start, last).items():
                features.setdefault(modality, []).extend(parts)
        types = {
            name: stacked([row.types[name][:, :last] for row, last in zip(rows, stops, strict=True)], stop)
            for name in rows[0].types
        }
        cache = _cache(layers)
        inputs = self._model.prepare_inputs_for_generation(
            stacked([row.ids[:, start:last] for row, last in zip(rows, stops, strict=True)], stop - start),
            **{_CACHE: cache},
            attention_mask=torch.ones((len(rows), stop), dtype=torch.long, device=self._model.device),
            position_ids=stacked(
                [row.positions[..., start:last] for row, last in zip(rows, stops, strict=True)], stop - start
            ),
            is_first_iteration=True,
            use_cache=True,
            mm_encoder_outputs=as_encoder_output(features),
            **types,
        )
        self._model(**inputs, logits_to_keep=1, return_dict=True)
        return [(layer.keys, layer.values) for layer in cache.layers]


def _common(some: torch.Tensor, other: torch.Tensor) -> int:
    """Length of the common prefix of two prompts, in tokens."""
    length = min(len(some), len(other))
    differing = (some[:length] != other[:length]).nonzero()
    return int(differing[0]) if len(differing) else length


def _cache(layers: Layers) -> DynamicCache:
    """A cache over ``layers`` without copying them; sliding-window layers keep all tokens, too."""
    cache = DynamicCache()
    for keys, values in layers:
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache


def _aligned(parts: Sequence[tuple[Layers, int]], rows: Sequence[Row]) -> Layers:
    """All but the last token of every row, right-aligned."""
    lengths = [len(row) - 1 for row in rows]
    aligned = []
    for number in range(len(parts[0][0])):
        pair = []
        for side in (0, 1):
            first = parts[0][0][number][side]
            whole = first.new_zeros((len(rows), first.shape[1], max(lengths), first.shape[3]))
            for row, ((layers, place), length) in enumerate(zip(parts, lengths, strict=True)):
                whole[row, :, max(lengths) - length :] = layers[number][side][place, :, :length]
            pair.append(whole)
        aligned.append((pair[0], pair[1]))
    return aligned
