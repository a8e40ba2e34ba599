"""Which model a run is of, and what an organiser says of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from medtasks.leaderboard.facts import run_facts
from medtasks.leaderboard.models import model_facts, model_key, model_name, read_models

from medtasks.errors import DataError
from medtasks.results.manifest import RunManifest

VLM = {"model": "medtasks_vlm", "pretrained": "Qwen/Qwen2.5-VL-7B-Instruct", "revision": "abc", "dtype": "bfloat16"}


def run(model: dict[str, Any], **settings: Any) -> RunManifest:
    return RunManifest(
        created="now", processes=1, versions={}, model=model, settings=settings, tasks={}, groups={}, data={}
    )


def plain(model_args: Any) -> RunManifest:
    """A run of a back-end that says its class's name alone."""
    return run({"model": "VLLM"}, model_args=model_args)


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cuda:7"},
        {"batch_size": 64},
        {"seed": 5},
        {"blind": True},
        {"finish": {"stop": 3, "length": 1}},
        {"torch": "1.0", "transformers": "2.0"},
        {"max_new_tokens": None},
    ],
)
def test_what_changes_no_answer_is_the_same_model(change: dict[str, Any]) -> None:
    assert model_key(run({**VLM, **change})) == model_key(run(VLM))


@pytest.mark.parametrize(
    "change",
    [
        {"pretrained": "Other/Qwen2.5-VL-7B-Instruct"},
        {"revision": "def"},
        {"dtype": "float16"},
        {"peft": {"path": "adapter"}},
        {"system_prompt": "Be brief."},
        {"max_pixels": 1000},
        {"fingerprint": "1"},
    ],
)
def test_what_changes_answers_is_another_model(change: dict[str, Any]) -> None:
    assert model_key(run({**VLM, **change})) != model_key(run(VLM))


def test_weights_are_known_by_their_content_wherever_they_lie() -> None:
    here = {**VLM, "pretrained": "/data/a/mine", "fingerprint": "1", "peft": {"path": "/x/lora", "fingerprint": "2"}}
    there = {**here, "pretrained": "/scratch/mine", "peft": {"path": "/y/lora", "fingerprint": "2"}}
    assert model_key(run(here)) == model_key(run(there))
    assert model_name(run(here)) == "mine + lora"


def test_a_back_end_without_a_description_is_known_by_its_arguments() -> None:
    one = plain("model=Qwen/Qwen3-VL-8B,tensor_parallel_size=4,api_key=abc")
    assert model_name(one) == "Qwen/Qwen3-VL-8B"
    assert model_key(one) == model_key(plain("model=Qwen/Qwen3-VL-8B,tensor_parallel_size=1,api_key=xyz"))
    assert model_key(one) == model_key(plain({"model": "Qwen/Qwen3-VL-8B"}))
    assert model_key(one) != model_key(plain("model=Qwen/Qwen3-VL-8B,quantization=awq"))
    assert "abc" not in model_key(one)


def test_baselines_are_known_by_policy_and_seed() -> None:
    guess = {"model": "medtasks_baseline", "policy": "uniform", "seed": 0, "accuracy": None, "answer": None}
    assert model_name(run(guess)) == "uniform (seed 0)"
    assert model_key(run(guess)) != model_key(run({**guess, "seed": 1}))


def test_predictions_made_elsewhere_are_of_the_model_that_was_named() -> None:
    told = {"model": "theirs", "predictions": "a.jsonl", "layout": "jsonl", "sha256": "1"}
    assert model_key(run(told)) == model_key(run({**told, "predictions": "b.jsonl", "sha256": "2"}))
    nobody = {**told, "model": "unknown"}
    assert model_key(run(nobody)) != model_key(run({**nobody, "sha256": "2"}))


NASTY = st.text() | st.sampled_from(
    ["../../etc/passwd", "<script>", "a/..", "..", "CON", "é", "\ud800", "a" * 999, "."]
)


@given(NASTY)
def test_a_slug_is_safe_whatever_the_model_is_called(name: str) -> None:
    slug = model_key(run({**VLM, "pretrained": name}))
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?-[0-9a-f]{8}", slug)
    assert ".." not in slug
    assert len(slug) <= 60
    assert slug == model_key(run({**VLM, "pretrained": name}))


# ------------------------------------------------------------------------------------------------ the organiser's file


def said(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_nobody_says_is_unknown() -> None:
    manifest = run(VLM)
    found = model_facts(run_facts(manifest, "f", "0" * 64, ()))
    assert found.name == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert (found.family, found.type, found.size, found.link, found.trained) == ("qwen", "unknown", None, None, {})


def test_a_slug_goes_before_a_name_and_a_name_before_a_glob(tmp_path: Path) -> None:
    manifest = run(VLM)
    slug, name = model_key(manifest), "qwen2.5-vl-7b-instruct"
    facts = run_facts(manifest, "f", "0" * 64, ())
    lines = ["'*qwen*': {name: by glob}", f"{name}: {{name: by name}}", f"{slug}: {{name: by slug}}"]
    for number, expected in ((3, "by slug"), (2, "by name"), (1, "by glob")):
        assert model_facts(facts, read_models(said(tmp_path, "\n".join(lines[:number])))).name == expected


def test_everything_can_be_said(tmp_path: Path) -> None:
    text = """
    Qwen2.5*:
      name: <b>Qwen</b>
      family: qwen
      size: 7B
      type: general
      link: https://example.org/model
      trained: {mi_cxr: no, med_cmr: yes}
      notes: [quantised]
    """
    found = model_facts(run_facts(run(VLM), "f", "0" * 64, ()), read_models(said(tmp_path, text)))
    assert found.name == "<b>Qwen</b>"
    assert found.trained == {"mi_cxr": "no", "med_cmr": "yes"}
    assert (found.size, found.type, found.link, found.notes) == (
        "7B",
        "general",
        "https://example.org/model",
        ("quantised",),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {colour: red}", "model 'a', field `colour` is unknown, expected one of name, family"),
        ("a: {type: huge}", "model 'a', field `type` is 'huge': input should be 'closed', 'general' or 'medical'"),
        (
            "a: {trained: {mi_cxr: maybe}}",
            "field `trained.mi_cxr` is 'maybe': input should be 'yes', 'no' or 'unknown'",
        ),
        ("a: {link: 'javascript:alert(1)'}", "field `link` is .*expected a web address"),
        ("a: {link: 'https://me:key@example.org'}", "without credentials"),
        ("a: {name: ''}", "field `name` is ''"),
        ("a: b", "model 'a' is 'b', expected fields among name"),
        ("a: {name: x}\na: {name: y}", "model 'a' stands there twice"),
        ("- a", "holds no models"),
        ("", "holds no models"),
        ("a: [", "not a readable YAML file"),
        ("? [a]\n: {name: x}", "not a readable YAML file|model"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"models.yaml: .*({message})") as caught:
        read_models(said(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"models\.yaml: not a readable YAML file"):
        read_models(tmp_path / "models.yaml")
