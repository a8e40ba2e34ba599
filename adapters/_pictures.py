"""Preparing pixels once: a picture shown in many prompts is resized and normalised for the first of them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from PIL import Image

KEPT_BYTES = 512 * 2**20
"""Prepared pixels that are kept, beside those of the current prompt."""

Join = Callable[[list[Any]], Any]
"""Joins the values of single pictures to the value of one prompt."""


def digest(images: Sequence[Image.Image]) -> bytes:
    """A digest of what the pictures show."""
    total = hashlib.blake2b(digest_size=16)
    for image in images:
        total.update(f"{image.mode} {image.size}\0".encode())
        total.update(image.tobytes())
    return total.digest()


class OncePerPicture:
    """Replaces a processor's ``image_processor``: same results, each picture prepared once.

    Pictures are prepared one by one if the image processor treats them independently, which the first call tests with
    two generated ones; otherwise (LLaVA-OneVision cuts a lone picture into tiles, but not those of a list) a prompt's
    pictures are prepared together, once for all prompts that show the same ones.

    Each call takes the pictures of one prompt. ``latest`` holds the digests of the last call and their prepared
    pixels, in a single entry if they were prepared together.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._joins: dict[str, Join] | None = None
        self._tried = False
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self.latest: list[tuple[bytes, Any]] = []
        self._joined: tuple[list[bytes], Any] = ([], None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, images: Any, **settings: Any) -> Any:
        """Prepared pixels as ``image_processor(images)`` returns them."""
        if not self._tried:
            self._joins, self._tried = _independent(self._inner, settings), True
        pictures = _flat(images)
        parts = [pictures] if self._joins is None else [[picture] for picture in pictures]
        self.latest = [self._prepare(part, settings) for part in parts]
        self._forget_oldest()
        shown = [key for key, _ in self.latest]
        if shown != self._joined[0]:
            self._joined = (shown, self._join([found for _, found in self.latest]))
        return type(self._joined[1])(dict(self._joined[1]))  # processors take entries out

    def _join(self, prepared: list[Any]) -> Any:
        if self._joins is None or len(prepared) == 1:
            return prepared[0]
        return type(prepared[0])({name: join([one[name] for one in prepared]) for name, join in self._joins.items()})

    def _prepare(self, pictures: list[Image.Image], settings: Mapping[str, Any]) -> tuple[bytes, Any]:
        key = digest(pictures)
        if key not in self._kept:
            self._kept[key] = self._inner(images=[pictures], **settings)
        self._kept.move_to_end(key)
        return key, self._kept[key]

    def _forget_oldest(self) -> None:
        needed = {key for key, _ in self.latest}
        total = sum(map(_size, self._kept.values()))
        for key in [key for key in self._kept if key not in needed]:
            if total <= KEPT_BYTES:
                break
            total -= _size(self._kept.pop(key))


def _flat(images: Any) -> list[Image.Image]:
    return [one for part in images for one in _flat(part)] if isinstance(images, (list, tuple)) else [images]


def _size(prepared: Mapping[str, Any]) -> int:
    return sum(value.nbytes for value in prepared.values() if isinstance(value, torch.Tensor))


def _independent(inner: Any, settings: Mapping[str, Any]) -> dict[str, Join] | None:
    """How values of single pictures are joined, by name; None if a list is not prepared like its pictures alone."""
    pictures = [Image.linear_gradient("L").convert("RGB").resize(size) for size in ((160, 120), (90, 210))]
    try:
        both, *alone = (inner(images=[part], **settings) for part in (pictures, pictures[:1], pictures[1:]))
        joins = {name: _join_of(value, [one[name] for one in alone]) for name, value in both.items()}
    except (KeyError, TypeError, ValueError):
        return None
    return None if None in joins.values() else joins  # type: ignore[return-value]


def _join_of(expected: Any, values: list[Any]) -> Join | None:
    for join in (_rows, _columns, _listed, _nested):
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


def _rows(values: list[Any]) -> Any:
    return torch.cat(values)


def _columns(values: list[Any]) -> Any:
    return torch.cat(values, dim=1)


def _listed(values: list[Any]) -> Any:
    return [one for value in values for one in value]


def _nested(values: list[Any]) -> Any:
    return [[one for value in values for one in value[0]]]
