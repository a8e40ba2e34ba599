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
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inference_back_ends import TOKEN, checkpoint, load

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


def documents(work: Work) -> Iterator[dict[str, Any]]:
    """Questions of different lengths; pictures are names, drawn when a request is read."""
    asked = "is it seen at the cecum, and how large is it, and what colour "
    for group in range(work.groups):
        for number in range(work.questions):
            pictures = work.pictures + work.growth * number
            yield {
                "sample_id": f"{work.name}-{group}-{number}",
                "media": [f"{group}-{place}" for place in range(pictures)],
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
        generator = np.random.default_rng(list(name.encode()))
        noise = generator.integers(0, 256, (20, 20, 3), dtype=np.uint8)
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
    read_tokens = work.answer - 1  # the last of an answer's tokens is never read
    on_gpu = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    return {
        "seconds": seconds,
        "cpu": cpu,
        "pictures": counts.pictures,
        "prefill": counts.prefill(generated=len(rows) * read_tokens),
        "peak": on_gpu or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "tokens": [result.token_counts.output_tokens for result in results],
        "texts": [result.text for result in results],
    }


def in_its_process(task: dict[str, Any]) -> dict[str, Any] | None:
    """What a process of its own reports; None where the back-end does not run here."""
    command = [sys.executable, __file__, "--contend", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1]
        print(f"  {task['kind']} does not run here: {reason}", flush=True)
        return None
    measured: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured


COLUMNS = (
    "back-end",
    "at once",
    "samples/s",
    "ratio",
    "CPU s",
    "ratio",
    "pictures encoded",
    "prompt tokens",
    "MiB",
    "same",
)


def compare(work: Work, path: Path, device: str, dtype: str, only: str) -> None:
    """One table: every contender on ``work``; ratios and answers are compared with the first
    one.
    """
    requests_made = f"{work.groups} x {work.questions} requests"
    print(f"\n{work.name}: {requests_made}, {work.answer} new tokens each, {dtype}\n")
    print(f"| {' | '.join(COLUMNS)} |")
    print("|---" + "|---:" * (len(COLUMNS) - 1) + "|", flush=True)
    first: dict[str, Any] | None = None
    for name, (kind, fixed) in CONTENDERS.items():
        if only not in name:
            continue
        batch = fixed or work.questions
        task = {
            "kind": kind,
            "work": asdict(work),
            "path": str(path),
            "batch": batch,
            "device": device,
            "dtype": dtype,
        }
        measured = in_its_process(task)
        if measured is None:
            continue
        first = first or measured
        lengths = set(measured["tokens"])
        if lengths != {work.answer}:
            print(f"  {name}: answers have {sorted(lengths)} tokens, not {work.answer}")
        cells = [name, batch, *measured_cells(measured, first)]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def measured_cells(measured: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """The columns after the first two."""
    answers = len(measured["texts"])
    same = sum(map(str.__eq__, measured["texts"], first["texts"]))
    return [
        f"{answers / measured['seconds']:.2f}",
        f"{first['seconds'] / measured['seconds']:.1f}",
        f"{measured['cpu']:.1f}",
        f"{first['cpu'] / measured['cpu']:.1f}",
        f"{measured['pictures']:,}",
        f"{measured['prefill']:,}",
        f"{measured['peak'] >> 20:,}",
        f"{same} of {answers}",
    ]


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
    packages = f"torch {torch.__version__}, transformers {transformers.__version__}"
    versions = f"Python {platform.python_version()}, {packages}"
    print(f"{platform.machine()}, {os.cpu_count()} hardware threads, {versions}{gpu}")
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint(Path(folder), arguments.shape)
        for work in SHAPES[arguments.shape]:
            if arguments.work in work.name:
                compare(work, path, arguments.device, arguments.dtype, arguments.only)


if __name__ == "__main__":
    main()
