"""Prompts that begin alike: their common part is computed once.

For many questions about one picture, the keys and values of the tokens that several prompts share
stay on the device; the rest of each prompt is added to a copy of them, and all prompts of a batch
continue as one left-padded batch, at the same positions as without sharing. A prefix common to
successive batches (a system prompt, an example, earlier frames of a stream) is kept, too.
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

from ._cached_layers import Layers, cache_over, copy_to_end, empty_layers
from ._pixels import KEPT_BYTES, Media, size_of
from ._reading import Prompt, is_of_pixels, on_device, stacked

_TOKEN_TYPES = ("token_type_ids", "mm_token_type_ids")
_ARGUMENTS = inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
_CACHE = "cache" if "cache" in _ARGUMENTS else "past_key_values"
"""The argument's name: ``cache`` since transformers 5.24."""


def refusal(model: Any) -> str | None:
    """Why models of this class cannot share prefixes; None if they can."""
    takes_encoded_media = getattr(model, "_supports_mm_encoder_outputs", None)
    if takes_encoded_media is None or not takes_encoded_media():
        return "its class takes no encoded media"
    unsupported: set[str] = set()
    for layer in DynamicCache(config=model.config.get_text_config(decoder=True)).layers:
        if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer):
            unsupported.add(type(layer).__name__)
    if not unsupported:
        return None
    return f"its cache is not one of keys and values alone ({', '.join(sorted(unsupported))})"


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt and its encoded media.

    ``identities`` has a number per token: its id, or for a placeholder a number of the media that
    it represents. Prompts whose identities agree up to some token have the same keys and values up
    to there. ``positions`` are (…, 1, tokens); ``features`` by modality are (layers, placeholders,
    width), and ``placeholders`` the places of their tokens.
    """

    prompt: Prompt
    identities: torch.Tensor
    positions: torch.Tensor
    features: dict[str, list[torch.Tensor]]
    placeholders: dict[str, torch.Tensor]


@dataclass(frozen=True)
class EncoderOutput:
    """The form in which a model's encoder returns a modality: its type, and whether in a list."""

    kind: type
    is_list: bool

    def rebuilt(self, layers: torch.Tensor) -> Any:
        """The encoder's output object for the features ``layers``, as if it had made them.

        ``layers`` are (layers, placeholders, width). The first layer becomes ``pooler_output``, the
        others ``deepstack_features``, for models that add them inside the decoder.
        """
        pooled, *deepstack = [self._with_media_axis(layer) for layer in layers]
        fields = getattr(self.kind, "__dataclass_fields__", ())
        if "deepstack_features" in fields:  # even if there are none
            return self.kind(pooler_output=pooled, deepstack_features=deepstack)
        return self.kind(pooler_output=pooled)

    def _with_media_axis(self, layer: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        """A layer (placeholders, width) as that of one medium: a list of it, or (1, …, width)."""
        return [layer] if self.is_list else layer.unsqueeze(0)


class SharedPrefix:
    """Prepares batches for ``generate`` with all but the last token of each prompt computed.

    ``usage`` counts the media and the prompt tokens that were computed and reused.
    """

    def __init__(self, model: Any, usage: dict[str, int]) -> None:
        """Begin without anything kept; ``usage`` is updated in place."""
        self._model = model
        self._usage = usage
        self._features: RecentlyUsed[bytes, dict[str, torch.Tensor]] = RecentlyUsed(
            KEPT_BYTES, size_of
        )
        self._encoder_outputs: dict[str, EncoderOutput] = {}
        self.forget()

    def forget(self) -> None:
        """Release everything on the device."""
        self._identities = torch.empty(0, dtype=torch.long)
        self._layers: Layers = []
        self._features.clear()

    def inputs(self, prompts: Sequence[Prompt], padding: int) -> tuple[dict[str, Any], list[int]]:
        """Arguments of ``generate`` for a left-padded batch, and the tokens each prompt reuses.

        Both are in the order of ``prompts``.
        """
        encoded = [self._encoded_prompt(prompt) for prompt in prompts]
        groups: dict[tuple[bytes, ...], list[int]] = defaultdict(list)
        for number, prompt in enumerate(prompts):
            groups[tuple(media.content_hash for media in prompt.media)].append(number)
        self._features.trim(set().union(*groups))
        longest = max(prompt.tokens for prompt in prompts)
        reused = [0] * len(prompts)
        # all but the last token of every prompt, right-aligned
        aligned: Layers = []
        for numbers in groups.values():
            layers, counts = self._compute_group([encoded[number] for number in numbers])
            if not aligned:
                aligned = empty_layers(layers, len(prompts), longest - 1)
            for row, (number, count) in enumerate(zip(numbers, counts, strict=True)):
                reused[number] = count
                copy_to_end(layers, row, aligned, number, prompts[number].tokens - 1)
        inputs = on_device(_left_padded(encoded, longest, padding), self._model)
        return {**inputs, _CACHE: cache_over(aligned)}, reused

    def _encoded_prompt(self, prompt: Prompt) -> EncodedPrompt:
        """The prompt with its media encoded, and what identifies each of its tokens."""
        ids = prompt.inputs["input_ids"]
        features: dict[str, list[torch.Tensor]] = defaultdict(list)
        media_identities: dict[str, list[torch.Tensor]] = defaultdict(list)
        for media in prompt.media:
            base = int.from_bytes(media.content_hash[:7], "big")
            for modality, encoded in self._encode(media).items():
                features[modality].append(encoded)
                # below 0, where no token's id is
                media_identities[modality].append(-1 - base - torch.arange(encoded.shape[1]))
        identities = ids[0].clone()
        placeholders: dict[str, torch.Tensor] = {}
        for modality, numbers in media_identities.items():
            token = getattr(self._model.config, f"{modality}_token_id")
            places = (ids[0] == token).nonzero().flatten()
            identities[places] = torch.cat(numbers)
            placeholders[modality] = places
        text = {name: value for name, value in prompt.inputs.items() if not is_of_pixels(name)}
        positions = self._model._prepare_position_ids_for_generation(ids, text)
        return EncodedPrompt(prompt, identities, positions, features, placeholders)

    def _encode(self, media: Media) -> dict[str, torch.Tensor]:
        """Embeddings by modality, (layers, placeholders, width).

        The first layer is for the decoder's embeddings.
        """
        cached = self._features.get(media.content_hash)
        if cached is not None:
            self._usage["media_reused"] += media.count
            return cached
        inputs = on_device(media.inputs, self._model)
        encoded = self._model._prepare_multimodal_encoder_kwargs_for_generation(inputs)
        features: dict[str, torch.Tensor] = {}
        for modality, output in encoded["mm_encoder_outputs"].items():
            pooled = output["pooler_output"]
            is_list = not isinstance(pooled, torch.Tensor)
            self._encoder_outputs[modality] = EncoderOutput(type(output), is_list)
            layers: list[torch.Tensor] = []
            for layer in (pooled, *(output.get("deepstack_features") or ())):
                layers.append(torch.cat([part.reshape(-1, part.shape[-1]) for part in layer]))
            features[modality] = torch.stack(layers)
        self._usage["media_encoded"] += media.count
        self._features.add(media.content_hash, features)
        return features

    def _compute_group(self, rows: Sequence[EncodedPrompt]) -> tuple[Layers, list[int]]:
        """Keys and values of prompts with the same media, and how many tokens each prompt reuses.

        The keys and values of a layer are (prompts, heads, tokens, width), right-padded. Each
        prompt's last token is missing: ``generate`` computes it.
        """
        lengths = [row.prompt.tokens - 1 for row in rows]
        first = rows[0]
        shared = min(lengths)
        for row in rows[1:]:
            shared = min(shared, _common_length(first.identities, row.identities))
        # of the prefix that earlier batches left on the device
        kept = min(_common_length(self._identities, first.identities), shared)
        self._layers = [(keys[:, :, :kept], values[:, :, :kept]) for keys, values in self._layers]
        if kept < shared:
            self._layers = self._forward([first], self._layers, kept, [shared])
        self._identities = first.identities[:shared]
        reused = [kept, *[shared] * (len(rows) - 1)]
        all_tokens = sum(row.prompt.tokens for row in rows)
        self._usage["prompt_tokens_computed"] += all_tokens - sum(reused)
        self._usage["prompt_tokens_reused"] += sum(reused)
        one_row_per_prompt = (len(rows), -1, -1, -1)  # -1 leaves a dimension as it is
        layers: Layers = []
        for keys, values in self._layers:
            layers.append((keys.expand(one_row_per_prompt), values.expand(one_row_per_prompt)))
        if max(lengths) > shared:
            layers = self._forward(rows, layers, shared, lengths)
        return layers, reused

    def _forward(
        self, rows: Sequence[EncodedPrompt], layers: Layers, start: int, stops: Sequence[int]
    ) -> Layers:
        """Keys and values with the tokens from ``start`` to before ``stops`` added.

        Padding is right, where none attends.
        """
        stop = max(stops)
        positions: list[torch.Tensor] = []
        for row, row_stop in zip(rows, stops, strict=True):
            positions.append(row.positions[..., start:row_stop])
        inputs = {
            "input_ids": _tokens_between(rows, "input_ids", start, stops),
            "attention_mask": torch.ones((len(rows), stop), dtype=torch.long),
            "position_ids": stacked(positions, stop - start),
        }
        for name in _TOKEN_TYPES:
            if name in rows[0].prompt.inputs:
                inputs[name] = _tokens_between(rows, name, 0, stops)
        cache = cache_over(layers)
        settings = {
            _CACHE: cache,
            "is_first_iteration": True,
            "use_cache": True,
            "mm_encoder_outputs": self._features_between(rows, start, stops),
        }
        prepared = self._model.prepare_inputs_for_generation(
            **on_device(inputs, self._model), **settings
        )
        self._model(**prepared, logits_to_keep=1, return_dict=True)
        return [(layer.keys, layer.values) for layer in cache.layers]

    def _features_between(
        self, rows: Sequence[EncodedPrompt], start: int, stops: Sequence[int]
    ) -> dict[str, Any]:
        """The encoder's output for the placeholders from ``start`` to before ``stops``."""
        features: dict[str, list[torch.Tensor]] = defaultdict(list)
        for row, row_stop in zip(rows, stops, strict=True):
            for modality, places in row.placeholders.items():
                first = int((places < start).sum())
                end = int((places < row_stop).sum())
                if first < end:
                    all_features = torch.cat(row.features[modality], dim=1)
                    features[modality].append(all_features[:, first:end])
        outputs: dict[str, Any] = {}
        for modality, parts in features.items():
            outputs[modality] = self._encoder_outputs[modality].rebuilt(torch.cat(parts, dim=1))
        return outputs


def _left_padded(
    rows: Sequence[EncodedPrompt], length: int, padding: int
) -> dict[str, torch.Tensor]:
    """Tokens, attention mask and positions of whole prompts, padded left to ``length``."""
    ids = [row.prompt.inputs["input_ids"] for row in rows]
    masks = [torch.ones_like(tokens) for tokens in ids]
    positions = [row.positions for row in rows]
    return {
        "input_ids": stacked(ids, length, padding, left=True),
        "attention_mask": stacked(masks, length, left=True),
        "position_ids": stacked(positions, length, left=True),
    }


def _tokens_between(
    rows: Sequence[EncodedPrompt], name: str, start: int, stops: Sequence[int]
) -> torch.Tensor:
    """The input ``name`` of all rows from ``start`` to before ``stops``, padded right."""
    parts: list[torch.Tensor] = []
    for row, stop in zip(rows, stops, strict=True):
        parts.append(row.prompt.inputs[name][:, start:stop])
    return stacked(parts, max(stops) - start)


def _common_length(first: torch.Tensor, second: torch.Tensor) -> int:
    """The number of equal elements before the first that differ."""
    length = min(len(first), len(second))
    differing = (first[:length] != second[:length]).nonzero()
    return int(differing[0]) if len(differing) else length
