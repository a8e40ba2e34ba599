"""A vision-language checkpoint, loaded with its processor, and facts about both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import transformers
from transformers import AutoModelForImageTextToText, AutoProcessor

from medtasks.core.errors import MedtasksError
from medtasks.core.schema import expects
from medtasks.harness.model_facts import adapter_facts, fingerprint_of, training_facts
from medtasks.metrics.learned.checkpoints import HUB_ID

from ._settings import Count, GeneratingArguments

TINY = Path(__file__).with_name("tiny_vlm")
"""A checkpoint trained on drawn pictures for the demo; its README says how."""
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
    """JSON-serializable facts about a checkpoint, its model, and the libraries that run it."""
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
        **training_facts(source, arguments.peft),
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
    """Turn errors of loading a part of the checkpoint ``name`` into a :class:`MedtasksError`."""
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
    """The model on ``device``, with its PEFT adapter if one is given."""
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
    _refuse_incomplete_weights(arguments.pretrained, report)
    if arguments.peft is None:
        return model
    return _adapted(model, arguments.peft)


def _refuse_incomplete_weights(name: str, report: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that lacks weights: transformers fills them with random numbers."""
    unfit = {*report.get("missing_keys", ()), *report.get("mismatched_keys", ())}
    if unfit:
        first = min(map(str, unfit))
        raise MedtasksError(
            f"{name}: {len(unfit)} weight(s) missing or of another shape, first {first}."
        )


def _adapted(model: Any, peft: str) -> Any:
    """The model with a PEFT adapter."""
    from peft import PeftModel

    with _loading_errors(peft, "PEFT adapter"):
        adapted = PeftModel.from_pretrained(model, peft)
    # Merged weights are as fast as those of the model; some adapter types cannot be merged.
    if hasattr(adapted.base_model, "merge_and_unload"):
        return adapted.merge_and_unload()
    return adapted
