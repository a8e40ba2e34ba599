"""``medtasks_vllm`` on a real engine: four benchmarks in miniature. ``.ci/engines`` installs vLLM and runs this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is installed by .ci/engines")

TASKS = "kvasir_vqa_x1_level1,mi_cxr_tel_single,med_cmr_mcq_msi,medstreambench_future_streaming"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """vLLM's attention on CPU wants heads of 64 or more."""
    from medtasks.adapters.tiny import TinyConfig, build_tiny_vlm

    shape = TinyConfig(hidden_size=128, heads=2, kv_heads=1, max_pixels=196 * 28 * 28, min_pixels=196 * 28 * 28)
    return build_tiny_vlm(tmp_path_factory.mktemp("checkpoint"), config=shape)


def run(checkpoint: Path, output: Path, model: str = "medtasks_vllm") -> dict[str, Any]:
    """The harness in a process of its own; its manifest."""
    given: dict[str, object] = {"pretrained": checkpoint, "dtype": "float32", "max_new_tokens": 16}
    if model == "medtasks_vllm":
        given |= {"enforce_eager": True, "max_model_len": 16384, "block_size": 32}
    command = [
        sys.executable, "-m", "lmms_eval", "--model", model, "--tasks", TASKS, "--output_path", str(output),
        "--model_args", ",".join(f"{name}={value}" for name, value in given.items()),
    ]  # fmt: skip
    environment = {**os.environ, "MEDTASKS_DATA": "mini", "VLLM_CPU_KVCACHE_SPACE": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    (manifest,) = output.rglob("*_medtasks/manifest.json")
    found: dict[str, Any] = json.loads(manifest.read_text())
    return found


@pytest.fixture(scope="module")
def manifest(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of one run with vLLM."""
    return run(checkpoint, tmp_path_factory.mktemp("run"))


def test_every_request_of_four_benchmarks_is_answered(manifest: dict[str, Any]) -> None:
    assert not manifest["problems"]
    assert not any(facts["failed"] for facts in manifest["tasks"].values())
    assert manifest["model"]["architecture"] == "Qwen2_5_VLForConditionalGeneration"


def test_the_caches_know_pictures_and_prefixes_of_the_request_before(manifest: dict[str, Any]) -> None:
    usage, counters = manifest["usage"], manifest["usage"]["counters"]
    assert counters["mm_cache_hits"] > 0
    assert 0 < counters["prefix_cache_hits"] < counters["prefix_cache_queries"]
    assert 0 < usage["reused_tokens"] <= counters["prefix_cache_hits"]
    assert 0 < usage["vision_tokens"] < usage["prompt_tokens"]
    assert usage["output_tokens"] > 0
    assert "peak_rss" not in usage  # the engine has a process of its own


def test_answers_agree_with_those_of_transformers(checkpoint: Path, tmp_path: Path) -> None:
    """Same prompts and weights; where two tokens are nearly tied, engines may choose differently."""
    run(checkpoint, tmp_path / "vllm")
    run(checkpoint, tmp_path / "vlm", model="medtasks_vlm")
    ours, theirs = (responses(tmp_path / name) for name in ("vllm", "vlm"))
    assert ours.keys() == theirs.keys()
    assert sum(ours[key] == theirs[key] for key in ours) > 0.8 * len(ours)


def responses(output: Path) -> dict[tuple[str, str], str]:
    """Responses of a run by task and sample id."""
    found = {}
    for path in output.rglob("*_medtasks/samples/*.jsonl"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found[path.stem, row["sample_id"]] = "\n".join(row["responses"])
    return found
