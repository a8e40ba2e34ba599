"""Settings of judges, whose values are never printed, and families of models by name."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.core.errors import UsageError
from medtasks.judge.families import family_of, family_warnings
from medtasks.judge.settings import TokenLimit
from medtasks.judge.settings_sources import read_judges

JUDGE = "model=m,base_url=http://127.0.0.1:9/v1"
KEY = "sk-planted-0123456789"
NO_ADDRESSES = ("http://judge..local/v1", "http://h:80000/v1", "http://h:abc/v1", "http://[::1/v1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("model=m", "the judge's settings: field `judges.m.base_url` is missing; correct"),
        (
            f"{JUDGE},concurency=4",
            "field `judges.m.concurency` is unknown (did you mean 'concurrency'?), expected one of",
        ),
        (
            "modle=m,base_url=http://127.0.0.1:9/v1",
            "field `judges.judge.modle` is unknown (did you mean 'model'?)",
        ),
        (
            f"{JUDGE},timeout=-1",
            "field `judges.m.timeout` is wrong, expected a number above 0; correct",
        ),
        (
            f"{JUDGE},concurrency={KEY}",
            "field `judges.m.concurrency` is wrong, expected a whole number; correct",
        ),
        (
            f"{JUDGE},api_key_env={KEY}",
            "field `judges.m.api_key_env`: expected the name of an environment variable",
        ),
        (
            f"model=m,base_url=http://u:{KEY}@h/v1",
            "`judges.m.base_url`: expected an address without credentials",
        ),
        (
            f"model=m,base_url=http://h/?k={KEY}",
            "`judges.m.base_url`: expected an address without credentials",
        ),
        *((f"model=m,base_url={address}", "field `judges.m.base_url`") for address in NO_ADDRESSES),
        (f"{JUDGE},budget={KEY}", "field `judges.m.budget` is wrong, expected "),
        (
            f"{JUDGE},extra_body={{seen: 2026-01-02}}",
            "`judges.m.extra_body.seen`: input was not a valid JSON value",
        ),
        (f"{JUDGE},extra_body={{seen: .nan}}", "`judges.m.extra_body.seen"),
        (
            f"{JUDGE},max_tokens=9,max_completion_tokens=9",
            "max_tokens and max_completion_tokens exclude each other",
        ),
    ],
)
def test_a_wrong_field_is_named_without_its_value(given: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_judges([given])
    assert said in str(raised.value)
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_the_file_or_the_option_is_named(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text("combine: best\njudges:\n- {model: m, base_url: http://127.0.0.1:9/v1}\n")
    expected = (
        "field `combine` is wrong, expected 'majority' or 'mean'; correct the judge's settings."
    )
    with pytest.raises(UsageError) as raised:
        read_judges([str(path)])
    assert str(raised.value) == f"{path}: {expected}"
    with pytest.raises(UsageError) as raised:
        read_judges([str(path)], combine="worst")
    assert str(raised.value) == f"--combine: {expected}"


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (JUDGE, TokenLimit("max_tokens", 1024)),
        (f"{JUDGE},max_tokens=9", TokenLimit("max_tokens", 9)),
        (f"{JUDGE},max_completion_tokens=9", TokenLimit("max_completion_tokens", 9)),
        (
            f"{JUDGE},max_tokens=null,max_completion_tokens=9",
            TokenLimit("max_completion_tokens", 9),
        ),
        (
            f"{JUDGE},extra_body={{max_completion_tokens: 9}}",
            TokenLimit("max_completion_tokens", 9),
        ),
        (f"{JUDGE},max_tokens=null", None),
    ],
)
def test_the_limit_on_an_answer_is_known_by_its_field(given: str, limit: TokenLimit | None) -> None:
    (judge,) = read_judges([given]).judges.values()
    assert judge.token_limit == limit


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", ("qwen",)),
        ("/models/Lingshu-32B", ("qwen",)),
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
    ],
)
def test_families_by_name(name: str, families: tuple[str, ...]) -> None:
    assert family_of(name) == family_of(name.upper()) == families


def test_judges_of_the_same_family_are_warned_of() -> None:
    judges = ("Qwen/Qwen3-30B-A3B", "our-model", "claude-sonnet-4-5", "unknown-a")
    names = ("lingshu-medical-mllm/Lingshu-7B", "Our-Model", "unknown-b", "qwen-vl")
    first, second = family_warnings(judges, names)
    assert first.startswith(
        "judge 'Qwen/Qwen3-30B-A3B' and model 'lingshu-medical-mllm/Lingshu-7B' are of the same"
    )
    assert "homogeneity bias" in first
    assert second.startswith("judge 'our-model' and model 'Our-Model'")


@given(judge=st.text(), judged=st.text())
def test_the_warning_is_one_printable_line(judge: str, judged: str) -> None:
    (warning,) = family_warnings(["qwen" + judge], [judged + "qwen"])
    assert warning.isprintable()
