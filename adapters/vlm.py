"""``medtasks_vlm``: any transformers image-text-to-text checkpoint as a chat back-end of lmms-eval.

Batches stay within the memory of the device. What prompts have in common is computed once, if the
model's class supports it and the first batch of each kind had the same scores as without sharing.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
import torch
import transformers
from loguru import logger
from transformers import AutoModelForImageTextToText, AutoProcessor

from medtasks.core.errors import (
    DataError,
    MedtasksError,
    UsageError,
    exit_with_sentence,
    first_line,
)
from medtasks.core.schema import expects
from medtasks.core.settings import current_settings
from medtasks.harness.model_facts import adapter_facts, fingerprint_of
from medtasks.metrics.learned import HUB_ID, no_progress_bars
from medtasks.runs.replies import Reply

from ._base import GeneratingAdapter
from ._decoding import Decoder
from ._messages import media_in, read_messages
from ._reading import Prompt, Reader, padded
from ._requests import ChatRequest, sample_seed
from ._settings import Count, GeneratingArguments, GenerationSettings
from ._shared_prefix import SharedPrefix, refusal

TINY = Path(__file__).with_name("tiny_vlm")
"""A checkpoint trained on drawn pictures for the demo; its README says how."""
COUNTERS = (
    "media_encoded",
    "media_reused",
    "prompt_tokens_computed",
    "prompt_tokens_reused",
    "ties_decided_alone",
)
SHARE = 0.25
"""Of free memory, for keys and values; their copies, activations and scores need the rest."""
LEAST, MOST = 2_048, 65_536
"""Limits of the tokens in a batch, whatever the free memory."""
CALM = 64
"""Batches without running out of memory after which larger ones are tried again."""
TYPICAL_ANSWER = 512
"""Tokens of an answer for which a batch has room; more from the first longer one on.

Limits are meant for models that reason: with room for the whole limit in every row, batches would
be many times smaller.
"""
TRIED = 4
"""Tokens whose scores are compared with and without sharing, once per kind of batch."""
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}
"""Largest allowed difference, relative to the largest score.

Padding alone changes scores by 1e-6 in single precision and by nearly 0.01 in bfloat16; wrong
positions or masks by 0.01 to 0.2.
"""
_SAMPLING_FIELDS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
)


class VLMArguments(GeneratingArguments):
    """Arguments of ``medtasks_vlm``.

    ``pretrained`` may also be ``tiny``, a small model for the demo. Under ``accelerate launch``
    each process takes a GPU of its own. A batch has at most ``batch_size`` samples, and no more
    tokens than a quarter of the device's free memory can cache; sampled answers are batches of one.
    With ``share_prefix``, the common beginning of prompts (pictures, frames, system message) is
    computed once. ``video=native`` shows frames of a video as one video with its times, for
    checkpoints whose processor takes videos.
    """

    device: Annotated[
        str, expects("auto, cpu, cuda or cuda:N", re.compile(r"auto|cpu|cuda(:\d+)?").fullmatch)
    ] = "auto"
    batch_size: Count = 32
    share_prefix: bool = True
    video: Literal["images", "native"] = "images"
    revision: str | None = None
    # auto: the checkpoint's own on a GPU, float32 on CPU
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    attn_implementation: str | None = None
    # directory or hub id of a PEFT adapter; LoRA weights are merged into the model
    peft: str | None = None
    # whether code from the hub may run
    trust_remote_code: bool = False


class MedtasksVLM(GeneratingAdapter):
    """Generates answers with a vision-language checkpoint (:class:`VLMArguments`).

    Errors in arguments, checkpoint or media end the process with one sentence and exit code 1.
    """

    name = "medtasks_vlm"
    holds_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        settings = VLMArguments.read(arguments)
        super().__init__(settings, settings.device)
        self._arguments: VLMArguments = settings
        is_quiet = self.rank != 0 or settings.pretrained == "tiny"
        with no_progress_bars() if is_quiet else nullcontext():
            checkpoint = load_checkpoint(settings, self.device)
        self._model = checkpoint.model
        self.processor = checkpoint.processor
        self._facts = checkpoint.facts
        if settings.video == "native" and not hasattr(self.processor, "video_processor"):
            raise UsageError(
                f"video=native was given, but the processor of {settings.pretrained} takes no "
                "videos; leave it out."
            )
        self._usage = dict.fromkeys(COUNTERS, 0)
        self._padding = self.processor.tokenizer.pad_token_id
        self._reader = Reader(self.processor, self._model.config)
        self._decoder = Decoder(self._model, self.processor.tokenizer)
        self._shared = SharedPrefix(self._model, self._usage)
        self._tried: set[tuple[int, bool, bool]] = set()
        self._most_tokens = default_tokens(self._model)
        self._tokens = self._most_tokens
        self._calm = 0
        self._longest_answer = TYPICAL_ANSWER
        self._settings |= {
            "video": settings.video,
            "share_prefix": settings.share_prefix or "switched off",
        }
        if settings.share_prefix:
            reason = refusal(self._model)
            if reason is not None:
                self._stop_sharing(reason)
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="medtasks-reading")
        self._read_ahead: tuple[list[ChatRequest], Future[list[Prompt]]] | None = None

    @property
    def _sharing(self) -> bool:
        return self._settings["share_prefix"] is True

    def _stop_sharing(self, reason: str) -> None:
        self._settings["share_prefix"] = reason
        self._shared.forget()
        logger.warning(f"medtasks_vlm: every prompt is computed from the start: {reason}")

    def clean(self) -> None:
        """Free the model; the harness calls this once it has all answers."""
        del self._decoder, self._shared
        super().clean()

    def batches(self, requests: list[ChatRequest]) -> Iterator[list[ChatRequest]]:
        """``requests`` in batches; a thread reads the next one during the current one."""
        planned = [*super().batches(requests)]
        ahead: Future[list[Prompt]] | None = None
        for batch, following in zip_longest(planned, planned[1:]):
            self._read_ahead = batch, ahead or self._start_reading(batch)
            ahead = self._start_reading(following) if following else None
            yield batch

    def _start_reading(self, batch: list[ChatRequest]) -> Future[list[Prompt]]:
        return self._reading.submit(lambda: [self._prompt(request) for request in batch])

    def _prompts(self, batch: list[ChatRequest]) -> list[Prompt]:
        """The prompts of a batch, which were read ahead unless it is a part of a failed batch."""
        ahead, self._read_ahead = self._read_ahead, None
        if ahead is not None and ahead[0] is batch:
            return ahead[1].result()
        return self._start_reading(batch).result()

    def _prompt(self, request: ChatRequest) -> Prompt:
        began = time.monotonic()
        messages = read_messages(
            request.messages(self.task_dict),
            self._arguments,
            native_video=self._arguments.video == "native",
        )
        try:
            prompt = self._reader.prompt(messages, request.options, whole=not self._sharing)
        except DataError as error:
            raise DataError(f"The model cannot take sample {request.sample_id}: {error}") from error
        if not prompt.media:
            return prompt
        return replace(prompt, seconds=round(time.monotonic() - began, 6))

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings = self.settings_of(requests)
        first = requests[0]
        seed = sample_seed(self._arguments.seed, first.sample_id, first.repeat)
        prompts = self._prompts(requests)
        room = min(settings.max_new_tokens, self._longest_answer)
        if not self._calm:
            # After running out of memory, frames of the error kept tensors alive. Without a
            # collection they would still take the device's memory, and the next batch would fail.
            gc.collect()
            torch.cuda.empty_cache()
        replies: list[Reply] = []
        # with gradients, whatever is shared would keep everything that it was computed from
        with torch.inference_mode():
            while len(replies) < len(prompts):
                batch = self._fitting(prompts[len(replies) :], room)
                try:
                    replies += self._batch(batch, settings, seed)
                except (MemoryError, RuntimeError) as error:
                    if not is_out_of_memory(error):
                        raise
                    raise self._after_running_out_of_memory(batch, room) from error
                self._calm += 1
                if self._calm % CALM == 0:
                    self._tokens = min(2 * self._tokens, self._most_tokens)
        for reply in replies:
            self._longest_answer = max(self._longest_answer, reply.output_tokens or 0)
        return replies

    def _after_running_out_of_memory(self, batch: Sequence[Prompt], room: int) -> MedtasksError:
        """Halve the size of batches; return the error of a batch that cannot be divided.

        The harness sends the requests of a larger batch again in parts (`isolated`).
        """
        longest = max(prompt.tokens for prompt in batch) + room
        self._shared.forget()
        self._calm = 0
        self._tokens = max(1, len(batch) * longest // 2)
        if len(batch) > 1:
            logger.warning(
                f"medtasks_vlm: out of memory on a batch of {len(batch) * longest:,} tokens; "
                f"going on with {self._tokens:,} at once"
            )
        return MedtasksError(
            f"The device ran out of memory on a single sample of {longest:,} tokens, its answer "
            "included; lower max_pixels."
        )

    def _fitting(self, prompts: Sequence[Prompt], room: int) -> Sequence[Prompt]:
        """The first prompts, at least one, that fit in memory with ``room`` for their answers.

        They have the same kinds of media: not all models accept batches that mix them.
        """
        longest = 0
        kinds = prompts[0].kinds
        for number, prompt in enumerate(prompts):
            longest = max(longest, prompt.tokens + room)
            fits = (number + 1) * longest <= self._tokens
            if number > 0 and not (fits and prompt.kinds == kinds):
                return prompts[:number]
        return prompts

    def _batch(
        self, prompts: Sequence[Prompt], settings: GenerationSettings, seed: int
    ) -> list[Reply]:
        is_shared = settings.num_beams == 1 and self._may_share(prompts)
        if is_shared:
            inputs, reused = self._shared.inputs(prompts, self._padding)
        else:
            inputs = self._inputs_from_the_start(prompts)
            reused = [0] * len(prompts)
        options = [prompt.options for prompt in prompts]
        decoded = self._decoder.decode(inputs, options, settings, seed)
        rounding_may_decide = is_shared or len(prompts) > 1
        replies: list[Reply] = []
        for prompt, (reply, is_tied), reused_tokens in zip(prompts, decoded, reused, strict=True):
            if is_tied and rounding_may_decide:
                self._usage["ties_decided_alone"] += 1
                reply, reused_tokens = self._reply_alone(prompt, settings), 0
            replies.append(
                replace(
                    reply,
                    reused_tokens=reused_tokens,
                    vision_tokens=prompt.vision_tokens,
                    media_seconds=prompt.seconds,
                )
            )
        return replies

    def _reply_alone(self, prompt: Prompt, settings: GenerationSettings) -> Reply:
        """The reply to a prompt in a batch of its own, computed from the start."""
        inputs = self._inputs_from_the_start([prompt])
        [(reply, _)] = self._decoder.decode(inputs, [prompt.options], settings)
        return reply

    def _inputs_from_the_start(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """Inputs of whole prompts.

        Pixels, which are left out while prefixes are shared, are read again.
        """
        whole: list[Prompt] = []
        for prompt in prompts:
            if prompt.media and not prompt.has_pixels:
                prompt = self._reader.prompt(prompt.messages, prompt.options, whole=True)
            whole.append(prompt)
            self._usage["media_encoded"] += sum(media.count for media in prompt.media)
            self._usage["prompt_tokens_computed"] += prompt.tokens
        return padded(whole, self._padding, self._model)

    def _may_share(self, prompts: Sequence[Prompt]) -> bool:
        """Whether prefixes are shared.

        The first batch of a kind is compared with its prompts computed alone.
        """
        messages = prompts[0].messages
        images = len(media_in(messages, "image"))
        has_videos = bool(media_in(messages, "video"))
        kind = (min(images, 2), has_videos, len(prompts) > 1)
        if not self._sharing or kind in self._tried:
            return self._sharing
        reason = self._fault_of_sharing(prompts[:2])
        if reason is not None:
            self._stop_sharing(reason)
            return False
        self._tried.add(kind)
        return True

    def _fault_of_sharing(self, prompts: Sequence[Prompt]) -> str | None:
        """Why prefixes of these prompts cannot be shared; None if their scores are the same."""
        alone: list[tuple[torch.Tensor, torch.Tensor]] = []
        for prompt in prompts:
            alone.append(self._decoder.scores(self._inputs_from_the_start([prompt]), TRIED))
        try:
            inputs, _ = self._shared.inputs(prompts, self._padding)
            tokens, scores = self._decoder.scores(inputs, TRIED)
        except Exception as error:  # an untested model class may raise anything
            if is_out_of_memory(error):
                raise
            return first_line(error)
        for row, (expected_tokens, expected) in enumerate(alone):
            # scores up to and including the first different token have the same input
            equal_tokens = int((tokens[row] == expected_tokens[0]).cumprod(0).sum())
            compared = slice(equal_tokens + 1)
            largest_gap = (scores[row, compared] - expected[0, compared]).abs().max()
            gap = float(largest_gap / expected.abs().max())
            if not gap <= TOLERANCE[self._model.dtype]:  # NaN is no small difference, either
                return f"scores differ by {gap:.1%} from those of the prompt alone"
        return None


def default_tokens(model: Any) -> int:
    """Number of tokens whose keys and values fit in a quarter of the device's free memory."""
    config = model.config.get_text_config(decoder=True)
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    per_token = 2 * config.num_hidden_layers * heads * width * model.dtype.itemsize
    if model.device.type == "cuda":
        free = torch.cuda.mem_get_info(model.device)[0]
    else:
        free = psutil.virtual_memory().available // current_settings().on_this_machine
    return max(LEAST, min(MOST, int(SHARE * free / per_token)))


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device or the machine ran out of memory."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    # torch raises a plain RuntimeError on the CPU
    return "can't allocate memory" in str(error)


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A model, its processor, and JSON-serializable facts about both."""

    model: Any
    processor: Any
    facts: dict[str, Any]


def load_checkpoint(arguments: VLMArguments, device: torch.device) -> LoadedCheckpoint:
    """Load a model in evaluation mode on ``device``, and its processor.

    Raises:
        MedtasksError: the checkpoint is missing or incomplete, is not a vision-language model, or
            has no chat template.
    """
    source = _checkpoint_source(arguments.pretrained)
    with _loading_errors(arguments.pretrained, "processor"):
        options = arguments.model_dump(include={"trust_remote_code", "revision"}, exclude_none=True)
        processor = AutoProcessor.from_pretrained(source, **options)
    _adjust_processor(processor, arguments)
    model = _load_model(arguments, source, device).eval()
    facts = _checkpoint_facts(arguments, source, model, device)
    _forget_sampling_defaults(model)
    return LoadedCheckpoint(model, processor, facts)


def _checkpoint_source(name: str) -> str:
    """The directory or hub id of a checkpoint."""
    directory = TINY if name == "tiny" else Path(name).expanduser()
    if directory.is_dir():
        if (directory / "config.json").is_file():
            return str(directory)
    elif HUB_ID.fullmatch(name):
        return name
    raise MedtasksError(
        f"{name}: neither a checkpoint directory, which has a config.json, nor a hub id "
        "(owner/name)."
    )


def _checkpoint_facts(
    arguments: VLMArguments, source: str, model: Any, device: torch.device
) -> dict[str, Any]:
    fingerprint = fingerprint_of(source)
    revision = arguments.revision
    if not fingerprint:  # from the hub, so the commit is known
        revision = getattr(model.config, "_commit_hash", None) or revision
    defaults = model.generation_config.to_diff_dict()
    defaults.pop("transformers_version", None)
    return {
        "pretrained": arguments.pretrained,
        "revision": revision,
        **fingerprint,
        "peft": adapter_facts(arguments.peft),
        "architecture": type(model).__name__,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "attn_implementation": getattr(model.config, "_attn_implementation", None),
        "generation_defaults": dict(sorted(defaults.items())),
        "transformers": transformers.__version__,
        "torch": torch.__version__,
    }


def _forget_sampling_defaults(model: Any) -> None:
    """Remove the checkpoint's own sampling settings.

    A checkpoint that ships ``top_k=1`` would make every temperature greedy, and a greedy run would
    warn about a temperature that it does not use; transformers falls back to the model's own object
    for options that are not set.
    """
    config = model.generation_config
    default = type(config)()
    for field in _SAMPLING_FIELDS:
        setattr(config, field, None)
    config.do_sample = default.do_sample
    config.max_length = default.max_length


@contextmanager
def _loading_errors(name: str, what: str) -> Iterator[None]:
    try:
        yield
    # transformers, safetensors and the hub client raise a dozen unrelated types
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise MedtasksError(f"{name}: the {what} cannot be loaded: {lines[0]}") from error


def _adjust_processor(processor: Any, arguments: VLMArguments) -> None:
    """Set chat template, padding and pixel limits; refuse a processor that takes no images."""
    if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
        raise MedtasksError(
            f"{arguments.pretrained}: its processor takes no images, expected a vision model."
        )
    tokenizer = processor.tokenizer
    if not getattr(processor, "chat_template", None):
        processor.chat_template = getattr(tokenizer, "chat_template", None)
    if not processor.chat_template:
        raise MedtasksError(
            f"{arguments.pretrained}: no chat template, expected an instruction-tuned checkpoint "
            "with one (chat_template.jinja)."
        )
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    _limit_pixels(processor.image_processor, arguments.min_pixels, arguments.max_pixels)


def _limit_pixels(image_processor: Any, least: int | None, most: int | None) -> None:
    """Set the pixel limits of the Qwen-VL family; processors of others keep their sizes."""
    settings_type = getattr(image_processor, "valid_kwargs", None)
    size = getattr(image_processor, "size", None)
    if "max_pixels" not in getattr(settings_type, "__annotations__", {}) or size is None:
        return
    sides = dict(size)
    # A limit of the user takes precedence over the checkpoint's other one.
    if least is not None:
        sides |= {"shortest_edge": least, "longest_edge": max(least, sides["longest_edge"])}
    if most is not None:
        sides |= {"shortest_edge": min(most, sides["shortest_edge"]), "longest_edge": most}
    image_processor.size = type(size)(**sides)


_LOADING_OPTIONS = {"trust_remote_code", "revision", "dtype", "attn_implementation"}


def _load_model(arguments: VLMArguments, source: str, device: torch.device) -> Any:
    options = arguments.model_dump(include=_LOADING_OPTIONS, exclude_none=True)
    if arguments.dtype == "auto" and device.type == "cpu":
        # "auto" keeps the checkpoint's, but half precision is slow and imprecise on CPU
        options["dtype"] = "float32"
    if device.type == "cuda":
        # straight to the GPU, without a copy of the model in host memory
        options["device_map"] = {"": device}
    with _loading_errors(arguments.pretrained, "model"):
        model, report = AutoModelForImageTextToText.from_pretrained(
            source, output_loading_info=True, **options
        )
    # transformers would fill these with random numbers and only warn
    unfit = {*report.get("missing_keys", ()), *report.get("mismatched_keys", ())}
    if unfit:
        first = min(map(str, unfit))
        raise MedtasksError(
            f"{arguments.pretrained}: {len(unfit)} weight(s) missing or of another shape, "
            f"first {first}."
        )
    if arguments.peft is None:
        return model
    return _adapted(model, arguments.peft)


def _adapted(model: Any, peft: str) -> Any:
    """The model with a PEFT adapter."""
    from peft import PeftModel

    with _loading_errors(peft, "PEFT adapter"):
        adapted = PeftModel.from_pretrained(model, peft)
    # Merged weights are as fast as those of the model; some adapter types cannot be merged.
    if hasattr(adapted.base_model, "merge_and_unload"):
        return adapted.merge_and_unload()
    return adapted
