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
from dataclasses import replace
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
from medtasks.harness.backends import adapter_facts, fingerprint_of
from medtasks.metrics.learned import HUB_ID, no_progress_bars
from medtasks.runs.replies import Reply

from ._base import (
    ChatRequest,
    Count,
    GeneratingAdapter,
    GeneratingArguments,
    GenerationSettings,
    media_in,
    read_messages,
    sample_seed,
)
from ._decoding import Decoder
from ._reading import Prompt, Reader, padded
from ._shared_prefix import SharedPrefix, refusal

TINY = Path(__file__).with_name(
    "tiny_vlm"
)  # trained on drawn pictures for the demo; its README says how
COUNTERS = (
    "media_encoded",
    "media_reused",
    "prompt_tokens_computed",
    "prompt_tokens_reused",
    "ties_decided_alone",
)
SHARE = (
    0.25  # of free memory for keys and values; their copies, activations and scores need the rest
)
LEAST, MOST = 2_048, 65_536
CALM = 64  # batches without running out of memory, after which larger ones are tried again
TYPICAL_ANSWER = 512
"""Tokens of an answer for which a batch has room; more from the first longer one on. Limits are
meant for models that
reason: with room for the whole limit in every row, batches would be many times smaller.
"""
TRIED = 4  # tokens whose scores are compared with and without sharing, once per kind of batch
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}
"""Largest allowed difference, relative to the largest score. Padding alone changes scores by 1e-6
in single precision and by nearly 0.01 in bfloat16; wrong positions or masks by 0.01 to 0.2.
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
    """Arguments of ``medtasks_vlm``; ``pretrained`` may also be ``tiny``, a small model for the
    demo. Under ``accelerate launch`` each process takes a GPU of its own. A batch has at most
    ``batch_size`` samples, and no more tokens than a quarter of the device's free memory can cache;
    sampled answers are batches of one. With ``share_prefix``, what prompts have in common
    (pictures, frames, system message) is computed once. ``video=native`` shows frames of a video as
    one video with its times, for checkpoints whose processor takes videos.
    """

    device: Annotated[
        str, expects("auto, cpu, cuda or cuda:N", re.compile(r"auto|cpu|cuda(:\d+)?").fullmatch)
    ] = "auto"
    batch_size: Count = 32
    share_prefix: bool = True
    video: Literal["images", "native"] = "images"
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = (
        "auto"  # the checkpoint's own on a GPU, float32 on CPU
    )
    attn_implementation: str | None = None
    peft: str | None = (
        None  # directory or hub id of a PEFT adapter; LoRA weights are merged into the model
    )
    trust_remote_code: bool = False  # whether code from the hub may run


class MedtasksVLM(GeneratingAdapter):
    """Generates answers with a vision-language checkpoint (:class:`VLMArguments`). Errors in
    arguments, checkpoint or media end the process with one sentence and exit code 1.
    """

    name = "medtasks_vlm"
    holds_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        self._given: VLMArguments
        given = VLMArguments.read(arguments)
        super().__init__(given, given.device)
        quiet = self.rank != 0 or given.pretrained == "tiny"
        with no_progress_bars() if quiet else nullcontext():
            self._model, self.processor, self._facts = load_checkpoint(given, self.device)
        if given.video == "native" and not hasattr(self.processor, "video_processor"):
            raise UsageError(
                f"video=native was given, but the processor of {given.pretrained} takes no videos; leave it out."
            )
        self._usage = dict.fromkeys(COUNTERS, 0)
        self._padding = self.processor.tokenizer.pad_token_id
        self._reader = Reader(self.processor, self._model.config)
        self._decoder = Decoder(self._model, self.processor.tokenizer)
        self._shared = SharedPrefix(self._model, self._usage)
        self._tried: set[tuple[int, bool, bool]] = set()
        self._most_tokens = self._tokens = default_tokens(self._model)
        self._calm = 0
        self._longest_answer = TYPICAL_ANSWER
        self._settings |= {
            "video": given.video,
            "share_prefix": given.share_prefix or "switched off",
        }
        if given.share_prefix and (reason := refusal(self._model)):
            self._stop_sharing(reason)
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="medtasks-reading")
        self._begun: tuple[list[ChatRequest], Future[list[Prompt]]] | None = None

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
        """``requests`` in batches; a thread reads the next one while the device works on this
        one.
        """
        planned = [*super().batches(requests)]
        ahead = None
        for batch, following in zip_longest(planned, planned[1:]):
            self._begun = batch, ahead or self._begin(batch)
            ahead = self._begin(following) if following else None
            yield batch

    def _begin(self, batch: list[ChatRequest]) -> Future[list[Prompt]]:
        return self._reading.submit(lambda: [self._prompt(request) for request in batch])

    def _prompt(self, request: ChatRequest) -> Prompt:
        began = time.monotonic()
        messages = read_messages(
            request.messages(self.task_dict),
            self._given,
            native_video=self._given.video == "native",
        )
        try:
            prompt = self._reader.prompt(messages, request.options, whole=not self._sharing)
        except DataError as error:
            raise DataError(f"The model cannot take sample {request.sample_id}: {error}") from error
        return (
            replace(prompt, seconds=round(time.monotonic() - began, 6)) if prompt.media else prompt
        )

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings, first = self.settings_of(requests), requests[0]
        seed = sample_seed(self._given.seed, first.sample_id, first.repeat)
        begun, self._begun = self._begun, None
        read = (
            begun[1] if begun and begun[0] is requests else self._begin(requests)
        )  # a part of a failed batch
        prompts, replies = read.result(), list[Reply]()
        room = min(settings.max_new_tokens, self._longest_answer)
        if not self._calm:  # after running out of memory; the error's frames kept tensors alive
            gc.collect()
            torch.cuda.empty_cache()
        with (
            torch.inference_mode()
        ):  # with gradients, whatever is shared would keep all that it was computed from
            while len(replies) < len(prompts):
                fitting = self._fitting(prompts[len(replies) :], room)
                try:
                    replies += self._batch(fitting, settings, seed)
                except (MemoryError, RuntimeError) as error:
                    if not is_out_of_memory(error):
                        raise
                    longest = max(prompt.tokens for prompt in fitting) + room
                    self._shared.forget()
                    self._calm, self._tokens = 0, max(1, len(fitting) * longest // 2)
                    if len(fitting) > 1:
                        logger.warning(
                            f"medtasks_vlm: out of memory on a batch of {len(fitting) * longest:,} tokens; going on "
                            f"with {self._tokens:,} at once"
                        )
                    raise MedtasksError(
                        f"The device ran out of memory on a single sample of {longest:,} tokens, its answer included; "
                        "lower max_pixels."
                    ) from error
                self._calm += 1
                if self._calm % CALM == 0:
                    self._tokens = min(2 * self._tokens, self._most_tokens)
        self._longest_answer = max(
            self._longest_answer, *(reply.output_tokens or 0 for reply in replies)
        )
        return replies

    def _fitting(self, prompts: Sequence[Prompt], room: int) -> Sequence[Prompt]:
        """The first prompts with the same kinds of media, at least one, that fit with ``room`` for
        their answers.
        """
        longest = 0
        for before, prompt in enumerate(prompts):
            longest = max(longest, prompt.tokens + room)
            # not all models accept batches that mix kinds of media
            if before and (
                (before + 1) * longest > self._tokens or prompt.kinds != prompts[0].kinds
            ):
                return prompts[:before]
        return prompts

    def _batch(
        self, prompts: Sequence[Prompt], settings: GenerationSettings, seed: int
    ) -> list[Reply]:
        sharing = settings.num_beams == 1 and self._may_share(prompts)
        if sharing:
            inputs, reused = self._shared.inputs(prompts, self._padding)
        else:
            inputs, reused = self._from_the_start(prompts), [0] * len(prompts)
        decoded = self._decoder.decode(
            inputs, [prompt.options for prompt in prompts], settings, seed
        )
        replies = []
        for prompt, (reply, tied), count in zip(prompts, decoded, reused, strict=True):
            if tied and (sharing or len(prompts) > 1):  # rounding may have decided it
                self._usage["ties_decided_alone"] += 1
                alone = self._from_the_start([prompt])
                [(reply, _)], count = self._decoder.decode(alone, [prompt.options], settings), 0
            replies.append(
                replace(
                    reply,
                    reused_tokens=count,
                    vision_tokens=prompt.vision_tokens,
                    media_seconds=prompt.seconds,
                )
            )
        return replies

    def _from_the_start(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """Inputs of whole prompts: their pixels, which are left out while prefixes are shared, are
        read again.
        """
        whole = []
        for prompt in prompts:
            complete = not prompt.media or any(name.startswith("pixel") for name in prompt.inputs)
            whole.append(
                prompt
                if complete
                else self._reader.prompt(prompt.messages, prompt.options, whole=True)
            )
        self._usage["media_encoded"] += sum(
            media.count for prompt in whole for media in prompt.media
        )
        self._usage["prompt_tokens_computed"] += sum(prompt.tokens for prompt in whole)
        return padded(whole, self._padding, self._model)

    def _may_share(self, prompts: Sequence[Prompt]) -> bool:
        """Whether prefixes are shared; the first batch of a kind is compared with its prompts
        computed alone.
        """
        images, videos = (media_in(prompts[0].messages, kind) for kind in ("image", "video"))
        kind = (min(len(images), 2), bool(videos), len(prompts) > 1)
        if not self._sharing or kind in self._tried:
            return self._sharing
        alone = [
            self._decoder.scores(self._from_the_start([prompt]), TRIED) for prompt in prompts[:2]
        ]
        try:
            tokens, scores = self._decoder.scores(
                self._shared.inputs(prompts[:2], self._padding)[0], TRIED
            )
        except Exception as error:  # an untested model class may raise anything
            if is_out_of_memory(error):
                raise
            self._stop_sharing(first_line(error))
            return False
        for row, (expected_tokens, expected) in enumerate(alone):
            # scores up to and including the first different token have the same input
            same = int((tokens[row] == expected_tokens[0]).cumprod(0).sum()) + 1
            gap = float(
                (scores[row, :same] - expected[0, :same]).abs().max() / expected.abs().max()
            )
            if not gap <= TOLERANCE[self._model.dtype]:
                self._stop_sharing(f"scores differ by {gap:.1%} from those of the prompt alone")
                return False
        self._tried.add(kind)
        return True


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
    return isinstance(
        error, (MemoryError, torch.OutOfMemoryError)
    ) or "can't allocate memory" in str(error)


def load_checkpoint(given: VLMArguments, device: torch.device) -> tuple[Any, Any, dict[str, Any]]:
    """A model in evaluation mode on ``device``, its processor, and JSON-serializable facts about
    both.

    Raises:
        MedtasksError: the checkpoint is missing or incomplete, is not a vision-language model, or
        has no chat template.
    """
    name = given.pretrained
    directory = TINY if name == "tiny" else Path(name).expanduser()
    if not (directory / "config.json").is_file() and (
        directory.is_dir() or not HUB_ID.fullmatch(name)
    ):
        raise MedtasksError(
            f"{name}: neither a checkpoint directory, which has a config.json, nor a hub id (owner/name)."
        )
    source = str(directory) if directory.is_dir() else name
    with _loading(name, "processor"):
        common = given.model_dump(include={"trust_remote_code", "revision"}, exclude_none=True)
        processor = AutoProcessor.from_pretrained(source, **common)
    _adjust_processor(processor, given)
    model = _load_model(given, source, device).eval()

    local, defaults = fingerprint_of(source), model.generation_config.to_diff_dict()
    defaults.pop("transformers_version", None)
    facts = {
        "pretrained": name,
        "revision": given.revision
        if local
        else getattr(model.config, "_commit_hash", None) or given.revision,
        **local,
        "peft": adapter_facts(given.peft),
        "architecture": type(model).__name__,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "attn_implementation": getattr(model.config, "_attn_implementation", None),
        "generation_defaults": dict(sorted(defaults.items())),
        "transformers": transformers.__version__,
        "torch": torch.__version__,
    }
    # A checkpoint that ships ``top_k=1`` would make every temperature greedy, and a greedy run
    # would warn about a temperature it does not use; transformers falls back to the model's own
    # object for options that are not set.
    fresh = type(model.generation_config)()
    for field in _SAMPLING_FIELDS:
        setattr(model.generation_config, field, None)
    model.generation_config.do_sample, model.generation_config.max_length = (
        fresh.do_sample,
        fresh.max_length,
    )
    return model, processor, facts


@contextmanager
def _loading(name: str, what: str) -> Iterator[None]:
    try:
        yield
    except (
        Exception
    ) as error:  # transformers, safetensors and the hub client raise a dozen unrelated types
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise MedtasksError(f"{name}: the {what} cannot be loaded: {lines[0]}") from error


def _adjust_processor(processor: Any, given: VLMArguments) -> None:
    if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
        raise MedtasksError(
            f"{given.pretrained}: its processor takes no images, expected a vision model."
        )
    tokenizer, image_processor = processor.tokenizer, processor.image_processor
    processor.chat_template = getattr(processor, "chat_template", None) or getattr(
        tokenizer, "chat_template", None
    )
    if not processor.chat_template:
        raise MedtasksError(
            f"{given.pretrained}: no chat template, expected an instruction-tuned checkpoint with one "
            "(chat_template.jinja)."
        )
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token

    # the Qwen-VL family has pixel limits; others keep their sizes
    known = getattr(getattr(image_processor, "valid_kwargs", None), "__annotations__", {})
    size = getattr(image_processor, "size", None)
    if "max_pixels" in known and size is not None:
        sides, least, most = dict(size), given.min_pixels, given.max_pixels
        # A single given limit takes precedence over the checkpoint's other one.
        if least is not None:
            sides |= {"shortest_edge": least, "longest_edge": max(least, sides["longest_edge"])}
        if most is not None:
            sides |= {"shortest_edge": min(most, sides["shortest_edge"]), "longest_edge": most}
        image_processor.size = type(size)(**sides)


def _load_model(given: VLMArguments, source: str, device: torch.device) -> Any:
    extra = given.model_dump(
        include={"trust_remote_code", "revision", "dtype", "attn_implementation"}, exclude_none=True
    )
    if given.dtype == "auto" and device.type == "cpu":
        extra["dtype"] = (
            "float32"  # "auto" keeps the checkpoint's, but half precision is slow and imprecise on CPU
        )
    if device.type == "cuda":
        extra["device_map"] = {
            "": device
        }  # straight to the GPU, without a copy of the model in host memory
    with _loading(given.pretrained, "model"):
        model, report = AutoModelForImageTextToText.from_pretrained(
            source, output_loading_info=True, **extra
        )
    unfit = sorted(map(str, {*report.get("missing_keys", ()), *report.get("mismatched_keys", ())}))
    if unfit:  # transformers would fill them with random numbers and only warn
        raise MedtasksError(
            f"{given.pretrained}: {len(unfit)} weight(s) missing or of another shape, first {unfit[0]}."
        )
    if given.peft is None:
        return model
    from peft import PeftModel

    with _loading(given.peft, "PEFT adapter"):
        adapted = PeftModel.from_pretrained(model, given.peft)
    # Merged weights are as fast as the plain model; some adapter types cannot be merged.
    return (
        adapted.merge_and_unload() if hasattr(adapted.base_model, "merge_and_unload") else adapted
    )
