"""Wrong arguments of ``medtasks_vllm`` end in one sentence; vLLM need not be installed. ``tests/engines`` runs it."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from medtasks.adapters.vllm import MedtasksVLLM


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
