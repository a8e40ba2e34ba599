"""Wrong arguments of ``medtasks_vllm`` end in one sentence; vLLM need not be installed. ``tests/engines`` runs it."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest
from medtasks.adapters.vllm import MedtasksVLLM
from pydantic import BaseModel, model_validator


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"data_parallel_size": 2}, "data_parallel_size is 2, but vLLM's offline API runs one replica"),
        ({"limit_mm_per_prompt": '{"image": 1'}, "limit_mm_per_prompt is '{\"image\": 1', which is not valid JSON"),
        pytest.param(
            {"limit_mm_per_prompt": '{"image": 1}', "data_parallel_size": 1},
            "expected what pip install 'medtasks[vllm]' installs",
            marks=pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed"),
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_setting_that_vllm_refuses_is_reported_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = ModuleType("vllm")
    installed.LLM = lambda quantization, **_: Refusing(quantization=quantization)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", installed)
    with pytest.raises(SystemExit):
        MedtasksVLLM(pretrained="somewhere", quantization="int7")
    assert "somewhere: vLLM cannot serve it: Unknown quantization method: int7." in capsys.readouterr().err
