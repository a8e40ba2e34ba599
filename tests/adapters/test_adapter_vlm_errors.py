"""Whatever is wrong with arguments, checkpoint or media is one sentence and exit code 1; vLLM need
not be installed.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from adapter_bench import Bench, questions
from medtasks.adapters.vllm import MedtasksVLLM
from PIL import Image
from pydantic import BaseModel, model_validator

from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.extras import problems_of

Create = Callable[..., Any]


def sentence(capsys: pytest.CaptureFixture[str], failing: Callable[[], Any]) -> str:
    """Run ``failing``, which must exit with 1, and return the one line it printed."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        failing()
    assert ended.value.code == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("medtasks: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pretrained": None}, "field `pretrained` is missing"),
        ({"pretrained": "./nowhere"}, "./nowhere: neither a checkpoint directory, which has"),
        (
            {"pretrained": "nobody/no-such-model"},
            "nobody/no-such-model: the processor cannot be loaded",
        ),
        ({"dtype": "int8"}, "model_args: field `dtype` is 'int8', expected 'auto', 'float32'"),
        ({"device": "tpu"}, "field `device` is 'tpu', expected auto, cpu, cuda or cuda:N"),
        (
            {"max_pixels": 100, "min_pixels": 200},
            "min_pixels is 200, which is more than max_pixels (100)",
        ),
        (
            {"peft": "./nowhere"},
            "./nowhere: the PEFT adapter cannot be loaded: Can't find 'adapter_config.json'",
        ),
        ({"attn_implementation": "telepathy"}, "the model cannot be loaded"),
        (
            {"pretraind": "x"},
            "field `pretraind` is unknown (did you mean 'pretrained'?), expected one of batch_size, ",
        ),
    ],
)
def test_wrong_arguments(
    vlm: Create, capsys: pytest.CaptureFixture[str], arguments: dict[str, Any], expected: str
) -> None:
    assert expected in sentence(capsys, lambda: vlm(**arguments))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there(vlm: Create, capsys: pytest.CaptureFixture[str]) -> None:
    assert "torch sees no GPU here; use device=cpu" in sentence(capsys, lambda: vlm(device="cuda"))


def test_one_gpu_for_several_processes(
    vlm: Create, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "device=cuda" in sentence(capsys, lambda: vlm(device="cuda:0"))


def test_a_directory_that_is_no_vision_model(
    vlm: Create, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "which has a config.json" in sentence(capsys, lambda: vlm(pretrained=str(tmp_path)))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    assert "its processor takes no images" in sentence(
        capsys, lambda: vlm(pretrained=str(tmp_path))
    )


def test_no_chat_template(
    vlm: Create, capsys: pytest.CaptureFixture[str], tiny: Path, tmp_path: Path
) -> None:
    broken = shutil.copytree(tiny, tmp_path / "broken")
    (broken / "chat_template.jinja").unlink()

    assert "no chat template" in sentence(capsys, lambda: vlm(pretrained=str(broken)))


def test_missing_and_truncated_weights_are_not_filled_with_noise(
    vlm: Create, capsys: pytest.CaptureFixture[str], tiny: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(tiny, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    assert "1 weight(s) missing" in sentence(capsys, lambda: vlm(pretrained=str(broken)))
    content = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(content[: len(content) // 2])
    assert "the model cannot be loaded" in sentence(capsys, lambda: vlm(pretrained=str(broken)))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "video", "url": "film.mp4"}, "A message has a part of type 'video'"),
        (
            {"type": "image", "url": "nowhere.png"},
            "nowhere.png: cannot be read (No such file or directory)",
        ),
        (
            {"type": "image", "url": Image.new("I;16", (8, 8), 1)},
            "An image of a message: its 16-bit values run from 1 to 1",
        ),
        ({"type": "image", "url": 5}, "An image part is int"),
        # the processor refuses it
        (
            {"type": "image", "url": Image.new("RGB", (900, 2))},
            "The model cannot take sample s00: absolute aspect rat",
        ),
    ],
)
def test_media_that_cannot_be_shown(
    bench: Bench, vlm: Create, part: dict[str, Any], expected: str
) -> None:
    requests = bench.task(
        "media", questions(1), to_messages=lambda _: [{"role": "user", "content": [part]}]
    )
    (reply,) = vlm().replies(requests)
    assert reply.failed.startswith(expected)
    with pytest.raises(MedtasksError, match=re.escape(expected)):
        vlm().generate_until(requests)  # as other tasks, whose failures the harness would score


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"top_p": 2}, "generation_kwargs: field `top_p` is 2, expected a number of at most 1"),
        ({"until": [3]}, "`until[0]` is 3, expected a string"),
    ],
)
def test_settings_out_of_range(
    bench: Bench, vlm: Create, settings: dict[str, Any], expected: str
) -> None:
    requests = bench.task("settings", questions(1), **settings)
    model = vlm()

    with pytest.raises(UsageError, match=re.escape(expected)):
        model.replies(requests)


def test_model_args_that_are_no_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    from medtasks.adapters.vlm import MedtasksVLM

    assert "must be key=value pairs" in sentence(
        capsys, lambda: MedtasksVLM.create_from_arg_string("tiny")
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"data_parallel_size": 2},
            "data_parallel_size is 2, but vLLM's offline API runs one replica",
        ),
        (
            {"limit_mm_per_prompt": '{"image": 1'},
            "limit_mm_per_prompt is '{\"image\": 1', which is not valid JSON",
        ),
        pytest.param(
            {"limit_mm_per_prompt": '{"image": 1}', "data_parallel_size": 1},
            'needs vllm>=0.21 (not installed); run: pip install "medtasks[vllm]"',
            marks=pytest.mark.skipif(
                importlib.util.find_spec("vllm") is not None, reason="vLLM is installed"
            ),
        ),
    ],
)
def test_wrong_arguments_of_vllm(
    arguments: dict[str, Any], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        MedtasksVLLM(pretrained="somewhere", **arguments)
    assert ended.value.code == 1
    assert expected in capsys.readouterr().err


class Refusing(BaseModel):
    """As vLLM's configuration refuses a scheme of quantization."""

    quantization: str

    @model_validator(mode="after")
    def _known(self) -> Refusing:
        raise ValueError(f"Unknown quantization method: {self.quantization}.")


@pytest.fixture
def listed_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory on the path in which vLLM is listed as installed."""
    metadata = tmp_path / "vllm-0.32.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    problems_of.cache_clear()
    yield
    problems_of.cache_clear()


@pytest.mark.usefixtures("listed_vllm")
def test_a_setting_that_vllm_refuses_is_reported_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = ModuleType("vllm")
    installed.LLM = lambda quantization, **_: Refusing(quantization=quantization)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", installed)
    with pytest.raises(SystemExit):
        MedtasksVLLM(pretrained="somewhere", quantization="int7")
    assert (
        "somewhere: vLLM cannot serve it: Unknown quantization method: int7."
        in capsys.readouterr().err
    )
