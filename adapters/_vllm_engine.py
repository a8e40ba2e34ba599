"""vLLM's offline engine: its arguments, loading it with a checkpoint, and facts about both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, ValidationError

from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.extras import needs
from medtasks.core.schema import first_problem
from medtasks.harness.model_facts import adapter_facts, fingerprint_of, training_facts

from ._settings import Count, GeneratingArguments

MOST_PICTURES = 64
"""Pictures in a prompt by default: vLLM needs a limit in advance, and windows have 64 frames."""


class VLLMArguments(GeneratingArguments):
    """Arguments of ``medtasks_vllm``.

    All others are passed to ``vllm.LLM`` (``tensor_parallel_size``, ``quantization``,
    ``max_model_len``, …); a dictionary is written as JSON: ``limit_mm_per_prompt={"image": 128}``.
    """

    model_config = ConfigDict(extra="allow")

    # requests passed to the engine at once, which schedules them by itself
    batch_size: Count = 512
    # directory of a LoRA adapter
    lora: str | None = None


def engine_arguments(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``vllm.LLM``: our defaults and the user's."""
    engine: dict[str, Any] = {"limit_mm_per_prompt": {"image": MOST_PICTURES}}
    for name, value in extra.items():
        engine[name] = _parsed_argument(name, value)
    if engine.get("data_parallel_size", 1) != 1:
        raise UsageError(
            f"data_parallel_size is {engine['data_parallel_size']}, but vLLM's offline API runs "
            "one replica; set tensor_parallel_size, or start vllm serve --data-parallel-size and "
            "use --model async_openai."
        )
    return engine


def _parsed_argument(name: str, value: Any) -> Any:
    """An argument of the engine; the harness's parser leaves dictionaries as JSON texts."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise UsageError(f"{name} is {value!r}, which is not valid JSON ({error}).") from error


def number_of_gpus(engine: Mapping[str, Any]) -> int:
    """The number of GPUs that the engine uses."""
    tensor_parallel = int(engine.get("tensor_parallel_size") or 1)
    pipeline_parallel = int(engine.get("pipeline_parallel_size") or 1)
    return tensor_parallel * pipeline_parallel


def _imported_engine() -> Any:
    """The class of vLLM's offline engine."""
    with needs("vllm", "medtasks_vllm"):
        from vllm import LLM
    return LLM


def load_engine(arguments: VLLMArguments, engine: Mapping[str, Any]) -> Any:
    """The engine with its checkpoint loaded; ``engine`` are vLLM's own arguments."""
    engine_class = _imported_engine()
    name = arguments.pretrained
    try:
        return engine_class(
            model=name,
            seed=arguments.seed % 2**31,
            disable_log_stats=False,
            enable_lora=arguments.lora is not None,
            **engine,
        )
    except Exception as error:  # vLLM, transformers and drivers raise many types
        # the first line of a validation error is only a count
        reason = first_problem(error) if isinstance(error, ValidationError) else first_line(error)
        raise MedtasksError(f"{name}: vLLM cannot serve it: {reason}") from error


def placeholder_tokens(model: Any) -> set[int]:
    """The ids of the tokens that stand for a part of a picture or video in a prompt."""
    config = model.llm_engine.vllm_config.model_config.hf_config
    placeholders: set[int] = set()
    for modality in ("image", "video"):
        token = getattr(config, f"{modality}_token_id", None)
        if token is not None:
            placeholders.add(token)
    return placeholders


def lora_request(directory: str | None) -> Any:
    """vLLM's request for the LoRA adapter in ``directory``; None without one."""
    if directory is None:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, directory)


def engine_facts(arguments: VLLMArguments, engine: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """JSON-serializable facts about checkpoint and engine."""
    import vllm

    config = model.llm_engine.vllm_config.model_config
    fingerprint = fingerprint_of(arguments.pretrained)
    revision = engine.get("revision")
    if not fingerprint:  # from the hub, so the commit is known
        revision = getattr(config.hf_config, "_commit_hash", None) or revision
    return {
        "pretrained": arguments.pretrained,
        "revision": revision,
        **fingerprint,
        "lora": adapter_facts(arguments.lora),
        **training_facts(arguments.pretrained, arguments.lora),
        "architecture": config.architectures[0],
        "dtype": str(config.dtype).removeprefix("torch."),
        "engine": dict(sorted(engine.items())),
        "vllm": vllm.__version__,
    }
