"""Shared prompt prefixes: for many questions about one picture, the common part is computed once.

The keys and values of the tokens that several prompts share stay on the device; the rest of each prompt is added to a
copy of them, and all prompts of a batch continue as one left-padded batch, at the same positions as without sharing.
A prefix common to successive batches (a system prompt, an example, earlier frames of a stream) is kept, too.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, GenerationMixin
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from medtasks.core.cache import RecentlyUsed

from ._reading import KEPT_BYTES, Media, Prompt, on_device, size_of, stacked

Layers = list[tuple[torch.Tensor, torch.Tensor]]  # keys and values, (rows, heads, tokens, width)
_TOKEN_TYPES = ("token_type_ids", "mm_token_type_ids")
_NAMES = inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
_CACHE = "cache" if "cache" in _NAMES else "past_key_values"  # ``cache`` since transformers 5.24


def refusal(model: Any) -> str | None:
    """Why models of this class cannot share prefixes; None if they can."""
    if not getattr(model, "_supports_mm_encoder_outputs", lambda: False)():
        return "its class takes no encoded media"
    layers = DynamicCache(config=model.config.get_text_config(decoder=True)).layers
    other = {type(layer).__name__ for layer in layers if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer)}
    return f"its cache is not one of keys and values alone ({', '.join(sorted(other))})" if other else None


@dataclass(frozen=True)
class Row:
    """One prompt on the device. Prompts whose ``keys`` (tokens; for placeholders, the media they show) agree up to some
    token have the same keys and values up to there. ``positions`` are (…, 1, tokens), ``features`` by modality (layers,
    placeholders, width)."""

    ids: torch.Tensor
    keys: torch.Tensor
    positions: torch.Tensor
    types: dict[str, torch.Tensor]
    features: dict[str, list[torch.Tensor]]
    placeholders: dict[str, torch.Tensor]
    media: tuple[bytes, ...]

    def __len__(self) -> int:
        return int(self.ids.shape[1])


class SharedPrefix:
    """Prepares batches for ``generate`` with all but the last token of each prompt already computed. ``usage`` counts
    the media and the prompt tokens that were computed and reused."""

    def __init__(self, model: Any, usage: dict[str, int]) -> None:
        self._model = model
        self._usage = usage
        self._features: RecentlyUsed[bytes, dict[str, torch.Tensor]] = RecentlyUsed(KEPT_BYTES, size_of)
        self._forms: dict[str, tuple[type, bool]] = {}
        self.forget()

    def forget(self) -> None:
        """Release everything on the device."""
        self._keys = torch.empty(0, dtype=torch.long)
        self._layers: Layers = []
        self._features.clear()

    def inputs(self, prompts: Sequence[Prompt], padding: int) -> tuple[dict[str, Any], list[int]]:
        """Arguments of ``generate`` for a left-padded batch of ``prompts``, in their order; the tokens that each
        reuses."""
        rows = [self._row(prompt) for prompt in prompts]
        self._features.trim({content_hash for row in rows for content_hash in row.media})
        groups: dict[tuple[bytes, ...], list[int]] = defaultdict(list)
        for number, row in enumerate(rows):
            groups[row.media].append(number)
        longest = max(map(len, rows))
        reused: list[int] = [0] * len(rows)
        aligned: list[Any] = []
        for numbers in groups.values():
            layers, counts = self._computed([rows[number] for number in numbers])
            if not aligned:  # all but the last token of every row, right-aligned
                aligned = [
                    tuple(part.new_zeros((len(rows), part.shape[1], longest - 1, part.shape[3])) for part in layer)
                    for layer in layers
                ]
            for place, (number, count) in enumerate(zip(numbers, counts, strict=True)):
                reused[number], length = count, len(rows[number]) - 1
                for whole, layer in zip(aligned, layers, strict=True):
                    for target, part in zip(whole, layer, strict=True):
                        target[number, :, longest - 1 - length :] = part[place, :, :length]
        inputs = {
            "input_ids": stacked([row.ids for row in rows], longest, padding, left=True),
            "attention_mask": stacked([torch.ones_like(row.ids) for row in rows], longest, left=True),
            "position_ids": stacked([row.positions for row in rows], longest, left=True),
            _CACHE: _cache(aligned),
        }
        return inputs, reused

    def _row(self, prompt: Prompt) -> Row:
        ids = prompt.inputs["input_ids"]
        text = {name: value for name, value in prompt.inputs.items() if not name.startswith("pixel")}
        features: dict[str, list[torch.Tensor]] = defaultdict(list)
        identities: dict[str, list[torch.Tensor]] = defaultdict(list)
        for media in prompt.media:
            base = int.from_bytes(media.content_hash[:7], "big")
            for modality, part in self._encoded(media).items():
                features[modality].append(part)
                identities[modality].append(-1 - base - torch.arange(part.shape[1]))
        keys, placeholders = ids[0].clone(), {}
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
            media=tuple(media.content_hash for media in prompt.media),
        )

    def _encoded(self, media: Media) -> dict[str, torch.Tensor]:
        """Embeddings of the placeholders by modality, (layers, placeholders, width): as the decoder's embedding
        layer takes them, then those that some models add after their first layers."""
        known = self._features.get(media.content_hash)
        if known is not None:
            self._usage["media_reused"] += media.count
            return known
        moved = on_device(media.inputs, self._model)
        outputs = self._model._prepare_multimodal_encoder_kwargs_for_generation(moved)["mm_encoder_outputs"]
        features = {}
        for modality, output in outputs.items():
            pooled = output["pooler_output"]
            self._forms[modality] = type(output), not isinstance(pooled, torch.Tensor)
            layers = [pooled, *(output.get("deepstack_features") or ())]
            features[modality] = torch.stack(
                [torch.cat([part.reshape(-1, part.shape[-1]) for part in layer]) for layer in layers]
            )
        self._usage["media_encoded"] += media.count
        self._features.add(media.content_hash, features)
        return features

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
        self._usage["prompt_tokens_computed"] += sum(map(len, rows)) - sum(reused)
        self._usage["prompt_tokens_reused"] += sum(reused)
        each = (len(rows), -1, -1, -1)
        layers = [(keys.expand(each), values.expand(each)) for keys, values in self._layers]
        return (layers if max(lengths) == shared else self._forward(rows, layers, shared, lengths)), reused

    def _forward(self, rows: Sequence[Row], layers: Layers, start: int, stops: Sequence[int]) -> Layers:
        """Keys and values with those of tokens ``start`` to before ``stops`` added; shorter rows are padded right. No
        token attends to later ones, so the padding changes nothing, and its own values are never read."""
        stop, parts = max(stops), list(zip(rows, stops, strict=True))
        features: dict[str, list[torch.Tensor]] = defaultdict(list)
        for row, last in parts:
            for modality, places in row.placeholders.items():
                before, shown = (int((places < token).sum()) for token in (start, last))
                if before < shown:
                    features[modality].append(torch.cat(row.features[modality], dim=1)[:, before:shown])
        encoded = {}
        for modality, given in features.items():
            kind, listed = self._forms[modality]
            pooled, *deep = ([layer] if listed else layer[None] for layer in torch.cat(given, dim=1))
            takes_deep = "deepstack_features" in getattr(kind, "__dataclass_fields__", ())  # even if there are none
            encoded[modality] = kind(pooler_output=pooled, **({"deepstack_features": deep} if takes_deep else {}))
        cache = _cache(layers)
        inputs = self._model.prepare_inputs_for_generation(
            stacked([row.ids[:, start:last] for row, last in parts], stop - start),
            **{_CACHE: cache},
            attention_mask=torch.ones((len(rows), stop), dtype=torch.long, device=self._model.device),
            position_ids=stacked([row.positions[..., start:last] for row, last in parts], stop - start),
            is_first_iteration=True,
            use_cache=True,
            mm_encoder_outputs=encoded,
            **{name: stacked([row.types[name][:, :last] for row, last in parts], stop) for name in rows[0].types},
        )
        self._model(**inputs, logits_to_keep=1, return_dict=True)
        return [(layer.keys, layer.values) for layer in cache.layers]


def _common(some: torch.Tensor, other: torch.Tensor) -> int:
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
