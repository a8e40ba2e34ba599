"""Loads an image-text-to-text checkpoint; every problem is reported in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
import transformers
from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from medtasks.core.errors import MedtasksError
from medtasks.harness.model import adapter_facts, fingerprint_of
from medtasks.metrics.learned._metric import HUB_ID, no_progress_bars

from ._decoding import forget_sampling
from ._generating import GeneratingArguments
from ._messages import PixelLimits

TINY = Path(__file__).with_name("tiny_vlm")
"""A checkpoint trained on drawn pictures for the demo; its README says how."""

T = TypeVar("T")


class CheckpointArguments(GeneratingArguments):
    """Which checkpoint is loaded, and how; ``pretrained`` may also be ``tiny``, a small model for the demo."""

    revision: str | None = None

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """``auto`` is the checkpoint's own on a GPU, float32 on CPU."""

    attn_implementation: str | None = None

    peft: str | None = None
    """Directory or hub id of a PEFT adapter; LoRA weights are merged into the model."""

    trust_remote_code: bool = False
    """Whether code from the hub may run."""


def load_checkpoint(
    given: CheckpointArguments, device: torch.device, limits: PixelLimits, progress: bool = True
) -> tuple[Any, Any, dict[str, Any]]:
    """A model in evaluation mode on ``device``, its processor, and JSON-serializable facts about both.

    Raises:
        MedtasksError: the checkpoint is missing or incomplete, is not a vision-language model, or has no chat template.
    """
    source = _locate(given.pretrained)
    common: dict[str, Any] = {"trust_remote_code": given.trust_remote_code}
    if given.revision:
        common["revision"] = given.revision
    with nullcontext() if progress else no_progress_bars():
        config = _attempt(given.pretrained, "configuration", lambda: AutoConfig.from_pretrained(source, **common))
        remote = given.trust_remote_code and "AutoModelForImageTextToText" in (getattr(config, "auto_map", None) or {})
        if config.model_type not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES and not remote:
            raise MedtasksError(
                f"{given.pretrained}: a model of type {config.model_type!r} was found, expected one that "
                "transformers lists as image-text-to-text."
            )
        processor = _load_processor(given, source, common)
        model = _load_model(given, source, common, device)
    _limit_processor(processor, limits)
    model.eval()
    facts = _facts(given, source, config, model, device)
    forget_sampling(model.generation_config)
    return model, processor, facts


def _locate(pretrained: str) -> str:
    """The directory of a local checkpoint, or the hub id unchanged."""
    directory = TINY if pretrained == "tiny" else Path(pretrained).expanduser()
    if directory.is_dir():
        if not (directory / "config.json").is_file():
            raise MedtasksError(f"{directory}: no config.json, expected a transformers checkpoint directory.")
        return str(directory)
    if not HUB_ID.fullmatch(pretrained):
        raise MedtasksError(f"{pretrained}: neither a checkpoint directory nor a hub id (owner/name).")
    return pretrained


def _attempt(name: str, what: str, load: Callable[[], T]) -> T:
    try:
        return load()
    except torch.cuda.OutOfMemoryError as error:
        raise MedtasksError(f"{name}: the {what} does not fit into GPU memory.") from error
    except Exception as error:  # transformers, safetensors and the hub client raise a dozen unrelated types
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise MedtasksError(f"{name}: the {what} cannot be loaded: {lines[0]}") from error


def _load_processor(given: CheckpointArguments, source: str, common: dict[str, Any]) -> Any:
    processor = _attempt(given.pretrained, "processor", lambda: AutoProcessor.from_pretrained(source, **common))
    if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
        raise MedtasksError(f"{given.pretrained}: its processor takes no images, expected a vision model.")
    if not getattr(processor, "chat_template", None):
        processor.chat_template = getattr(processor.tokenizer, "chat_template", None)
    if not processor.chat_template:
        raise MedtasksError(
            f"{given.pretrained}: no chat template, expected an instruction-tuned checkpoint with one "
            "(chat_template.jinja)."
        )
    tokenizer = processor.tokenizer
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return processor


def _load_model(given: CheckpointArguments, source: str, common: dict[str, Any], device: torch.device) -> Any:
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


def _limit_processor(processor: Any, limits: PixelLimits) -> None:
    """Apply the limits to processors that have pixel limits (the Qwen-VL family); others keep their sizes."""
    image_processor = processor.image_processor
    known = getattr(getattr(image_processor, "valid_kwargs", None), "__annotations__", {})
    size = getattr(image_processor, "size", None)
    if "max_pixels" not in known or size is None:
        return
    changed = dict(size)
    least = changed["shortest_edge"] if limits.least is None else limits.least
    most = changed["longest_edge"] if limits.most is None else limits.most
    # A single given limit takes precedence over the checkpoint's other one.
    if limits.least is None:
        least = min(least, most)
    if limits.most is None:
        most = max(least, most)
    image_processor.size = type(size)(**{**changed, "shortest_edge": least, "longest_edge": most})


def _facts(given: CheckpointArguments, source: str, config: Any, model: Any, device: torch.device) -> dict[str, Any]:
    local = fingerprint_of(source)
    revision = given.revision if local else getattr(config, "_commit_hash", None) or given.revision
    defaults = model.generation_config.to_diff_dict()
    defaults.pop("transformers_version", None)
    return {
        "pretrained": given.pretrained,
        "revision": revision,
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
