"""``medtasks_vlm``: any transformers image-text-to-text checkpoint as a chat back-end of lmms-eval."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
import transformers
from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.core.exits import exit_with_sentence
from medtasks.harness.model import adapter_facts, fingerprint_of
from medtasks.metrics.learned import HUB_ID, no_progress_bars
from medtasks.runs.replies import Reply

from ._answering import Answering
from ._base import ChatRequest, Count
from ._generating import GeneratingAdapter, GeneratingArguments, read_messages, sample_seed
from ._reading import Prompt

TINY = Path(__file__).with_name("tiny_vlm")
"""A checkpoint trained on drawn pictures for the demo; its README says how."""
_SAMPLING_FIELDS = ("temperature", "top_p", "top_k", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")

T = TypeVar("T")


class VLMArguments(GeneratingArguments):
    """Arguments of ``medtasks_vlm``; ``pretrained`` may also be ``tiny``, a small model for the demo."""

    device: str = "auto"
    """``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Under ``accelerate launch`` each process takes its own GPU."""

    batch_size: Count = 32
    """Samples per batch at most. Answers are stored batch by batch, so a killed run loses at most one batch. Sampled
    answers are always batches of one, so that a draw depends on its seed alone. A batch has no more tokens than a
    quarter of the device's free memory can cache; one that runs out of memory is halved."""

    share_prefix: bool = True
    """Compute what prompts have in common (pictures, frames, system message) once. A model whose token scores change
    with sharing falls back to computing every prompt from the start."""

    video: Literal["images", "native"] = "images"
    """``images``: frames of a video are a list of images. ``native``: they are one video with its times, for
    checkpoints whose processor takes videos."""

    revision: str | None = None

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """``auto`` is the checkpoint's own on a GPU, float32 on CPU."""

    attn_implementation: str | None = None

    peft: str | None = None
    """Directory or hub id of a PEFT adapter; LoRA weights are merged into the model."""

    trust_remote_code: bool = False
    """Whether code from the hub may run."""


class MedtasksVLM(GeneratingAdapter):
    """Generates answers with a vision-language checkpoint (:class:`VLMArguments`).

    Errors in arguments, checkpoint or media end the process with one sentence and exit code 1.
    """

    name = "medtasks_vlm"
    holds_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        given = VLMArguments.read(arguments)
        super().__init__(given)
        device = self.join_replicas(given.device)
        quiet = self.rank != 0 or given.pretrained == "tiny"
        with no_progress_bars() if quiet else nullcontext():
            model, self.processor, self._facts = load_checkpoint(given, device)
        self._native_video = given.video == "native"
        if self._native_video and not hasattr(self.processor, "video_processor"):
            raise UsageError(
                f"video=native was given, but the processor of {given.pretrained} takes no videos; leave it out."
            )
        self._answering = Answering(model, self.processor, share_prefix=given.share_prefix)
        self._usage = self._answering.usage
        self._settings |= {"video": given.video, "share_prefix": self._answering.not_shared or True}
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="medtasks-reading")
        self._begun: tuple[list[ChatRequest], Future[list[Prompt]]] | None = None

    def clean(self) -> None:
        """Free the model; the harness calls this once it has all answers."""
        del self._answering
        super().clean()

    def batches(self, requests: list[ChatRequest]) -> Iterator[list[ChatRequest]]:
        """``requests`` in batches; a thread reads the next one while the device works on this one."""
        planned = [*super().batches(requests)]
        ahead = None
        for batch, following in zip_longest(planned, planned[1:]):
            self._begun = batch, ahead or self._begin(batch)
            ahead = self._begin(following) if following else None
            yield batch

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings = self.settings_of(requests)
        begun, self._begun = self._begun, None
        read = begun[1] if begun and begun[0] is requests else self._begin(requests)  # a part of a failed batch
        seed = sample_seed(self._given.seed, requests[0].sample_id, requests[0].repeat)
        replies = self._answering.answer(read.result(), settings, seed)
        self._settings["share_prefix"] = self._answering.not_shared or True
        return replies

    def _begin(self, batch: list[ChatRequest]) -> Future[list[Prompt]]:
        return self._reading.submit(lambda: [self._prompt(request) for request in batch])

    def _prompt(self, request: ChatRequest) -> Prompt:
        began = time.monotonic()
        messages = request.messages(self.task_dict)
        conversation = read_messages(messages, self._given, request.options, native_video=self._native_video)
        try:
            prompt = self._answering.read(conversation)
        except DataError as error:
            raise DataError(f"The model cannot take sample {request.sample_id}: {error}") from error
        return replace(prompt, seconds=round(time.monotonic() - began, 6)) if prompt.units else prompt


def load_checkpoint(given: VLMArguments, device: torch.device) -> tuple[Any, Any, dict[str, Any]]:
    """A model in evaluation mode on ``device``, its processor, and JSON-serializable facts about both.

    Raises:
        MedtasksError: the checkpoint is missing or incomplete, is not a vision-language model, or has no chat template.
    """
    directory = TINY if given.pretrained == "tiny" else Path(given.pretrained).expanduser()
    if directory.is_dir() and not (directory / "config.json").is_file():
        raise MedtasksError(f"{directory}: no config.json, expected a transformers checkpoint directory.")
    if not directory.is_dir() and not HUB_ID.fullmatch(given.pretrained):
        raise MedtasksError(f"{given.pretrained}: neither a checkpoint directory nor a hub id (owner/name).")
    source = str(directory) if directory.is_dir() else given.pretrained
    common: dict[str, Any] = {"trust_remote_code": given.trust_remote_code}
    if given.revision:
        common["revision"] = given.revision

    config = _attempt(given.pretrained, "configuration", lambda: AutoConfig.from_pretrained(source, **common))
    remote = given.trust_remote_code and "AutoModelForImageTextToText" in (getattr(config, "auto_map", None) or {})
    if config.model_type not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES and not remote:
        raise MedtasksError(
            f"{given.pretrained}: a model of type {config.model_type!r} was found, expected one that "
            "transformers lists as image-text-to-text."
        )
    processor = _load_processor(given, source, common)
    model = _load_model(given, source, common, device).eval()

    local, defaults = fingerprint_of(source), model.generation_config.to_diff_dict()
    defaults.pop("transformers_version", None)
    facts = {
        "pretrained": given.pretrained,
        "revision": given.revision if local else getattr(config, "_commit_hash", None) or given.revision,
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

    # A checkpoint that ships ``top_k=1`` would make every temperature greedy, and a greedy run would warn about a
    # temperature it does not use; transformers falls back to the model's own object for options that are not set.
    fresh = type(model.generation_config)()
    for name in _SAMPLING_FIELDS:
        setattr(model.generation_config, name, None)
    model.generation_config.do_sample, model.generation_config.max_length = fresh.do_sample, fresh.max_length
    return model, processor, facts


def _attempt(name: str, what: str, load: Callable[[], T]) -> T:
    try:
        return load()
    except torch.cuda.OutOfMemoryError as error:
        raise MedtasksError(f"{name}: the {what} does not fit into GPU memory.") from error
    except Exception as error:  # transformers, safetensors and the hub client raise a dozen unrelated types
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise MedtasksError(f"{name}: the {what} cannot be loaded: {lines[0]}") from error


def _load_processor(given: VLMArguments, source: str, common: dict[str, Any]) -> Any:
    processor = _attempt(given.pretrained, "processor", lambda: AutoProcessor.from_pretrained(source, **common))
    if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
        raise MedtasksError(f"{given.pretrained}: its processor takes no images, expected a vision model.")
    tokenizer, image_processor = processor.tokenizer, processor.image_processor
    if not getattr(processor, "chat_template", None):
        processor.chat_template = getattr(tokenizer, "chat_template", None)
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
        sides = dict(size)
        least = sides["shortest_edge"] if given.min_pixels is None else given.min_pixels
        most = sides["longest_edge"] if given.max_pixels is None else given.max_pixels
        # A single given limit takes precedence over the checkpoint's other one.
        if given.min_pixels is None:
            least = min(least, most)
        if given.max_pixels is None:
            most = max(least, most)
        image_processor.size = type(size)(**{**sides, "shortest_edge": least, "longest_edge": most})
    return processor


def _load_model(given: VLMArguments, source: str, common: dict[str, Any], device: torch.device) -> Any:
    # "auto" keeps the checkpoint's dtype, but half precision is slow and imprecise on CPU.
    dtype = "float32" if given.dtype == "auto" and device.type == "cpu" else given.dtype
    extra = {**common, "dtype": dtype if dtype == "auto" else getattr(torch, dtype)}
    if given.attn_implementation:
        extra["attn_implementation"] = given.attn_implementation
    if device.type == "cuda":
        extra["device_map"] = {"": device}  # straight to the GPU, without a copy of the model in host memory
    model, report = _attempt(
        given.pretrained,
        "model",
        lambda: AutoModelForImageTextToText.from_pretrained(source, output_loading_info=True, **extra),
    )
    unfit = sorted(map(str, {*report.get("missing_keys", ()), *report.get("mismatched_keys", ())}))
    if unfit:  # transformers would fill them with random numbers and only warn
        raise MedtasksError(
            f"{given.pretrained}: {len(unfit)} weight(s) missing or of another shape, first {unfit[0]}."
        )
    if not given.peft:
        return model
    from peft import PeftModel

    path = given.peft
    if not HUB_ID.fullmatch(path) and not Path(path).expanduser().is_dir():
        raise MedtasksError(f"{path}: no such PEFT adapter directory, and not a hub id (owner/name).")
    adapted = _attempt(path, "PEFT adapter", lambda: PeftModel.from_pretrained(model, path))
    # Merged weights are as fast as the plain model; some adapter types cannot be merged.
    return adapted.merge_and_unload() if hasattr(adapted.base_model, "merge_and_unload") else adapted
