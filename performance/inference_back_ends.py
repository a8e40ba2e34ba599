"""The back-ends that `inference.py` compares, their random-weight checkpoint, and what their models
are run on.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # training/ is not installed
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# hooks and the process's CPU time need the engine in here
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")

TOKEN = 28 * 28
"""Pixels that become one token."""
ENGINE = {
    "enforce_eager": True,
    "block_size": 32,
    "max_model_len": 2048,
    "max_num_seqs": 4,
    "kv_cache_memory_bytes": 20 << 20,
}
"""vLLM's settings on a CPU. A token of the checkpoint takes 8 KiB of the KV cache."""


def checkpoint(directory: Path, shape: str) -> Path:
    """A random-weight Qwen2.5-VL of 123 M parameters, of 42 M for the engine, or of the size of the
    3B one.
    """
    from training.tiny import TinyConfig, build_tiny_vlm

    shapes = {
        "cpu": TinyConfig(
            vocab_size=8192, hidden_size=768, intermediate_size=2304,
            layers=12, heads=12, kv_heads=4,
            vision_hidden_size=480, vision_intermediate_size=1344, vision_depth=8, vision_heads=6,
            max_pixels=400 * TOKEN, end_gain=0.0,
        ),
        "engine": TinyConfig(
            vocab_size=8192, hidden_size=512, intermediate_size=1536, layers=8, heads=8, kv_heads=2,
            vision_hidden_size=320, vision_intermediate_size=896, vision_depth=6, vision_heads=5,
            max_pixels=400 * TOKEN, end_gain=0.0,
        ),
        "gpu": TinyConfig(
            vocab_size=151_936, hidden_size=2048, intermediate_size=11_008,
            layers=36, heads=16, kv_heads=2,
            vision_hidden_size=1280, vision_intermediate_size=3420,
            vision_depth=32, vision_heads=16,
            max_pixels=400 * TOKEN, end_gain=0.0, dtype="bfloat16",
        ),
        "smoke": TinyConfig(end_gain=0.0),
    }  # fmt: skip
    return build_tiny_vlm(directory, config=shapes[shape])


def load(
    kind: str, path: str, batch: int, device: str, dtype: str
) -> tuple[Any, Counts | EngineCounts]:
    """The back-end, and what its model is run on."""
    import torch

    if kind in ("vllm", "vllm_shuffled"):
        return load_engine(path, batch, device, dtype, shuffled=kind == "vllm_shuffled")
    if kind in ("ours", "plain"):
        from medtasks.adapters.vlm import MedtasksVLM

        ours = MedtasksVLM(
            pretrained=path,
            device=device,
            dtype=dtype,
            batch_size=batch,
            share_prefix=kind == "ours",
        )
        return ours, Counts(ours._model)
    from transformers import AutoModelForImageTextToText

    name, extra = {
        "huggingface": ("Huggingface", {}),
        "qwen2_5_vl": ("Qwen2_5_VL", {"min_pixels": 4 * TOKEN, "max_pixels": 400 * TOKEN}),
    }[kind]
    back_end = getattr(importlib.import_module(f"lmms_eval.models.chat.{kind}"), name)
    peer = back_end(pretrained=path, device=device, device_map=device, batch_size=batch, **extra)
    precision = getattr(torch, dtype)
    peer._model = AutoModelForImageTextToText.from_pretrained(
        path, dtype=precision, device_map=device
    ).eval()
    peer.processor = WithoutEmpty(peer.processor)
    return peer, Counts(peer._model)


def load_engine(
    path: str, batch: int, device: str, dtype: str, *, shuffled: bool
) -> tuple[Any, EngineCounts]:
    """``medtasks_vllm``; with ``shuffled``, requests reach vLLM in random order."""
    from medtasks.adapters.vllm import MedtasksVLLM

    class Shuffled(MedtasksVLLM):
        def batches(self, requests: Any) -> Any:
            planned = list(super().batches(requests))
            for batch in planned:
                random.Random(0).shuffle(batch)
            return planned

    settings = ENGINE if device == "cpu" else {"max_model_len": 16384}
    kind = Shuffled if shuffled else MedtasksVLLM
    model = kind(pretrained=path, dtype=dtype, batch_size=batch, **settings)
    return model, EngineCounts(model._model)


class WithoutEmpty:
    """A processor that is not told of media which a prompt does not have."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, **arguments: Any) -> Any:
        return self._processor(**{name: value for name, value in arguments.items() if value != []})


class Counts:
    """What the modules of a model are run on."""

    def __init__(self, model: Any) -> None:
        self.pictures = 0
        self.tokens = 0
        model.model.visual.register_forward_pre_hook(self._sees, with_kwargs=True)
        model.model.language_model.register_forward_pre_hook(self._reads, with_kwargs=True)

    def _sees(self, module: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG002
        self.pictures += len(kwargs["grid_thw"])

    def _reads(self, module: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG002
        rows, tokens, _ = kwargs["inputs_embeds"].shape
        self.tokens += rows * tokens

    def reset(self) -> None:
        """Start at zero."""
        self.pictures = self.tokens = 0

    def prefill(self, generated: int) -> int:
        """Prompt tokens among those read; ``generated`` is the number of the others."""
        return self.tokens - generated


class EngineCounts:
    """The same for a model that vLLM runs; prompt tokens are by vLLM's own counters."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._before = 0
        self.pictures = 0
        engine.apply_model(
            lambda model: model.visual.register_forward_pre_hook(self._sees, with_kwargs=True)
        )

    def _sees(self, module: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG002
        self.pictures += len(kwargs["grid_thw"])

    def _computed(self) -> int:
        values = {metric.name: getattr(metric, "value", 0) for metric in self._engine.get_metrics()}
        return int(values["vllm:prefix_cache_queries"] - values["vllm:prefix_cache_hits"])

    def reset(self) -> None:
        """Start at zero."""
        self.pictures, self._before = 0, self._computed()

    def prefill(self, generated: int) -> int:  # noqa: ARG002
        """Prompt tokens that were not found in the prefix cache."""
        return self._computed() - self._before
