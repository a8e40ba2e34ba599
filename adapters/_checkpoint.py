"""Loading an image-text-to-text checkpoint, with one clear sentence for all that can be wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from medtasks.errors import MedtasksError, UsageError

from ._fingerprint import METHOD, fingerprint_directory
from ._generation import forget_sampling
from ._messages import PixelLimits
from ._progress import progress_bars
from .tiny import tiny_checkpoint

__all__ = ["Checkpoint", "CheckpointChoice", "load_checkpoint"]

DTYPES = ("auto", "float32", "bfloat16", "float16")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
T = TypeVar("T")


@dataclass(frozen=True)
class CheckpointChoice:
    """What the user asked for. ``pretrained`` is a directory, a hub id, or the word ``tiny``."""

    pretrained: str
    revision: str | None = None
    dtype: str = "auto"
    attn_implementation: str | None = None
    peft: str | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype is {self.dtype!r}, expected one of {', '.join(DTYPES)}.")


@dataclass(frozen=True)
class Checkpoint:
    """A model in evaluation mode, its processor, and ``facts`` about both that can be written as JSON."""

    model: Any
    processor: Any
    facts: dict[str, Any]


def load_checkpoint(
    choice: CheckpointChoice, device: torch.device, limits: PixelLimits, progress: bool = True
) -> Checkpoint:
    """Load model and processor onto ``device``.

    Raises
    ------
    MedtasksError
        Where the checkpoint is missing or incomplete, is no vision-language model, or has no chat template.
    """
    source, where = _locate(choice)
    common: dict[str, Any] = {"trust_remote_code": choice.trust_remote_code}
    if choice.revision:
        common["revision"] = choice.revision
    with progress_bars(progress):
        config = _attempt(choice.pretrained, "configuration", lambda: AutoConfig.from_pretrained(source, **common))
        _check_kind(choice, config)
        processor = _load_processor(choice, source, common)
        model = _load_model(choice, source, common, device)
    _limit_processor(processor, limits)
    model.eval()
    facts = _facts(choice, config, model, where, device)
    forget_sampling(model.generation_config)
    return Checkpoint(model, processor, facts)


def _locate(choice: CheckpointChoice) -> tuple[str, Path | None]:
    if choice.pretrained == "tiny":
        directory = tiny_checkpoint()
        return str(directory), directory
    directory = Path(choice.pretrained).expanduser()
    if directory.is_dir():
        if not (directory / "config.json").is_file():
            raise MedtasksError(f"{directory}: no config.json, expected a transformers checkpoint directory.")
        return str(directory), directory
    if not _HUB_ID.fullmatch(choice.pretrained):
        raise MedtasksError(f"{choice.pretrained}: neither a checkpoint directory nor a hub id (owner/name).")
    return choice.pretrained, None


def _attempt(name: str, what: str, load: Callable[[], T]) -> T:
    # transformers, safetensors and the hub client raise a dozen unrelated types; all end the run here.
    try:
        return load()
    except torch.cuda.OutOfMemoryError as error:
        raise MedtasksError(f"{name}: the {what} does not fit into GPU memory.") from error
    except MedtasksError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise MedtasksError(f"{name}: the {what} cannot be loaded: {lines[0]}") from error


def _check_kind(choice: CheckpointChoice, config: Any) -> None:
    own_classes = getattr(config, "auto_map", None) or {}
    remote = choice.trust_remote_code and "AutoModelForImageTextToText" in own_classes
    if config.model_type not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES and not remote:
        raise MedtasksError(
            f"{choice.pretrained}: a model of type {config.model_type!r} was found, expected one that "
            "transformers lists as image-text-to-text."
        )


def _load_processor(choice: CheckpointChoice, source: str, common: dict[str, Any]) -> Any:
    processor = _attempt(choice.pretrained, "processor", lambda: AutoProcessor.from_pretrained(source, **common))
    if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
        raise MedtasksError(f"{choice.pretrained}: its processor takes no images, expected a vision model.")
    if not getattr(processor, "chat_template", None):
        processor.chat_template = getattr(processor.tokenizer, "chat_template", None)
    if not processor.chat_template:
        raise MedtasksError(
            f"{choice.pretrained}: no chat template, expected an instruction-tuned checkpoint with one "
            "(chat_template.jinja)."
        )
    tokenizer = processor.tokenizer
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return processor


def _load_model(choice: CheckpointChoice, source: str, common: dict[str, Any], device: torch.device) -> Any:
    # "auto" is what the checkpoint was saved in, but half precision is slow and coarse on CPU.
    dtype = "float32" if choice.dtype == "auto" and device.type == "cpu" else choice.dtype
    extra = {**common, "dtype": dtype if dtype == "auto" else getattr(torch, dtype)}
    if choice.attn_implementation:
        extra["attn_implementation"] = choice.attn_implementation
    if device.type == "cuda":
        extra["device_map"] = {"": device}  # straight to the GPU, without a copy of the model in host memory
    model, report = _attempt(
        choice.pretrained,
        "model",
        lambda: AutoModelForImageTextToText.from_pretrained(source, output_loading_info=True, **extra),
    )
    unfit = sorted(map(str, {*report.get("missing_keys", ()), *report.get("mismatched_keys", ())}))
    if unfit:  # transformers would fill them with random numbers and only warn
        raise MedtasksError(
            f"{choice.pretrained}: {len(unfit)} weight(s) missing or of another shape, first {unfit[0]}."
        )
    return _with_adapter(choice, model) if choice.peft else model


def _with_adapter(choice: CheckpointChoice, model: Any) -> Any:
    from peft import PeftModel

    path = str(choice.peft)
    if not _HUB_ID.fullmatch(path) and not Path(path).expanduser().is_dir():
        raise MedtasksError(f"{path}: no such PEFT adapter directory, and not a hub id (owner/name).")
    adapted = _attempt(path, "PEFT adapter", lambda: PeftModel.from_pretrained(model, path))
    # Merged weights generate as fast as the plain model; kinds that cannot be merged stay as they are.
    return adapted.merge_and_unload() if hasattr(adapted.base_model, "merge_and_unload") else adapted


def _limit_processor(processor: Any, limits: PixelLimits) -> None:
    """Hand the limits to processors that count pixels (the Qwen-VL family); others keep their own sizes."""
    image_processor = processor.image_processor
    known = getattr(getattr(image_processor, "valid_kwargs", None), "__annotations__", {})
    size = getattr(image_processor, "size", None)
    if "max_pixels" not in known or size is None:
        return
    changed = dict(size)
    least = changed["shortest_edge"] if limits.least is None else limits.least
    most = changed["longest_edge"] if limits.most is None else limits.most
    # One limit alone can cross the checkpoint's other one; the given one wins.
    if limits.least is None:
        least = min(least, most)
    if limits.most is None:
        most = max(least, most)
    image_processor.size = type(size)(**{**changed, "shortest_edge": least, "longest_edge": most})


def _facts(
    choice: CheckpointChoice, config: Any, model: Any, where: Path | None, device: torch.device
) -> dict[str, Any]:
    facts: dict[str, Any] = {"pretrained": choice.pretrained, "revision": choice.revision}
    if where is not None:
        facts |= {"fingerprint": fingerprint_directory(where), "fingerprint_method": METHOD}
    else:
        facts["revision"] = getattr(config, "_commit_hash", None) or choice.revision
    if choice.peft:
        adapter = Path(choice.peft).expanduser()
        facts["peft"] = {"path": choice.peft}
        if adapter.is_dir():
            facts["peft"]["fingerprint"] = fingerprint_directory(adapter)
    else:
        facts["peft"] = None
    defaults = model.generation_config.to_diff_dict()
    defaults.pop("transformers_version", None)
    facts |= {
        "architecture": type(model).__name__,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "attn_implementation": getattr(model.config, "_attn_implementation", None),
        "generation_defaults": dict(sorted(defaults.items())),
        "transformers": transformers.__version__,
        "torch": torch.__version__,
    }
    return facts
