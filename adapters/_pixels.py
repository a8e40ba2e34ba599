"""Pixels as model inputs: each picture is preprocessed once, however many prompts show it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from transformers.image_utils import make_flat_list_of_images

from medtasks.core.cache import RecentlyUsed

KEPT_BYTES = 128 * 2**20
"""Bytes of prepared pixels, and of features on the device, beyond those of the current prompts."""

_DIGEST = "_medtasks_digest"
"""Attribute of a picture: cached pictures are shown in many prompts, and nothing changes them."""


def content_hash(images: Sequence[Image.Image]) -> bytes:
    """A hash of the pictures' modes, sizes and pixels."""
    total = hashlib.blake2b(digest_size=16)
    for image in images:
        if not hasattr(image, _DIGEST):
            content = f"{image.mode} {image.size}\0".encode() + image.tobytes()
            setattr(image, _DIGEST, hashlib.blake2b(content, digest_size=16).digest())
        total.update(getattr(image, _DIGEST))
    return total.digest()


def size_of(values: Mapping[str, Any]) -> int:
    """Bytes of the tensors among ``values``."""
    return sum(value.nbytes for value in values.values() if isinstance(value, torch.Tensor))


@dataclass(frozen=True)
class Media:
    """Pictures that the vision tower encodes together: one, or all pictures and videos of a prompt.

    ``inputs`` are their pixels as model inputs, ``content_hash`` is a hash of their content, and
    ``count`` the number of pictures and videos.
    """

    content_hash: bytes
    inputs: Mapping[str, Any]
    count: int


Join = Callable[[list[Any]], Any]
"""Joins the values of single pictures into the value of one prompt."""


def _one_below_the_other(values: list[Any]) -> Any:
    """Join tensors with a row for each picture or tile."""
    return torch.cat(values)


def _side_by_side(values: list[Any]) -> Any:
    """Join tensors of one row, with a column for each picture."""
    return torch.cat(values, dim=1)


def _in_one_list(values: list[Any]) -> Any:
    """Join lists with an entry for each picture."""
    joined: list[Any] = []
    for value in values:
        joined.extend(value)
    return joined


def _in_one_inner_list(values: list[Any]) -> Any:
    """Join lists of one list: one prompt's sizes, for example."""
    joined: list[Any] = []
    for value in values:
        joined.extend(value[0])
    return [joined]


_JOINS: tuple[Join, ...] = (
    _one_below_the_other,
    _side_by_side,
    _in_one_list,
    _in_one_inner_list,
)


class OncePerPicture:
    """Replaces a processor's ``image_processor``: same results, each picture prepared once.

    The prepared pictures of a prompt are in ``latest``. Some processors prepare lists otherwise
    than single pictures (LLaVA-OneVision cuts only a lone one into tiles), which the first call
    tests; they prepare a prompt's pictures together.
    """

    def __init__(self, inner: Any) -> None:
        """Prepare pictures by the image processor ``inner``."""
        self._inner = inner
        self._joins: dict[str, Join] | None = None
        self._is_tested = False
        self._kept: RecentlyUsed[bytes, Media] = RecentlyUsed(
            KEPT_BYTES, lambda media: size_of(media.inputs)
        )
        self.latest: list[Media] = []

    def __getattr__(self, name: str) -> Any:
        """The image processor's own attribute: processors read its settings."""
        return getattr(self._inner, name)

    def __call__(self, images: Any, **settings: Any) -> Any:
        """Prepared pixels as ``image_processor(images)`` returns them."""
        if not self._is_tested:
            self._joins = _joins_by_name(self._inner, settings)
            self._is_tested = True
        pictures = make_flat_list_of_images(images)
        if self._joins is None:
            self.latest = [self._prepared(pictures, settings)]
        else:
            self.latest = [self._prepared([picture], settings) for picture in pictures]
        self._kept.trim([media.content_hash for media in self.latest])
        return self._joined_inputs()

    def _joined_inputs(self) -> Any:
        """The inputs of the prompt, of the type that the image processor returns."""
        first = self.latest[0].inputs
        inputs_type: Any = type(first)
        if self._joins is None or len(self.latest) == 1:
            return inputs_type(dict(first))  # a copy: processors remove entries
        values: dict[str, Any] = {}
        for name, join in self._joins.items():
            values[name] = join([media.inputs[name] for media in self.latest])
        return inputs_type(values)

    def _prepared(self, pictures: list[Any], settings: Mapping[str, Any]) -> Media:
        """Pictures prepared together, once for all prompts that show them."""
        key = content_hash(pictures)
        media = self._kept.get(key)
        if media is None:
            media = Media(key, self._inner(images=[pictures], **settings), len(pictures))
            self._kept.add(key, media)
        return media


def _joins_by_name(inner: Any, settings: Mapping[str, Any]) -> dict[str, Join] | None:
    """How values of single pictures are joined; None if lists are prepared differently.

    To find out, two pictures are prepared together and alone.
    """
    gradient = Image.linear_gradient("L").convert("RGB")
    pictures = [gradient.resize((160, 120)), gradient.resize((90, 210))]
    joins: dict[str, Join] = {}
    try:
        together = inner(images=[pictures], **settings)
        alone = [inner(images=[[picture]], **settings) for picture in pictures]
        for name, expected in together.items():
            join = _join_that_gives(expected, [prepared[name] for prepared in alone])
            if join is None:
                return None
            joins[name] = join
    except (KeyError, TypeError, ValueError):
        return None
    return joins


def _join_that_gives(expected: Any, values: list[Any]) -> Join | None:
    """The way of joining ``values`` that gives ``expected`` exactly; None if none does."""
    for join in _JOINS:
        try:
            torch.testing.assert_close(join(values), expected, rtol=0, atol=0)
        except (AssertionError, IndexError, RuntimeError, TypeError, ValueError):
            continue
        return join
    return None
