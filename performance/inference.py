"""S4: answering with a transformers checkpoint, against the harness's own back-ends, in one run.

Every contender is a process of its own and answers the same requests with the same random-weight
checkpoint, which never ends an answer early, so that all generate the same number of tokens. What
the vision tower and the decoder were run on is counted by hooks on their modules, for all
contenders alike. One other request is answered before the clock starts. Where a machine has other
work to do, CPU seconds are the steadier measure.

The harness's back-ends load bfloat16 whatever the device, so they are given the same model in the
precision of the run. `huggingface` of lmms-eval 0.7.3 does not run with this transformers as it is:
it loads the model without its language head, and passes the processor an argument that was renamed.
Here it has the whole model, and the argument is left out.

`--shape gpu` is work for an accelerator: a checkpoint of the size of Qwen2.5-VL-3B, in bfloat16.
`--shape engine` is more groups of smaller pictures, for `medtasks_vllm` in media order and
shuffled, if vLLM is installed: order only matters where the caches hold less than the run shows, so
the KV cache has room for 2,560 tokens.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # training/ is not installed
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault(
    "VLLM_ENABLE_V1_MULTIPROCESSING", "0"
)  # hooks and the process's CPU time need the engine in here

TOKEN = 28 * 28  # pixels that become one token
CONTENDERS = {
    "`huggingface` (harness)": ("huggingface", 1),
    "`huggingface` (harness), batches": ("huggingface", 0),
    "`qwen2_5_vl_chat` (harness)": ("qwen2_5_vl", 1),
    "`medtasks_vlm`, `share_prefix=false`": ("plain", 0),
    "`medtasks_vlm`": ("ours", 0),
    "`medtasks_vllm`, shuffled": ("vllm_shuffled", 512),
    "`medtasks_vllm`": ("vllm", 512),
}
"""Who answers, and how many requests at once; 0 stands for those that share their media."""
ENGINE = {
    "enforce_eager": True,
    "block_size": 32,
    "max_model_len": 2048,
    "max_num_seqs": 4,
    "kv_cache_memory_bytes": 20 << 20,
}
"""vLLM's settings on a CPU. A token of the checkpoint takes 8 KiB of the KV cache."""


@dataclass(frozen=True)
class Work:
    """``groups`` times ``questions`` requests, which share ``pictures`` pictures of ``tokens``
    tokens each.

    In a stream every request shows ``growth`` more than the one before it. An answer has ``answer``
    tokens.
    """

    name: str
    groups: int
    questions: int
    pictures: int
    tokens: int
    answer: int
    growth: int = 0


SHAPES = {
    "cpu": [
        Work("Kvasir", groups=4, questions=24, pictures=1, tokens=400, answer=6),
        Work("MI-CXR", groups=6, questions=4, pictures=5, tokens=144, answer=4),
        Work("MedStream", groups=6, questions=5, pictures=2, tokens=64, answer=8, growth=3),
    ],
    "gpu": [
        Work("Kvasir", groups=20, questions=24, pictures=1, tokens=400, answer=32),
        Work("MI-CXR", groups=20, questions=6, pictures=5, tokens=400, answer=8),
        Work("MedStream", groups=8, questions=12, pictures=4, tokens=256, answer=16, growth=4),
    ],
    "engine": [
        Work("Kvasir", groups=12, questions=6, pictures=1, tokens=256, answer=4),
        Work("MI-CXR", groups=12, questions=4, pictures=5, tokens=64, answer=4),
        Work("MedStream", groups=8, questions=4, pictures=2, tokens=36, answer=4, growth=3),
    ],
    "smoke": [
        Work("Kvasir", groups=2, questions=3, pictures=1, tokens=16, answer=3),
        Work("MI-CXR", groups=1, questions=2, pictures=5, tokens=9, answer=2),
        Work("MedStream", groups=1, questions=3, pictures=1, tokens=9, answer=2, growth=2),
    ],
}


def checkpoint(directory: Path, shape: str) -> Path:
    """A random-weight Qwen2.5-VL of 123 M parameters, of 42 M for the engine, or of the size of the
    3B one.
    """
    from training.tiny import TinyConfig, build_tiny_vlm

    shapes = {
        "cpu": TinyConfig(
            vocab_size=8192, hidden_size=768, intermediate_size=2304, layers=12, heads=12, kv_heads=4,
            vision_hidden_size=480, vision_intermediate_size=1344, vision_depth=8, vision_heads=6,
            max_pixels=400 * TOKEN, end_gain=0.0,
        ),
        "engine": TinyConfig(
            vocab_size=8192, hidden_size=512, intermediate_size=1536, layers=8, heads=8, kv_heads=2,
            vision_hidden_size=320, vision_intermediate_size=896, vision_depth=6, vision_heads=5,
            max_pixels=400 * TOKEN, end_gain=0.0,
        ),
        "gpu": TinyConfig(
            vocab_size=151_936, hidden_size=2048, intermediate_size=11_008, layers=36, heads=16, kv_heads=2,
            vision_hidden_size=1280, vision_intermediate_size=3420, vision_depth=32, vision_heads=16,
            max_pixels=400 * TOKEN, end_gain=0.0, dtype="bfloat16",
        ),
        "smoke": TinyConfig(end_gain=0.0),
    }  # fmt: skip
    return build_tiny_vlm(directory, config=shapes[shape])


def documents(work: Work) -> Iterator[dict[str, Any]]:
    """Questions of different lengths; pictures are names, drawn when a request is read."""
    asked = "is it seen at the cecum, and how large is it, and what colour "
    for group in range(work.groups):
        for number in range(work.questions):
            yield {
                "sample_id": f"{work.name}-{group}-{number}",
                "media": [
                    f"{group}-{place}" for place in range(work.pictures + work.growth * number)
                ],
                "tokens": work.tokens,
                "question": "The image is a single frame. Reply to the question in one sentence of "
                "plain clinical language. Deal with every part of it.\n\nQuestion: "
                f"{asked * (1 + number % 3)}{number}?",
            }


def messages(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Pictures, then the question."""
    import numpy as np
    from PIL import Image

    side = round((document["tokens"] * TOKEN) ** 0.5)
    parts: list[dict[str, Any]] = []
    for name in document["media"]:
        noise = np.random.default_rng(list(name.encode())).integers(
            0, 256, (20, 20, 3), dtype=np.uint8
        )
        parts.append({"type": "image", "url": Image.fromarray(noise).resize((side, side))})
    return [{"role": "user", "content": [*parts, {"type": "text", "text": document["question"]}]}]


def requests(name: str, answer: int, rows: list[dict[str, Any]]) -> list[Any]:
    """The harness's requests for ``rows``."""
    from lmms_eval.api.instance import Instance

    settings = {"max_new_tokens": answer, "temperature": 0}
    return [
        Instance(
            request_type="generate_until",
            arguments=(row["question"], messages, dict(settings), number, name, "test"),
            idx=0,
            metadata={"task": name, "doc_id": number, "repeats": 1, "split": "test"},
        )
        for number, row in enumerate(rows)
    ]


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
    model = (Shuffled if shuffled else MedtasksVLLM)(
        pretrained=path, dtype=dtype, batch_size=batch, **settings
    )
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


def contend(
    kind: str, work: Work, path: str, batch: int, device: str, dtype: str
) -> dict[str, Any]:
    """Answer the work, and what that took."""
    import torch

    rows = list(documents(work))
    model, counts = load(kind, path, batch, device, dtype)
    other_row = {**rows[0], "media": ["other"]}
    model.task_dict = {"other": {"test": [other_row]}, work.name: {"test": rows}}
    model.generate_until(requests("other", 2, [other_row]))
    counts.reset()
    asked = requests(work.name, work.answer, rows)
    began, used = time.perf_counter(), time.process_time()
    results = model.generate_until(asked)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    on_gpu = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    return {
        "seconds": seconds,
        "cpu": cpu,
        "pictures": counts.pictures,
        "prefill": counts.prefill(
            len(rows) * (work.answer - 1)
        ),  # the last of an answer's tokens is never read
        "peak": on_gpu or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "tokens": [result.token_counts.output_tokens for result in results],
        "texts": [result.text for result in results],
    }


def in_its_process(task: dict[str, Any]) -> dict[str, Any] | None:
    """What a process of its own reports; None where the back-end does not run here."""
    command = [sys.executable, __file__, "--contend", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(
            f"  {task['kind']} does not run here: {done.stderr.strip().splitlines()[-1]}",
            flush=True,
        )
        return None
    measured: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured


def compare(work: Work, path: Path, device: str, dtype: str, only: str) -> None:
    """One table: every contender on ``work``; ratios and answers are compared with the first
    one.
    """
    print(
        f"\n{work.name}: {work.groups} x {work.questions} requests, {work.answer} new tokens each, "
        f"{dtype}\n"
    )
    print(
        "| back-end | at once | samples/s | ratio | CPU s | ratio | pictures encoded | prompt "
        "tokens | MiB | same |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    first: dict[str, Any] | None = None
    for name, (kind, fixed) in CONTENDERS.items():
        if only not in name:
            continue
        batch = fixed or work.questions
        measured = in_its_process(
            {
                "kind": kind,
                "work": asdict(work),
                "path": str(path),
                "batch": batch,
                "device": device,
                "dtype": dtype,
            }
        )
        if measured is None:
            continue
        first = first or measured
        if set(measured["tokens"]) != {work.answer}:
            print(
                f"  {name}: answers have {sorted(set(measured['tokens']))} tokens, not {work.answer}"
            )
        answers = len(measured["texts"])
        cells = (
            name,
            batch,
            f"{answers / measured['seconds']:.2f}",
            f"{first['seconds'] / measured['seconds']:.1f}",
            f"{measured['cpu']:.1f}",
            f"{first['cpu'] / measured['cpu']:.1f}",
            f"{measured['pictures']:,}",
            f"{measured['prefill']:,}",
            f"{measured['peak'] >> 20:,}",
            f"{sum(map(str.__eq__, measured['texts'], first['texts']))} of {answers}",
        )
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    """Print one table for each kind of work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=list(SHAPES), default="cpu")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", default="", help="contenders whose names hold this")
    parser.add_argument("--work", default="", help="work whose names hold this")
    parser.add_argument("--contend", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contend:
        task = json.loads(arguments.contend)
        print(json.dumps(contend(**{**task, "work": Work(**task["work"])})))
        return
    import torch
    import transformers

    gpu = f", {torch.cuda.get_device_name()}" if arguments.device == "cuda" else ""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{platform.machine()}, {os.cpu_count()} hardware threads, {versions}{gpu}")
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint(Path(folder), arguments.shape)
        for work in SHAPES[arguments.shape]:
            if arguments.work in work.name:
                compare(work, path, arguments.device, arguments.dtype, arguments.only)


if __name__ == "__main__":
    main()
