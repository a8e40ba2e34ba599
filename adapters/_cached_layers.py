"""Keys and values of a model's layers: empty ones, copies of rows, and a cache over them."""

from __future__ import annotations

from typing import TypeAlias

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

Layers: TypeAlias = "list[tuple[torch.Tensor, torch.Tensor]]"
"""Keys and values of each layer, (rows, heads, tokens, width)."""


def empty_layers(layers: Layers, rows: int, tokens: int) -> Layers:
    """Zeros for ``rows`` and ``tokens``, otherwise in the shape of ``layers``."""
    empty: Layers = []
    for keys, values in layers:
        empty.append(
            (
                keys.new_zeros((rows, keys.shape[1], tokens, keys.shape[3])),
                values.new_zeros((rows, values.shape[1], tokens, values.shape[3])),
            )
        )
    return empty


def copy_to_end(layers: Layers, row: int, target: Layers, target_row: int, length: int) -> None:
    """Copy the first ``length`` tokens of a row to the end of a row of ``target``."""
    for (keys, values), (target_keys, target_values) in zip(layers, target, strict=True):
        begin = target_keys.shape[2] - length
        target_keys[target_row, :, begin:] = keys[row, :, :length]
        target_values[target_row, :, begin:] = values[row, :, :length]


def cache_over(layers: Layers) -> DynamicCache:
    """A cache over ``layers`` without copying them; sliding-window layers keep all tokens, too."""
    cache = DynamicCache()
    for keys, values in layers:
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys = keys
        layer.values = values
        cache.layers.append(layer)
    return cache
