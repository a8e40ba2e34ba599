"""Features of pictures from the vision tower, kept so that it sees each picture once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ._reading import Unit

KEPT_BYTES = 512 * 2**20
"""Features kept on the device, beside those of the current prompts."""


@dataclass(frozen=True)
class Features:
    """Embeddings of one unit's placeholders, (placeholders, width), as the decoder's embedding layer takes them.

    ``deep`` are those that some models add after their first layers. The model takes them as an object of class
    ``kind``, as a list of tensors if ``listed``, else as one tensor.
    """

    pooled: torch.Tensor
    deep: tuple[torch.Tensor, ...]
    kind: type
    listed: bool

    def part(self, start: int, stop: int) -> Features:
        """Features of the placeholders ``start`` to before ``stop``."""
        deep = tuple(layer[start:stop] for layer in self.deep)
        return Features(self.pooled[start:stop], deep, self.kind, self.listed)

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in (self.pooled, *self.deep))


class Vision:
    """The vision tower of a model that takes encoded media (``mm_encoder_outputs``).

    ``encoded`` counts the pictures and videos that it encoded, ``reused`` those whose features were kept.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._kept: OrderedDict[bytes, dict[str, Features]] = OrderedDict()
        self.encoded = 0
        self.reused = 0

    def features(self, unit: Unit) -> dict[str, Features]:
        """Features by modality (``image``, ``video``)."""
        known = unit.identity in self._kept
        self.encoded += 0 if known else unit.count
        self.reused += unit.count if known else 0
        if not known:
            self._kept[unit.identity] = self._encode(unit)
        self._kept.move_to_end(unit.identity)
        return self._kept[unit.identity]

    def trim(self, needed: Iterable[bytes]) -> None:
        """Drop the least recently used features if there are too many; those ``needed`` stay."""
        protected = set(needed)
        sizes = {key: sum(part.nbytes for part in found.values()) for key, found in self._kept.items()}
        total = sum(sizes.values())
        for key in [key for key in self._kept if key not in protected]:
            if total <= KEPT_BYTES:
                break
            total -= sizes[key]
            del self._kept[key]

    def forget(self) -> None:
        """Drop all features."""
        self._kept.clear()

    def free(self) -> None:
        """Release the model, too."""
        self.forget()
        del self._model

    def _encode(self, unit: Unit) -> dict[str, Features]:
        model = self._model
        moved: dict[str, Any] = {
            name: value.to(model.device, model.dtype if value.is_floating_point() else None)
            for name, value in unit.inputs.items()
            if isinstance(value, torch.Tensor)
        }
        outputs = model._prepare_multimodal_encoder_kwargs_for_generation(moved)["mm_encoder_outputs"]
        return {modality: _features(output) for modality, output in outputs.items()}


def _features(output: Any) -> Features:
    pooled = output["pooler_output"]
    deep = tuple(_flat(layer) for layer in output.get("deepstack_features") or ())
    return Features(_flat(pooled), deep, type(output), not isinstance(pooled, torch.Tensor))


def _flat(embeddings: Any) -> torch.Tensor:
    return torch.cat([part.reshape(-1, part.shape[-1]) for part in embeddings])


def as_encoder_output(parts: Mapping[str, list[Features]]) -> dict[str, Any]:
    """Features by modality, in the order of their placeholders, as ``mm_encoder_outputs``."""
    return {modality: _joined(some) for modality, some in parts.items() if some}


def _joined(parts: list[Features]) -> Any:
    first = parts[0]

    def presented(tensors: list[torch.Tensor]) -> Any:
        joined = torch.cat(tensors)
        return [joined] if first.listed else joined[None]

    found = {"pooler_output": presented([part.pooled for part in parts])}
    if first.deep:
        found["deepstack_features"] = [
            presented(list(layer)) for layer in zip(*(part.deep for part in parts), strict=True)
        ]
    return first.kind(**found)
