"""Shared by all back-ends: settings, the harness's requests as typed records, messages with
pictures, batches, data-parallel replicas.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from accelerate import Accelerator
from lmms_eval import utils
from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.api.model import lmms
from loguru import logger
from PIL import Image
from pydantic import ConfigDict, Field, ValidationError
from tqdm import tqdm
from typing_extensions import Self

from medtasks.core.errors import (
    DataError,
    MediaError,
    MedtasksError,
    UsageError,
    exit_with_sentence,
)
from medtasks.core.schema import Frozen, first_problem
from medtasks.core.settings import current_settings
from medtasks.data.media.images import read_picture
from medtasks.data.media.pictures import as_rgb, decode_image
from medtasks.harness.requests import REPEAT, is_padding, isolated
from medtasks.runs.replies import Reply

from .policies import draw, option_letters

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Settings(Frozen):
    """User settings; ``source`` is the option or key they come from."""

    source: ClassVar[str] = "generation_kwargs"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Validate ``given``; None and empty strings leave a setting at its default. Raises
        :class:`UsageError`.
        """
        try:
            return cls.model_validate(
                {name: value for name, value in given.items() if value not in (None, "")}
            )
        except ValidationError as error:
            raise UsageError(f"{cls.source}: {first_problem(error, cls)}.") from error


class Arguments(Settings):
    """``--model_args`` of a back-end; numbers are accepted as text (the harness parses
    ``revision=12`` as a number). The harness passes these three fields to every back-end; those
    that use one redeclare it.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One ``generate_until`` request of a chat task.

    ``repeat`` counts requests for the same document, from 0; ``media`` names the document's media,
    in order, and ``item_id`` the streaming item it belongs to (else the sample itself); ``options``
    are the letters to choose from.
    """

    position: int
    task: str
    split: str
    doc_id: int
    prompt: str
    settings: Mapping[str, Any]
    to_messages: Callable[[Any], list[dict[str, Any]]]
    sample_id: str
    media: tuple[str, ...]
    item_id: str
    repeat: int
    options: tuple[str, ...] = ()

    def messages(self, task_dict: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chat messages of this request, made by its own task; this decodes the images."""
        return self.to_messages(task_dict[self.task][self.split][self.doc_id])


def read_documents(
    rows: Any, names: Collection[str], numbers: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """The documents with these numbers, or all; those of a dataset with the fields ``names`` alone,
    so that no image is decoded, and read at once, in a third of the time.
    """
    numbers = range(len(rows)) if numbers is None else numbers
    if not hasattr(rows, "column_names"):
        return [rows[number] for number in numbers]
    kept = [name for name in rows.column_names if name in names]
    columns = rows.select_columns(kept)[list(numbers)] if kept else {}
    return [
        {name: values[place] for name, values in columns.items()} for place in range(len(numbers))
    ]


def read_requests(instances: Iterable[Any], task_dict: Mapping[str, Any]) -> list[ChatRequest]:
    """Read lmms-eval instances of chat tasks, without those that only fill up a replica. A document
    without ``sample_id`` (of a task that is not ours) gets the id ``<task>-<doc_id>``.
    """
    groups: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
    for position, instance in enumerate(instances):
        if not is_padding(instance):
            groups[instance.args[4:]].append((position, instance))
    read = []
    for (task, split), asked in groups.items():
        numbers = [instance.args[3] for _, instance in asked]
        rows = read_documents(
            task_dict[task][split], ("sample_id", "item_id", "media", "choices"), numbers
        )
        seen: Counter[int] = Counter()
        for (position, instance), row in zip(asked, rows, strict=True):
            context, to_messages, settings, doc_id, *_ = instance.args
            sample_id = str(row.get("sample_id") or f"{task}-{doc_id}")
            read.append(
                ChatRequest(
                    position=position,
                    task=task,
                    split=split,
                    doc_id=doc_id,
                    prompt=context if isinstance(context, str) else "",
                    settings=settings or {},
                    to_messages=to_messages,
                    sample_id=sample_id,
                    # If the media have no names, only a document's own repeats are known to share
                    # them.
                    media=tuple(map(str, row.get("media") or (sample_id,))),
                    item_id=str(row.get("item_id") or sample_id),
                    repeat=(instance.metadata or {}).get(REPEAT, seen[doc_id]),
                    options=option_letters(row),
                )
            )
            seen[doc_id] += 1
    return sorted(read, key=lambda request: request.position)


class MedtasksAdapter(lmms):  # type: ignore[misc]
    """Base of the back-ends: chat requests, answered by :meth:`answer`, one data-parallel replica
    per process, on
    ``device``: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``; with several
    processes each takes its own GPU. ``rank`` is the global process index, so several nodes do not
    evaluate the same documents twice.
    """

    is_simple = False
    runs_model = False  # whether a model answers, so that its work is measured
    holds_model = False  # whether the model is in this process, so that its memory is the model's
    devices = 1  # that each process uses
    answers_all_rounds = False  # whether one response to a multi-round task contains all rounds

    @classmethod
    @exit_with_sentence
    def create_from_arg_string(
        cls, arg_string: str, additional_config: dict[str, Any] | None = None
    ) -> Any:
        """Create the back-end from ``key=value,…``, which takes precedence over the harness's own
        options. ``--batch_size 1`` is the harness's default, so it is ignored.
        """
        try:
            arguments = utils.simple_parse_args_string(arg_string or "")
        except ValueError as error:
            raise UsageError(
                f"model_args is {arg_string!r}, but must be key=value pairs with commas between them."
            ) from error
        harness = {
            key: value for key, value in (additional_config or {}).items() if value is not None
        }
        if str(harness.get("batch_size")) == "1":
            del harness["batch_size"]
        return cls(**{**harness, **arguments})

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        settings, gpus = current_settings(), torch.cuda.device_count()
        kind, _, index = device.partition(":")
        if kind == "cuda" and int(index or 0) >= gpus:
            fix = "use a lower number" if gpus else "use device=cpu"
            raise UsageError(
                f"device={device} was given, but torch sees {gpus or 'no'} GPU here; {fix}."
            )
        if index and settings.processes > 1:
            raise UsageError(
                f"device={device} would put {settings.processes} processes on one GPU; with device=cuda each takes its "
                "own."
            )
        # Matters only with several processes: it selects the process group's backend (gloo or
        # nccl).
        on_cpu = kind == "cpu" or (kind == "auto" and not gpus)
        self.accelerator = Accelerator(cpu=on_cpu and settings.processes > 1)
        self._rank, self._world_size = (
            self.accelerator.process_index,
            self.accelerator.num_processes,
        )
        self.device: torch.device = self.accelerator.device
        several = "ACCELERATE_USE_CPU=true torchrun --nproc_per_node N"
        if self._world_size != settings.processes:
            raise UsageError(
                f"{settings.processes} processes were launched, but accelerate joined {self._world_size}; on CPU "
                f"launch them with {several}."
            )
        if settings.alone_on_cpu:
            logger.warning(
                f"accelerate launch --cpu started one process only; for several use {several}"
            )
        if settings.processes == 1 and (kind != "auto" or self.device.type != "cuda"):
            self.device = torch.device("cpu" if kind == "auto" else device)
        if kind == "cuda" and self.device.type != "cuda":
            raise UsageError(
                f"device={device} was given, but these processes run on {self.device.type}."
            )

    def batches(self, requests: list[ChatRequest]) -> Iterable[list[ChatRequest]]:
        """``requests`` in batches, in processing order; one by default. Replies are stored after
        each batch, so slow back-ends should make small ones.
        """
        return [requests] if requests else []

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, in order; what subclasses implement.

        Raises:
            UsageError: a setting or a document is not supported by the back-end.
            MedtasksError: media cannot be read, the model rejects an input, or a sample is too
            large for the device.
        """
        raise NotImplementedError

    def stream(self, requests: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        """Yield positions in ``requests`` and :func:`isolated` replies, without those to
        padding.
        """
        read = read_requests(requests, self.task_dict)
        with tqdm(
            total=len(read), desc="medtasks", unit="request", disable=self.rank != 0 or not read
        ) as bar:
            for answered in isolated(self.batches(read), self.answer):
                bar.update(len(answered))
                yield [(request.position, reply) for request, reply in answered]

    def replies(self, requests: list[Any]) -> list[Reply]:
        """The replies to ``requests`` in order; padding requests get an empty text."""
        answered = dict(chain.from_iterable(self.stream(requests)))
        return [answered.get(position, Reply("")) for position in range(len(requests))]

    def generate_until(self, requests: list[Any]) -> list[GenerationResult]:
        """:meth:`replies` for other tasks, which the harness scores; so a failed one ends the
        run.
        """
        results = []
        for reply in self.replies(requests):
            if reply.failed is not None:
                raise MedtasksError(reply.failed)
            results.append(
                GenerationResult(reply.text, TokenCounts(reply.input_tokens, reply.output_tokens))
            )
        return results

    def loglikelihood(self, requests: list[Any]) -> Any:
        """Not supported: no medtasks task needs likelihoods, and medtasks runs the rounds of its
        tasks itself.
        """
        raise NotImplementedError(
            f"{type(self).__name__} answers single prompts; other requests are not supported."
        )

    generate_until_multi_round = loglikelihood


class GenerationSettings(Settings):
    """How one request is decoded; ``temperature`` 0 is greedy (or beam) search, ``top_p`` 1 and
    ``top_k`` 0 are no limits. ``ignored`` lists given settings that have no effect.
    """

    max_new_tokens: Count = 512
    temperature: NonNegative = 0.0
    top_p: Share = 1.0
    top_k: Natural = 0
    num_beams: Count = 1
    repetition_penalty: NonNegative | None = None
    until: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def sampling(self) -> bool:
        return self.temperature > 0


def read_settings(
    given: Mapping[str, Any], max_new_tokens: int | None = None
) -> GenerationSettings:
    """Read a task's ``generation_kwargs``; ``max_new_tokens`` of the back-end overrides the task's.
    ``do_sample: false`` means greedy, regardless of temperature. Raises :class:`UsageError` naming
    the setting.
    """
    names = GenerationSettings.model_fields.keys() - {"ignored"}
    known = {name: value for name, value in given.items() if name in names}
    ignored = {name for name, value in given.items() if value is not None} - {*known, "do_sample"}
    until, drawn = known.get("until") or (), given.get("do_sample")
    known["until"] = [stop for stop in ([until] if isinstance(until, str) else until) if stop != ""]
    known |= {
        "max_new_tokens": max_new_tokens or known.get("max_new_tokens"),
        "top_p": known.get("top_p") or None,
    }
    if drawn and known.get("temperature") is None:
        known["temperature"] = 1.0
    elif drawn is not None and not drawn and known.get("temperature"):
        ignored.add("temperature")
        known["temperature"] = 0.0
    return GenerationSettings.read({**known, "ignored": sorted(ignored)})


def sample_seed(seed: int, sample_id: str, repeat: int) -> int:
    """A 63-bit seed from its arguments alone, so sharding and batching cannot change a draw."""
    return draw(seed, sample_id, repeat) >> 193


def cut_at_stop(text: str, until: Sequence[str]) -> str:
    """``text`` up to the earliest stop string in it."""
    return text[: min((text.find(stop) for stop in until if stop in text), default=None)]


END_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<end_of_turn>",
    "<turn|>",
    "<|assistant_end|>",
    "<|endoftext|>",
    "</s>",
)


def ends_of_turn(tokenizer: Any, own: Any) -> list[int]:
    """The tokens that end an answer: the checkpoint's ``own``, and `END_OF_TURN`. A fine-tuned
    checkpoint often names only its base model's, and would go on with an invented next question.
    Padding ends an answer only if the checkpoint says so.
    """
    named = [own] if isinstance(own, int) else list(own or ())
    added = getattr(
        tokenizer, "added_tokens_decoder", {}
    )  # tokenizers of other libraries have none
    known = {token.content: number for number, token in added.items() if token.special}
    more = {known[text] for text in END_OF_TURN if text in known} - {
        getattr(tokenizer, "pad_token_id", None),
        *named,
    }
    return [*named, *sorted(more)]


def plan_batches(
    requests: Iterable[ChatRequest], size: int, *, alone_when_sampling: bool = True
) -> Iterator[list[ChatRequest]]:
    """Yield batches of at most ``size`` requests with equal settings; sampled ones alone, so that a
    draw depends on its seed. Shared pictures and rounds of a stream are adjacent, then the longest
    texts come first: batches need little padding, and running out of memory is noticed early.
    """

    def settings_key(request: ChatRequest) -> str:
        return json.dumps(dict(request.settings), sort_keys=True, default=str)

    def key(request: ChatRequest) -> tuple[Any, ...]:
        item = request.item_id if request.item_id != request.sample_id else ""
        length = -len(request.prompt)
        return (
            settings_key(request),
            request.media,
            item,
            length,
            request.task,
            request.sample_id,
            request.repeat,
        )

    for _, same_settings in groupby(sorted(requests, key=key), key=settings_key):
        group = list(same_settings)
        step = 1 if alone_when_sampling and read_settings(group[0].settings).sampling else size
        for start in range(0, len(group), step):
            yield group[start : start + step]


class GeneratingArguments(Arguments):
    """Arguments of every back-end that generates."""

    pretrained: str  # checkpoint directory or hub id
    max_pixels: Count | None = (
        None  # per image (width times height) at most; larger images are scaled down
    )
    min_pixels: Count | None = None  # per image at least; smaller images are scaled up
    max_new_tokens: Count | None = None  # overrides the tasks' own limit
    system_prompt: str | None = None  # overrides the tasks' own system message
    seed: Natural = 0  # seeds each sampled answer, together with sample id and repeat
    blind: bool = (
        False  # send every prompt without images and frames, to measure what the text alone answers
    )


def fit_pixels(image: Image.Image, least: int | None, most: int | None) -> Image.Image:
    """Scale ``image`` to at least and at most so many pixels (bicubic; the aspect ratio is kept as
    far as whole pixels allow); None sets no limit.
    """
    width, height = image.size
    pixels = width * height
    if most is not None and pixels > most:
        scale = math.sqrt(most / pixels)
        # A side is at least one pixel; the other must then be shorter.
        short = max(1, math.floor(min(width, height) * scale))
        long = max(1, min(math.floor(max(width, height) * scale), most // short))
        size = (long, short) if width >= height else (short, long)
    elif least is not None and pixels < least:
        scale = math.sqrt(least / pixels)
        size = (math.ceil(width * scale), math.ceil(height * scale))
    else:
        return image
    return image.resize(size, Image.Resampling.BICUBIC)


Messages = list[dict[str, Any]]
"""Chat messages as templates take them: lists of parts with a ``text``, an ``image``, or a
``video`` (its frames) with ``times`` in seconds.
"""


def read_messages(
    given: Messages, arguments: GeneratingArguments, *, native_video: bool = False
) -> Messages:
    """Open the pictures of messages: PIL images or file paths under ``url`` (or ``image``). With
    ``native_video``, neighbouring image parts with a ``time`` become one video; a lone one stays an
    image.

    Raises:
        DataError: a part has another type; a video must be given as frames.
        MediaError: an image is missing, cannot be decoded, or has values that `as_rgb` refuses.
    """
    if system := arguments.system_prompt:
        others = [message for message in given if message["role"] != "system"]
        given = [{"role": "system", "content": system}, *others]
    read = []
    for message in given:
        content, shown = message["content"], list[dict[str, Any]]()
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts = [part for part in parts if part["type"] == "text" or not arguments.blind]
        for timed, group in groupby(parts, key=lambda part: native_video and "time" in part):
            together = list(group)
            opened = [_opened(part, arguments) for part in together]
            if timed and len(opened) > 1:
                times = [float(part["time"]) for part in together]
                opened = [
                    {"type": "video", "video": [part["image"] for part in opened], "times": times}
                ]
            shown += opened
        read.append({"role": message["role"], "content": shown})
    return read


def media_in(messages: Messages, kind: str) -> list[dict[str, Any]]:
    """The parts that are an ``image``, or a ``video``."""
    return [part for message in messages for part in message["content"] if part["type"] == kind]


def _opened(part: dict[str, Any], arguments: GeneratingArguments) -> dict[str, Any]:
    """A part with its picture opened, as RGB and within the limits of pixels."""
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] != "image":
        raise DataError(
            f"A message has a part of type {part['type']!r}, but only text and images are accepted; give a video as "
            "its frames."
        )
    source = part.get("url", part.get("image"))
    if isinstance(source, str):
        source = decode_image(read_picture(Path(source)), source)
    if not isinstance(source, Image.Image):
        raise MediaError(
            f"An image part is {type(source).__name__}, expected a PIL image or a file path."
        )
    if source.mode != "RGB" or source.has_transparency_data:
        source = as_rgb(source, "An image of a message")
    return {
        "type": "image",
        "image": fit_pixels(source, arguments.min_pixels, arguments.max_pixels),
    }


class GeneratingAdapter(MedtasksAdapter):
    """Answers batch by batch; greedy by default. Settings in a task's ``generation_kwargs`` that
    are none of `GenerationSettings` are reported as ignored.
    """

    name: str
    runs_model = True
    alone_when_sampling = True  # whether each sampled answer is a separate batch

    def __init__(self, given: GeneratingArguments, device: str = "cpu") -> None:
        super().__init__(device)
        least, most = given.min_pixels, given.max_pixels
        if least is not None and most is not None and least > most:
            raise UsageError(f"min_pixels is {least}, which is more than max_pixels ({most}).")
        self._given = given
        self.batch_size: int = given.batch_size
        self._facts: dict[str, Any] = {}
        settings = {
            "batch_size",
            "max_pixels",
            "min_pixels",
            "max_new_tokens",
            "system_prompt",
            "seed",
            "blind",
        }
        self._settings = given.model_dump(include=settings)
        self._usage: dict[str, int] = {}
        self._ignored: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable: checkpoint, versions and limits. ``usage``
        counts this replica's work so far; replicas' counts may be summed.
        """
        return {
            "model": self.name,
            **self._facts,
            **self._settings,
            "ignored_generation_settings": sorted(self._ignored),
            "usage": dict(self._usage),
        }

    def batches(self, requests: list[ChatRequest]) -> Iterable[list[ChatRequest]]:
        return list(
            plan_batches(requests, self.batch_size, alone_when_sampling=self.alone_when_sampling)
        )

    def settings_of(self, requests: list[ChatRequest]) -> GenerationSettings:
        """The settings of a batch, which are equal; those without effect are reported."""
        settings = read_settings(requests[0].settings, self._given.max_new_tokens)
        if fresh := set(settings.ignored) - self._ignored:
            self._ignored |= fresh
            logger.warning(
                f"{self.name}: generation settings without effect: {', '.join(sorted(fresh))}"
            )
        return settings
