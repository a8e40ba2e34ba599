"""Each picture is preprocessed and encoded once, however many prompts show it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image

from medtasks.core.cache import RecentlyUsed

KEPT_BYTES = 128 * 2**20
"""Cache limit, each for prepared pixels and for features on the device, beyond those of the current prompts."""

Join = Callable[[list[Any]], Any]
"""Joins the values of single pictures into the value of one prompt."""


_DIGEST = "_medtasks_digest"
"""Attribute of a picture: cached ones are shown in many prompts, and nobody changes them."""


def digest(images: Sequence[Image.Image]) -> bytes:
    """A digest of the pictures' modes, sizes and pixels."""
    total = hashlib.blake2b(digest_size=16)
    for image in images:
        if not hasattr(image, _DIGEST):
            content = f"{image.mode} {image.size}\0".encode() + image.tobytes()
            setattr(image, _DIGEST, hashlib.blake2b(content, digest_size=16).digest())
        total.update(getattr(image, _DIGEST))
    return total.digest()


@dataclass(frozen=True)
class Unit:
    """Media that the vision tower encodes together: one picture, or all media of a prompt.

    ``inputs`` are its pixels as model inputs, ``content_hash`` is one of its content, ``count`` the number of pictures
    and videos.
    """

    content_hash: bytes
    inputs: Mapping[str, Any]
    count: int


class OncePerPicture:
    """Replaces a processor's ``image_processor``: same results, each picture prepared once.

    Pictures are prepared one by one if the image processor treats them independently, which the first call tests with
    two generated ones; otherwise (LLaVA-OneVision cuts a lone picture into tiles, but not those of a list) a prompt's
    pictures are prepared together, once for all prompts that show the same ones.

    Each call takes the pictures of one prompt. ``latest`` has the digests of the last call and their prepared pixels,
    in a single entry if they were prepared together.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._joins: dict[str, Join] | None = None
        self._tried = False
        self._kept: RecentlyUsed[bytes, Any] = RecentlyUsed(KEPT_BYTES, _size)
        self.latest: list[tuple[bytes, Any]] = []
        self._joined: tuple[list[bytes], Any] = ([], None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, images: Any, **settings: Any) -> Any:
        """Prepared pixels as ``image_processor(images)`` returns them."""
        if not self._tried:
            self._joins, self._tried = _independent(self._inner, settings), True
        pictures = _pictures_in(images)
        parts = [pictures] if self._joins is None else [[picture] for picture in pictures]
        self.latest = [self._prepare(part, settings) for part in parts]
        shown = [key for key, _ in self.latest]
        self._kept.trim(shown)
        if shown != self._joined[0]:
            self._joined = (shown, self._join([found for _, found in self.latest]))
        return type(self._joined[1])(dict(self._joined[1]))  # a copy: processors remove entries

    def _join(self, prepared: list[Any]) -> Any:
        if self._joins is None or len(prepared) == 1:
            return prepared[0]
        return type(prepared[0])({name: join([one[name] for one in prepared]) for name, join in self._joins.items()})

    def _prepare(self, pictures: list[Image.Image], settings: Mapping[str, Any]) -> tuple[bytes, Any]:
        key = digest(pictures)
        prepared = self._kept.get(key)
        if prepared is None:
            prepared = self._inner(images=[pictures], **settings)
            self._kept.add(key, prepared)
        return key, prepared


def _pictures_in(images: Any) -> list[Image.Image]:
    return [one for part in images for one in _pictures_in(part)] if isinstance(images, (list, tuple)) else [images]


def _size(prepared: Mapping[str, Any]) -> int:
    return sum(value.nbytes for value in prepared.values() if isinstance(value, torch.Tensor))


def _independent(inner: Any, settings: Mapping[str, Any]) -> dict[str, Join] | None:
    """How values of single pictures are joined, by name; None if lists are prepared differently."""
    pictures = [Image.linear_gradient("L").convert("RGB").resize(size) for size in ((160, 120), (90, 210))]
    try:
        both, *alone = (inner(images=[part], **settings) for part in (pictures, pictures[:1], pictures[1:]))
        joins = {name: _join_of(value, [one[name] for one in alone]) for name, value in both.items()}
    except (KeyError, TypeError, ValueError):
        return None
    return None if None in joins.values() else joins  # type: ignore[return-value]


_JOINS: tuple[Join, ...] = (
    torch.cat,
    lambda values: torch.cat(values, dim=1),
    lambda values: [one for value in values for one in value],
    lambda values: [[one for value in values for one in value[0]]],
)


def _join_of(expected: Any, values: list[Any]) -> Join | None:
    for join in _JOINS:
        try:
            if _same(join(values), expected):
                return join
        except (IndexError, RuntimeError, TypeError):
            continue
    return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return bool(torch.equal(one, other))
    return type(one) is type(other) and bool(one == other)


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


class Vision:
    """The vision tower of a model that takes encoded media (``mm_encoder_outputs``).

    ``encoded`` counts the pictures and videos encoded, ``reused`` those ``kept`` from before.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.kept: RecentlyUsed[bytes, dict[str, Features]] = RecentlyUsed(KEPT_BYTES, _features_size)
        self.encoded = 0
        self.reused = 0

    def features(self, unit: Unit) -> dict[str, Features]:
        """Features by modality (``image``, ``video``)."""
        features = self.kept.get(unit.content_hash)
        if features is not None:
            self.reused += unit.count
            return features
        features = self._encode(unit)
        self.encoded += unit.count
        self.kept.add(unit.content_hash, features)
        return features

    def _encode(self, unit: Unit) -> dict[str, Features]:
        model = self._model
        moved: dict[str, Any] = {
            name: value.to(model.device, model.dtype if value.is_floating_point() else None)
            for name, value in unit.inputs.items()
            if isinstance(value, torch.Tensor)
        }
        outputs = model._prepare_multimodal_encoder_kwargs_for_generation(moved)["mm_encoder_outputs"]
        return {modality: _features(output) for modality, output in outputs.items()}


def _features_size(features: Mapping[str, Features]) -> int:
    return sum(tensor.nbytes for part in features.values() for tensor in (part.pooled, *part.deep))


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
    if "deepstack_features" in getattr(first.kind, "__dataclass_fields__", ()):  # a model may have none of these layers
        found["deepstack_features"] = [
            presented(list(layer)) for layer in zip(*(part.deep for part in parts), strict=True)
        ]
    return first.kind(**found)
