"""From messages to the model's inputs: chat template, pixels, tokens, and prompts padded to one
batch.

Each picture is preprocessed once, however many prompts show it. For many questions about one
picture, the common part is computed once: the keys and values of the tokens that several prompts
share stay on the device; the rest of each prompt is added to a copy of them, and all prompts of a
batch continue as one left-padded batch, at the same positions as without sharing. A prefix common
to successive batches (a system prompt, an example, earlier frames of a stream) is kept, too.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jinja2 import TemplateError
from PIL import Image
from transformers import DynamicCache, GenerationMixin
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.image_utils import make_flat_list_of_images
from transformers.video_utils import VideoMetadata

from medtasks.core.cache import RecentlyUsed
from medtasks.core.errors import DataError

from ._base import Messages, media_in

KEPT_BYTES = (
    128 * 2**20
)  # of prepared pixels, and of features on the device, beyond those of the current prompts

Join = Callable[[list[Any]], Any]
"""Joins the values of single pictures into the value of one prompt."""
_JOINS: tuple[Join, ...] = (
    torch.cat,
    lambda values: torch.cat(values, dim=1),
    lambda values: [one for value in values for one in value],
    lambda values: [[one for value in values for one in value[0]]],
)
_DIGEST = "_medtasks_digest"  # attribute of a picture: cached ones are shown in many prompts, and nobody changes them


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
    """What the vision tower encodes together: one picture, or all pictures and videos of a prompt.
    ``inputs`` are its pixels as model inputs, ``content_hash`` is one of its content, ``count`` the
    number of pictures and videos.
    """

    content_hash: bytes
    inputs: Mapping[str, Any]
    count: int


class OncePerPicture:
    """Replaces a processor's ``image_processor``: same results, each picture prepared once, and
    kept in ``latest`` for the prompt. Where lists are prepared otherwise than single pictures
    (LLaVA-OneVision cuts only a lone one into tiles), which the first call tests, a prompt's
    pictures are prepared together.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._joins: dict[str, Join] | None = None
        self._tried = False
        self._kept: RecentlyUsed[bytes, Media] = RecentlyUsed(
            KEPT_BYTES, lambda media: size_of(media.inputs)
        )
        self.latest: list[Media] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, images: Any, **settings: Any) -> Any:
        """Prepared pixels as ``image_processor(images)`` returns them."""
        if not self._tried:
            self._joins, self._tried = _independent(self._inner, settings), True
        pictures = make_flat_list_of_images(images)
        self.latest = []
        for part in [pictures] if self._joins is None else [[picture] for picture in pictures]:
            key = content_hash(part)
            media = self._kept.get(key)
            if media is None:
                media = Media(key, self._inner(images=[part], **settings), len(part))
                self._kept.add(key, media)
            self.latest.append(media)
        self._kept.trim([media.content_hash for media in self.latest])
        made: Any = type(self.latest[0].inputs)
        values = dict(self.latest[0].inputs)  # a copy: processors remove entries
        if self._joins is not None and len(self.latest) > 1:
            values = {
                name: join([media.inputs[name] for media in self.latest])
                for name, join in self._joins.items()
            }
        return made(values)


def _independent(inner: Any, settings: Mapping[str, Any]) -> dict[str, Join] | None:
    """How values of single pictures are joined, by name; None if lists are prepared differently."""

    def makes(join: Join, values: list[Any], expected: Any) -> bool:
        try:
            torch.testing.assert_close(join(values), expected, rtol=0, atol=0)
        except (AssertionError, IndexError, RuntimeError, TypeError, ValueError):
            return False
        return True

    pictures = [
        Image.linear_gradient("L").convert("RGB").resize(size) for size in ((160, 120), (90, 210))
    ]
    try:
        both, *alone = (
            inner(images=[part], **settings) for part in (pictures, pictures[:1], pictures[1:])
        )
        return {
            name: next(
                join
                for join in _JOINS
                if makes(join, [prepared[name] for prepared in alone], value)
            )
            for name, value in both.items()
        }
    except (KeyError, TypeError, ValueError, StopIteration):
        return None


@dataclass(frozen=True)
class Prompt:
    """Messages as model inputs, a batch of one row on the CPU, and their media. ``vision_tokens``
    stand for pictures and frames, None if their ids are unknown; ``seconds`` were spent on the
    media.
    """

    messages: Messages
    options: tuple[str, ...]
    inputs: Mapping[str, Any]
    media: tuple[Media, ...]
    vision_tokens: int | None
    seconds: float = 0.0

    @property
    def kinds(self) -> set[str]:
        """The kinds of parts that its messages have."""
        return {part["type"] for message in self.messages for part in message["content"]}

    @property
    def tokens(self) -> int:
        return int(self.inputs["input_ids"].shape[1])


class Reader:
    """Encodes messages, one prompt at a time; thread-safe. The processor is copied: encoding
    changes the padding of a tokenizer that another thread may be using.
    """

    def __init__(self, processor: Any, config: Any) -> None:
        self._processor = copy.deepcopy(processor)
        self._pictures = OncePerPicture(self._processor.image_processor)
        self._processor.image_processor = self._pictures
        self._longest = getattr(
            config.get_text_config(decoder=True), "max_position_embeddings", None
        )
        named = (getattr(config, f"{modality}_token_id", None) for modality in ("image", "video"))
        self._placeholders = [token for token in named if token is not None]
        self._lock = threading.Lock()

    def prompt(self, messages: Messages, options: tuple[str, ...] = (), *, whole: bool) -> Prompt:
        """Encode messages; unless the prompt is ``whole``, its pixels are in its media only, which
        prompts share.
        """
        images = [part["image"] for part in media_in(messages, "image")]
        videos = media_in(messages, "video")
        processor, start = self._processor, self._processor.tokenizer.bos_token
        try:
            with self._lock:
                self._pictures.latest = []
                text = processor.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=True
                )
                encoded = processor(
                    text=[text],
                    images=[images] if images else None,
                    **video_inputs(videos),
                    return_tensors="pt",
                    # the template may already write the start token
                    add_special_tokens=start is None or not text.startswith(start),
                )
                inputs, media = dict(encoded), tuple(self._pictures.latest)
        except (
            ValueError,
            TemplateError,
        ) as error:  # raised by processors and templates on invalid input
            raise DataError(str(error)) from error
        tokens = int(inputs["input_ids"].shape[1])
        if self._longest is not None and tokens >= self._longest:
            raise DataError(
                f"the prompt has {tokens:,} tokens, but the model reads at most {self._longest:,}, "
                "its answer included; lower max_pixels"
            )
        if videos:
            shown = content_hash(
                [*images, *(frame for video in videos for frame in video["video"])]
            )
            times = repr([video["times"] for video in videos]).encode()
            media = (Media(shown + times, inputs, len(images) + len(videos)),)
        seen = None if media else 0
        if self._placeholders:
            seen = int(torch.isin(inputs["input_ids"], torch.tensor(self._placeholders)).sum())
        kept = {
            name: value for name, value in inputs.items() if whole or not name.startswith("pixel")
        }
        return Prompt(messages, options, kept, media, seen)


def video_inputs(videos: list[dict[str, Any]]) -> dict[str, Any]:
    """Processor arguments for videos whose frames are already chosen, with times in
    milliseconds.
    """
    if not videos:
        return {}
    metadata = []
    for video in videos:
        times = [round(time * 1000) for time in video["times"]]
        length = times[-1] - times[0]
        about = VideoMetadata(
            total_num_frames=length + 1, fps=1000.0, duration=length / 1000, frames_indices=times
        )
        metadata.append(about)
    return {
        "videos": [video["video"] for video in videos],
        "video_metadata": metadata,
        "do_sample_frames": False,
    }


def padded(prompts: Sequence[Prompt], padding: int, model: Any) -> dict[str, Any]:
    """One batch of ``prompts`` on the model's device: tokens padded left, media one after the
    other. If prompts have different numbers of tiles, the missing ones are zeros, as in
    processors.
    """
    length = max(prompt.tokens for prompt in prompts)
    batch: dict[str, Any] = {}
    for name in prompts[0].inputs:
        values = [prompt.inputs[name] for prompt in prompts]
        if not isinstance(values[0], torch.Tensor):
            batch[name] = [one for value in values for one in value]
        elif name in ("input_ids", "attention_mask") or name.endswith("token_type_ids"):
            batch[name] = stacked(values, length, padding if name == "input_ids" else 0, left=True)
        else:
            largest = [
                max(sizes) for sizes in zip(*(value.shape[1:] for value in values), strict=True)
            ]
            for number, value in enumerate(values):
                missing = [want - have for have, want in zip(value.shape[1:], largest, strict=True)]
                if any(missing):  # torch takes both sides of each dimension, the last one first
                    sides = [side for count in reversed(missing) for side in (0, count)]
                    values[number] = torch.nn.functional.pad(value, sides)
            batch[name] = torch.cat(values)
    return {**batch, **on_device(batch, model)}


def on_device(inputs: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """The tensors among ``inputs`` on the model's device, floating-point ones in its precision."""
    return {
        name: value.to(model.device, model.dtype if value.is_floating_point() else None)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }


def stacked(
    tensors: Sequence[torch.Tensor], length: int, padding: int = 0, *, left: bool = False
) -> torch.Tensor:
    """Rows of (…, 1, tokens) as (…, rows, length)."""
    missing = [length - tensor.shape[-1] for tensor in tensors]
    sides = [(count, 0) if left else (0, count) for count in missing]
    padded = [
        torch.nn.functional.pad(one, side, value=padding)
        for one, side in zip(tensors, sides, strict=True)
    ]
    return torch.cat(padded, dim=-2)


# --- shared prefixes ---

Layers = list[tuple[torch.Tensor, torch.Tensor]]  # keys and values, (rows, heads, tokens, width)
_TOKEN_TYPES = ("token_type_ids", "mm_token_type_ids")
_NAMES = inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
_CACHE = "cache" if "cache" in _NAMES else "past_key_values"  # ``cache`` since transformers 5.24


def refusal(model: Any) -> str | None:
    """Why models of this class cannot share prefixes; None if they can."""
    if not getattr(model, "_supports_mm_encoder_outputs", lambda: False)():
        return "its class takes no encoded media"
    layers = DynamicCache(config=model.config.get_text_config(decoder=True)).layers
    other = {
        type(layer).__name__
        for layer in layers
        if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer)
    }
    return (
        f"its cache is not one of keys and values alone ({', '.join(sorted(other))})"
        if other
        else None
    )


@dataclass(frozen=True)
class Row:
    """A prompt and its encoded media. Rows whose ``keys`` (tokens; for placeholders, the media they
    show) agree up to some token have the same keys and values up to there. ``positions`` are (…, 1,
    tokens), ``features`` by modality (layers, placeholders, width).
    """

    prompt: Prompt
    keys: torch.Tensor
    positions: torch.Tensor
    features: dict[str, list[torch.Tensor]]
    placeholders: dict[str, torch.Tensor]


class SharedPrefix:
    """Prepares batches for ``generate`` with all but the last token of each prompt already
    computed. ``usage`` counts the media and the prompt tokens that were computed and reused.
    """

    def __init__(self, model: Any, usage: dict[str, int]) -> None:
        self._model = model
        self._usage = usage
        self._features: RecentlyUsed[bytes, dict[str, torch.Tensor]] = RecentlyUsed(
            KEPT_BYTES, size_of
        )
        self._forms: dict[str, tuple[type, bool]] = {}
        self.forget()

    def forget(self) -> None:
        """Release everything on the device."""
        self._keys = torch.empty(0, dtype=torch.long)
        self._layers: Layers = []
        self._features.clear()

    def inputs(self, prompts: Sequence[Prompt], padding: int) -> tuple[dict[str, Any], list[int]]:
        """Arguments of ``generate`` for a left-padded batch of ``prompts``, in their order; the
        tokens that each reuses.
        """
        rows = [self._row(prompt) for prompt in prompts]
        groups: dict[tuple[bytes, ...], list[int]] = defaultdict(list)
        for number, prompt in enumerate(prompts):
            groups[tuple(media.content_hash for media in prompt.media)].append(number)
        self._features.trim({content_hash for hashes in groups for content_hash in hashes})
        longest = max(prompt.tokens for prompt in prompts)
        reused: list[int] = [0] * len(rows)
        aligned: list[Any] = []
        for numbers in groups.values():
            layers, counts = self._computed([rows[number] for number in numbers])
            if not aligned:  # all but the last token of every row, right-aligned
                aligned = [
                    tuple(
                        part.new_zeros((len(rows), part.shape[1], longest - 1, part.shape[3]))
                        for part in layer
                    )
                    for layer in layers
                ]
            for place, (number, count) in enumerate(zip(numbers, counts, strict=True)):
                reused[number], length = count, prompts[number].tokens - 1
                for whole, layer in zip(aligned, layers, strict=True):
                    for target, part in zip(whole, layer, strict=True):
                        target[number, :, longest - 1 - length :] = part[place, :, :length]
        ids = [prompt.inputs["input_ids"] for prompt in prompts]
        inputs = {
            "input_ids": stacked(ids, longest, padding, left=True),
            "attention_mask": stacked([torch.ones_like(row) for row in ids], longest, left=True),
            "position_ids": stacked([row.positions for row in rows], longest, left=True),
        }
        return {**on_device(inputs, self._model), _CACHE: _cache(aligned)}, reused

    def _row(self, prompt: Prompt) -> Row:
        ids = prompt.inputs["input_ids"]
        text = {
            name: value for name, value in prompt.inputs.items() if not name.startswith("pixel")
        }
        features: dict[str, list[torch.Tensor]] = defaultdict(list)
        identities: dict[str, list[torch.Tensor]] = defaultdict(list)
        for media in prompt.media:
            base = int.from_bytes(media.content_hash[:7], "big")
            for modality, part in self._encoded(media).items():
                features[modality].append(part)
                identities[modality].append(-1 - base - torch.arange(part.shape[1]))
        keys, placeholders = ids[0].clone(), {}
        for modality, named in identities.items():
            places = (
                (ids[0] == getattr(self._model.config, f"{modality}_token_id")).nonzero().flatten()
            )
            keys[places] = torch.cat(named)
            placeholders[modality] = places
        positions = self._model._prepare_position_ids_for_generation(ids, text)
        return Row(prompt, keys, positions, features, placeholders)

    def _encoded(self, media: Media) -> dict[str, torch.Tensor]:
        """Embeddings by modality, (layers, placeholders, width); the first layer is for the
        decoder's embeddings.
        """
        known = self._features.get(media.content_hash)
        if known is not None:
            self._usage["media_reused"] += media.count
            return known
        moved = on_device(media.inputs, self._model)
        outputs = self._model._prepare_multimodal_encoder_kwargs_for_generation(moved)[
            "mm_encoder_outputs"
        ]
        features = {}
        for modality, output in outputs.items():
            pooled = output["pooler_output"]
            self._forms[modality] = type(output), not isinstance(pooled, torch.Tensor)
            layers = [pooled, *(output.get("deepstack_features") or ())]
            features[modality] = torch.stack(
                [
                    torch.cat([part.reshape(-1, part.shape[-1]) for part in layer])
                    for layer in layers
                ]
            )
        self._usage["media_encoded"] += media.count
        self._features.add(media.content_hash, features)
        return features

    def _computed(self, rows: Sequence[Row]) -> tuple[Layers, list[int]]:
        """Keys and values of ``rows`` with the same media but for last tokens, right-padded; the
        tokens reused.
        """
        lengths = [row.prompt.tokens - 1 for row in rows]
        shared = min([_common(rows[0].keys, row.keys) for row in rows[1:]] + lengths)
        kept = min(_common(self._keys, rows[0].keys), shared)
        self._layers = [(keys[:, :, :kept], values[:, :, :kept]) for keys, values in self._layers]
        if kept < shared:
            self._layers = self._forward(rows[:1], self._layers, kept, [shared])
        self._keys = rows[0].keys[:shared]
        reused = [kept, *[shared] * (len(rows) - 1)]
        self._usage["prompt_tokens_computed"] += sum(lengths) + len(rows) - sum(reused)
        self._usage["prompt_tokens_reused"] += sum(reused)
        each = (len(rows), -1, -1, -1)
        layers = [(keys.expand(each), values.expand(each)) for keys, values in self._layers]
        return (
            layers if max(lengths) == shared else self._forward(rows, layers, shared, lengths)
        ), reused

    def _forward(
        self, rows: Sequence[Row], layers: Layers, start: int, stops: Sequence[int]
    ) -> Layers:
        """Keys and values with tokens ``start`` to before ``stops`` added; padding is right, where
        none attends.
        """
        stop, parts = max(stops), list(zip(rows, stops, strict=True))
        features: dict[str, list[torch.Tensor]] = defaultdict(list)
        for row, last in parts:
            for modality, places in row.placeholders.items():
                before, shown = (int((places < token).sum()) for token in (start, last))
                if before < shown:
                    features[modality].append(
                        torch.cat(row.features[modality], dim=1)[:, before:shown]
                    )
        encoded = {}
        for modality, shares in features.items():
            kind, listed = self._forms[modality]
            pooled, *deep = (
                [layer] if listed else layer[None] for layer in torch.cat(shares, dim=1)
            )
            takes_deep = "deepstack_features" in getattr(
                kind, "__dataclass_fields__", ()
            )  # even if there are none
            encoded[modality] = kind(
                pooler_output=pooled, **({"deepstack_features": deep} if takes_deep else {})
            )

        def cut(name: str, begin: int = 0) -> torch.Tensor:
            return stacked(
                [row.prompt.inputs[name][:, begin:last] for row, last in parts], stop - begin
            )

        given = {
            "input_ids": cut("input_ids", start),
            "attention_mask": torch.ones((len(rows), stop), dtype=torch.long),
            "position_ids": stacked(
                [row.positions[..., start:last] for row, last in parts], stop - start
            ),
            **{name: cut(name) for name in _TOKEN_TYPES if name in rows[0].prompt.inputs},
        }
        cache = _cache(layers)
        more = {
            _CACHE: cache,
            "is_first_iteration": True,
            "use_cache": True,
            "mm_encoder_outputs": encoded,
        }
        inputs = self._model.prepare_inputs_for_generation(**on_device(given, self._model), **more)
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
