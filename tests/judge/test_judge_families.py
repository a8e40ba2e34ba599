"""Families of models by name, and the warning about a judge of the judged model's family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.judge.families import family_of, same_family


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", ("qwen",)),
        ("/models/Lingshu-32B", ("qwen",)),
        ("ollama/qwen3:8b", ("qwen",)),
        ("gpt-4o-mini", ("openai",)),
        ("openai/o3", ("openai",)),
        ("FreedomIntelligence/HuatuoGPT-o1-8B", ()),
        ("google/medgemma-4b-it", ("google",)),
        ("saves/LLaMA-Factory/internlm2", ("internvl",)),
        ("llava-hf/llava-v1.6-mistral-7b-hf", ("llava", "mistral")),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", ("deepseek", "llama")),
        ("microsoft/Phi-4-multimodal-instruct", ("phi",)),
        ("CohereForAI/c4ai-command-r-plus", ("cohere",)),
        ("MiniGPT-4", ()),
        ("delphi-2", ()),
        ("medtasks_baseline", ()),
    ],
)
def test_families_by_name(name: str, families: tuple[str, ...]) -> None:
    assert family_of(name) == families
    assert family_of(name.upper()) == families


def test_a_judge_of_the_same_family_is_warned_of() -> None:
    warning = same_family("Qwen/Qwen3-30B-A3B", "lingshu-medical-mllm/Lingshu-7B")
    assert warning is not None
    assert "homogeneity bias" in warning
    assert same_family("our-model", "Our-Model") is not None
    assert same_family("claude-sonnet-4-5", "Qwen/Qwen2.5-VL-7B-Instruct") is None
    assert same_family("unknown-a", "unknown-b") is None


@given(judge=st.text(), judged=st.text())
def test_the_warning_is_one_printable_line(judge: str, judged: str) -> None:
    warning = same_family("qwen" + judge, judged + "qwen")
    assert warning is not None
    assert warning.isprintable()
