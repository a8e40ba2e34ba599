"""Families of models: the shipped table, tables of one's own, and when a judge is warned of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.errors import DataError
from medtasks.judge.families import family_of, read_families, same_family


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", ("qwen",)),
        ("/models/Lingshu-32B", ("qwen",)),
        ("ollama/qwen3:8b", ("qwen",)),
        ("gpt-4o-mini", ("openai",)),
        ("azure/gpt-35-turbo", ("openai",)),
        ("openai/o3", ("openai",)),
        ("FreedomIntelligence/HuatuoGPT-o1-8B", ("llama",)),
        ("FreedomIntelligence/HuatuoGPT-o1-7B", ("qwen",)),
        ("claude-sonnet-4-5", ("claude",)),
        ("models/gemini-2.5-pro", ("google",)),
        ("google/medgemma-4b-it", ("google",)),
        ("saves/LLaMA-Factory/internlm2", ("internvl",)),
        ("OpenGVLab/InternVL3-8B", ("internvl", "qwen")),
        ("OpenGVLab/InternVL3-9B", ("internvl",)),
        ("llava-hf/llava-v1.6-mistral-7b-hf", ("llava", "mistral")),
        ("llava-hf/llava-1.5-7b-hf", ("llama", "llava")),
        ("mistralai/Pixtral-12B-2409", ("mistral",)),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", ("deepseek", "llama")),
        ("microsoft/Phi-4-multimodal-instruct", ("phi",)),
        ("zai-org/GLM-4.5V", ("glm",)),
        ("moonshotai/Kimi-VL-A3B-Instruct", ("kimi",)),
        ("xai/grok-4", ("grok",)),
        ("CohereForAI/c4ai-command-r-plus", ("cohere",)),
        ("openbmb/MiniCPM-V-2_6", ("minicpm", "qwen")),
        ("MiniGPT-4", ()),
        ("delphi-2", ()),
        ("medtasks_baseline", ()),
        ("", ()),
    ],
)
def test_the_shipped_table(name: str, families: tuple[str, ...]) -> None:
    assert family_of(name) == families
    assert family_of(name.upper()) == families


def test_a_judge_of_the_same_family_is_warned_of() -> None:
    warning = same_family("Qwen/Qwen3-30B-A3B", "lingshu-medical-mllm/Lingshu-7B")
    assert warning is not None
    assert "the same family (qwen)" in warning
    assert "homogeneity bias" in warning
    assert same_family("claude-sonnet-4-5", "Qwen/Qwen2.5-VL-7B-Instruct") is None
    assert same_family("unknown-a", "unknown-b") is None


def test_a_model_that_judges_itself_is_warned_of_though_no_family_is_known() -> None:
    assert "the judged model itself" in str(same_family("our-model", "Our-Model"))


@given(judge=st.text(), judged=st.text())
def test_any_name_gives_one_printable_line_or_nothing(judge: str, judged: str) -> None:
    warning = same_family("qwen" + judge, judged + "qwen")
    assert warning is not None
    assert warning.isprintable()
    assert same_family(judge, judged) == same_family(judge, judged)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("house: ['^our-']\nno: [Norwegian]\n", encoding="utf-8")
    table = read_families(path)
    assert family_of("Our-norwegian-7b", table) == ("house", "no")
    assert family_of("qwen", table) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "valid dictionary, found 'None'"),
        ("- qwen", "valid dictionary, found"),
        ("{}", "at least 1 item"),
        ("qwen: [a", "not a readable YAML file"),
        ("qwen: qwen", "family qwen: Input should be a valid list, found 'qwen'"),
        ("qwen: []", "family qwen: List should have at least 1 item"),
        ("qwen: [[a]]", "family qwen: Input should be a valid string"),
        ("qwen: ['(']", "'\\(' is not a regular expression"),
        ("qwen: ['a*']", "matches every model"),
        ("Q wen: [a]", "family Q wen: String should match"),
        ("qwen: [a]\nqwen: [b]", "is duplicated"),
        ("[" * 3000, "not a readable YAML file"),
        ("? {a: b}\n: [a]", "not a readable YAML file"),
        ("a: &x [*x]", "not a readable YAML file"),
        ("a: [\x00]", "not a readable YAML file"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message) as error:
        read_families(path)
    assert "own.yaml" in str(error.value)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.yaml"):
        read_families(tmp_path / "nowhere.yaml")
