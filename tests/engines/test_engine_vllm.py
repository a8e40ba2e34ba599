"""``medtasks_vllm`` on a real engine: four benchmarks in miniature. ``.ci/engines`` installs vLLM
and runs this.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_runs import Ended, run

from medtasks.metrics.confidence import CONFIDENCE_NAMES

pytest.importorskip("vllm", reason="vLLM is installed by .ci/engines")
pytestmark = pytest.mark.slow

ENGINE = {
    "dtype": "float32",
    "enforce_eager": True,
    "max_model_len": 16384,
    "block_size": 32,
    "limit_mm_per_prompt": '{"image": 16}',
}


@pytest.fixture(scope="module")
def by_vllm(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    ended = run(
        "medtasks_vllm", {"pretrained": checkpoint, **ENGINE}, tmp_path_factory.mktemp("vllm")
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended


def test_every_request_of_four_benchmarks_is_answered(by_vllm: Ended) -> None:
    manifest = by_vllm.manifest
    assert not manifest["problems"]
    assert not any(facts["failed"] for facts in manifest["tasks"].values())
    assert manifest["model"]["architecture"] == "Qwen2_5_VLForConditionalGeneration"
    assert manifest["model"]["engine"]["limit_mm_per_prompt"] == {"image": 16}


def test_the_caches_know_pictures_and_prefixes_of_the_request_before(by_vllm: Ended) -> None:
    usage = by_vllm.manifest["usage"]
    counters = usage["counters"]
    assert counters["mm_cache_hits"] > 0
    assert 0 < counters["prefix_cache_hits"] < counters["prefix_cache_queries"]
    assert 0 < usage["reused_tokens"] <= counters["prefix_cache_hits"]
    assert 0 < usage["vision_tokens"] < usage["prompt_tokens"]
    assert usage["output_tokens"] > 0
    assert "peak_rss" not in usage  # the engine has a process of its own


def test_answers_agree_with_those_of_transformers(by_vllm: Ended, by_transformers: Ended) -> None:
    """Same prompts and weights; where two tokens are nearly tied, engines may choose
    differently.
    """
    assert by_vllm.prompt_tokens() == by_transformers.prompt_tokens()
    ours, theirs = by_vllm.responses(), by_transformers.responses()
    assert ours.keys() == theirs.keys()
    assert sum(ours[key] == theirs[key] for key in ours) > 0.8 * len(ours)


PERCENT = 0.0101
"""Probabilities are whole percents. In single precision, engines differ by a rounding at most."""


def test_probabilities_agree_with_those_of_transformers(
    by_vllm: Ended, by_transformers: Ended
) -> None:
    """Those of every option wherever a letter was generated, however unlikely, and those of whole
    answers.
    """
    ours, theirs = by_vllm.samples(), by_transformers.samples()
    answers, letters = 0, 0
    for name in [one for one in ours if ours[one]["responses"] == theirs[one]["responses"]]:
        (found,), (expected,) = ours[name]["probabilities"], theirs[name]["probabilities"]
        assert found["answer"] == pytest.approx(expected["answer"], abs=PERCENT), name
        assert [(one["at"], one["letter"]) for one in found["letters"]] == [
            (one["at"], one["letter"]) for one in expected["letters"]
        ]
        for one, other in zip(found["letters"], expected["letters"], strict=True):
            assert set(one["options"]) == set("ABCDE")
            assert sum(one["options"].values()) == pytest.approx(1, abs=5 * 0.005)
            assert one["mass"] <= 1
            side, against = ({**each["options"], "mass": each["mass"]} for each in (one, other))
            assert side == pytest.approx(against, abs=PERCENT), (name, one["at"])
            letters += 1
        answers += 1
    assert answers > 30
    assert letters > 50


def test_replicas_on_ray_answer_as_one_process(
    checkpoint: Path, by_vllm: Ended, tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="Ray is installed by .ci/engines")
    arguments = {"engine": "vllm", "replicas": 2, "cpus": 0.5, "pretrained": checkpoint, **ENGINE}
    ended = run("medtasks_ray", arguments, tmp_path)
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert not any(facts["failed"] for facts in ended.manifest["tasks"].values())
    assert ended.manifest["model"]["cluster"]["replicas"] == "2"
    assert ended.prompt_tokens() == by_vllm.prompt_tokens()
    assert ended.manifest["usage"]["counters"]["mm_cache_hits"] > 0
    assert ended.responses() == by_vllm.responses()


@pytest.mark.parametrize("tokens", [1, 16])
def test_confidences_are_scored_as_with_transformers(
    tokens: int, checkpoint: Path, by_vllm: Ended, by_transformers: Ended, tmp_path: Path
) -> None:
    """Of open answers; and of options, where the first token is the whole answer."""
    task, ended = "kvasir_vqa_x1_level1", [by_vllm, by_transformers]
    if tokens == 1:
        task, ended = "mi_cxr_tel_single", []
        for model, given in (("medtasks_vllm", ENGINE), ("medtasks_vlm", {"dtype": "float32"})):
            arguments = {"pretrained": checkpoint, "max_new_tokens": tokens, **given}
            ended.append(run(model, arguments, tmp_path / model, task))
            assert ended[-1].returncode == 0, ended[-1].stderr[-4000:]
    ours, theirs = (one.scores[task] for one in ended)
    assert ours["metrics"]["confidence_given"]["value"] == 1.0
    assert ours["reliability"]["bins"]
    for metric in CONFIDENCE_NAMES:
        found, expected = (one["metrics"][metric]["value"] for one in (ours, theirs))
        assert found == pytest.approx(expected, abs=0.05), metric


def test_a_lora_adapter_changes_answers_as_in_transformers(
    checkpoint: Path, by_transformers: Ended, tmp_path: Path
) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForImageTextToText

    base = AutoModelForImageTextToText.from_pretrained(checkpoint)
    adapted = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj", "v_proj", "o_proj"]))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                spread = 1.0 if "lora_B" in name else weight.shape[1] ** -0.5
                weight.normal_(0.0, spread, generator=generator)
    adapted.save_pretrained(tmp_path / "adapter")

    task = "kvasir_vqa_x1_level1"
    found = {}
    for model, given in (
        ("medtasks_vllm", {"lora": tmp_path / "adapter", **ENGINE}),
        ("medtasks_vlm", {"peft": tmp_path / "adapter", "dtype": "float32"}),
    ):
        ended = run(model, {"pretrained": checkpoint, **given}, tmp_path / model, task)
        assert ended.returncode == 0, ended.stderr[-4000:]
        found[model] = ended.responses()
    ours, theirs, without = (
        found["medtasks_vllm"],
        found["medtasks_vlm"],
        by_transformers.responses(),
    )
    assert sum(ours[key] == theirs[key] for key in ours) > 0.8 * len(ours)
    assert sum(ours[key] != without[key] for key in ours) > 0.5 * len(ours)


def test_a_scheme_of_quantization_reaches_vllm_whose_refusal_is_one_sentence(
    checkpoint: Path, tmp_path: Path
) -> None:
    arguments = {"pretrained": checkpoint, "quantization": "int7", **ENGINE}
    ended = run("medtasks_vllm", arguments, tmp_path, "kvasir_vqa_x1_level1")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith(
        f"medtasks: {checkpoint}: vLLM cannot serve it: Unknown quantization method: int7. "
    )
