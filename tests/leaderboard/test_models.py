"""Which model a run is of, and what an organiser says of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import board, cxr
from made_runs import run as made_run
from medtasks.leaderboard.board.models import Described, distinct_names, model_facts, read_by_model
from medtasks.leaderboard.board.usage import Price
from medtasks.leaderboard.schema.board import BoardModel
from medtasks.leaderboard.verify.model_identity import model_key, model_name
from medtasks.leaderboard.verify.scored_run import ScoredRun

from medtasks.core.errors import DataError
from medtasks.runs.manifest import RunManifest
from medtasks.scoring.run_record import RunRecord

VLM = {
    "model": "medtasks_vlm",
    "pretrained": "Qwen/Qwen2.5-VL-7B-Instruct",
    "revision": "abc",
    "dtype": "bfloat16",
}


def run(model: dict[str, Any], **given_settings: Any) -> RunManifest:
    empty: dict[str, Any] = {key: {} for key in ("versions", "tasks", "groups", "data")}
    return RunManifest(
        created="2026-11-01T00:00:00+00:00",
        processes=1,
        model=model,
        settings=given_settings,
        **empty,
    )


def plain(model_args: Any) -> RunManifest:
    """A run of a back-end that says its class's name alone."""
    return run({"model": "VLLM"}, model_args=model_args)


SAME = (
    {"device": "cuda:7"}, {"batch_size": 64}, {"seed": 5}, {"blind": True}, {"torch": "1.0", "transformers": "2.0"},
    {"max_new_tokens": None},
)  # fmt: skip
OTHER = (
    {"pretrained": "Other/Qwen2.5-VL-7B-Instruct"}, {"revision": "def"}, {"dtype": "float16"},
    {"peft": {"path": "adapter"}}, {"system_prompt": "Be brief."}, {"max_pixels": 1000}, {"fingerprint": "1"},
)  # fmt: skip
TUNED = {
    **VLM,
    "pretrained": "/data/a/mine",
    "fingerprint": "1",
    "peft": {"path": "/x/lora", "fingerprint": "2"},
}
GUESS = {
    "model": "medtasks_baseline",
    "policy": "uniform",
    "seed": 0,
    "accuracy": None,
    "answer": None,
}
THEIRS = {"model": "theirs", "predictions": "a.jsonl", "layout": "jsonl", "sha256": "1"}
SERVED = {"model": "openai", "checkpoint": "served-name"}
QWEN = "model=Qwen/Qwen3-VL-8B"


def test_only_what_changes_answers_makes_another_model() -> None:
    assert {model_key(run({**VLM, **change})) for change in SAME} == {model_key(run(VLM))}
    assert len({model_key(run({**VLM, **change})) for change in ({}, *OTHER)}) == 1 + len(OTHER)


@pytest.mark.parametrize(
    ("one", "same", "other", "name"),
    [
        (run(TUNED), [run({**TUNED, "pretrained": "/scratch/mine", "peft": {"path": "/y/lora", "fingerprint": "2"}})],
         run({**TUNED, "fingerprint": "3"}), "mine + lora"),
        (plain(f"{QWEN},tensor_parallel_size=4,api_key=abc"),
         [plain(f"{QWEN},tensor_parallel_size=1,api_key=xyz"), plain({"model": "Qwen/Qwen3-VL-8B"})],
         plain(f"{QWEN},quantization=awq"), "Qwen/Qwen3-VL-8B"),
        (run(GUESS), [], run({**GUESS, "seed": 1}), "uniform (seed 0)"),
        (run(THEIRS), [run({**THEIRS, "predictions": "b.jsonl", "sha256": "2"})], run({**THEIRS, "model": "x"}),
         "theirs"),
        (run({**THEIRS, "model": "unknown"}), [], run({**THEIRS, "model": "unknown", "sha256": "2"}), "a"),
        (run(SERVED), [run(SERVED, model_args="model=served-name,base_url=http://there:1/v1")],
         run({**SERVED, "checkpoint": "another"}), "served-name"),
    ],
    ids=["weights by content", "back-end by arguments", "baseline", "predictions", "predictions of nobody", "server"],
)  # fmt: skip
def test_models_are_known_by(
    one: RunManifest, same: list[RunManifest], other: RunManifest, name: str
) -> None:
    assert model_name(one) == name
    assert {model_key(manifest) for manifest in same} <= {model_key(one)}
    assert model_key(other) != model_key(one)
    assert "abc" not in model_key(one)


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


def said(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_facts_are_those_of_the_first_slug_name_or_glob_and_unknown_without_one(
    tmp_path: Path,
) -> None:
    facts, slug, name = (
        ScoredRun(RunRecord(run(VLM), {}, {}, {})).public,
        model_key(run(VLM)),
        "qwen2.5-vl-7b-instruct",
    )
    found = model_facts(facts)
    assert found.name == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert (found.family, found.type, found.size, found.link, found.trained) == (
        "qwen",
        "unknown",
        None,
        None,
        {},
    )
    lines = [
        "'*qwen*': {name: by glob}",
        f"{name}: {{name: by name}}",
        f"{slug}: {{name: by slug}}",
    ]
    for number, expected in ((3, "by slug"), (2, "by name"), (1, "by glob")):
        assert (
            model_facts(
                facts, read_by_model(said(tmp_path, "\n".join(lines[:number])), Described)
            ).name
            == expected
        )
    given = (
        "family: q, size: 7B, type: general, link: 'https://example.org/model', notes: [quantised]"
    )
    text = f"Qwen2.5*: {{name: <b>Qwen</b>, {given}, trained: {{mi_cxr: no, med_cmr: yes}}}}"
    assert model_facts(facts, read_by_model(said(tmp_path, text), Described)) == BoardModel(
        slug=slug, name="<b>Qwen</b>", family="q", size="7B", type="general", link="https://example.org/model",
        trained={"mi_cxr": "no", "med_cmr": "yes"}, notes=("quantised",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {colour: red}", "model 'a', field `colour` is unknown, expected one of name, family"),
        (
            "a: {type: huge}",
            "model 'a', field `type` is 'huge', expected 'closed', 'general' or 'medical'",
        ),
        (
            "a: {trained: {mi_cxr: maybe}}",
            "field `trained.mi_cxr` is 'maybe', expected 'yes', 'no' or 'unknown'",
        ),
        ("a: {link: 'javascript:alert(1)'}", "field `link` is .*expected a web address"),
        ("a: {link: 'https://me:key@example.org'}", "without credentials"),
        ("a: {name: ''}", "field `name` is ''"),
        ("a: b", "model 'a' is 'b', expected fields from name"),
        ("a: {name: x}\na: {name: y}", "key 'a' is duplicated"),
        (None, "cannot be read"),
        ("- a", "has no models"),
        ("", "has no models"),
        ("{}", "has no models"),
        ("a: [", "not valid YAML"),
        ("? [a]\n: {name: x}", "not valid YAML|model"),
        (
            "m: {prompt_price: 1}",
            "expected prompt_price and completion_price, or device_hour_price",
        ),
        ("m: {prompt_price: 1, completion_price: 1, device_hour_price: 1}", "or device_hour_price"),
        ("price of m: {}", "or device_hour_price"),
        ("m: {device_hour_price: -1}", "device_hour_price"),
        ("m: {device_hour_price: .inf}", "device_hour_price"),
        ("m: {price: 1}", "field `price` is unknown"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str | None, message: str) -> None:
    kind = Price if text is not None and "price" in text else Described
    with pytest.raises(
        DataError, match=rf"models\.yaml(, line \d+, column \d+)?: .*({message})"
    ) as caught:
        read_by_model(tmp_path / "models.yaml" if text is None else said(tmp_path, text), kind)
    assert "\n" not in str(caught.value)


TINY = {"checkpoint": "/data/tinyckpt", "fingerprint": "1" * 64, "fingerprint_method": "sha256"}
FOUR = [
    {**TINY, "model": "qwen2_5_vl"},
    {
        **TINY,
        "model": "qwen2_5_vl",
        "presentation": {"interface": "simple", "order": "media before text"},
    },
    {**TINY, "model": "huggingface"},
    {"model": "medtasks_vlm", "pretrained": "/data/tinyckpt", "fingerprint": "1" * 64, "seed": 0},
]


def names(*models: dict[str, Any]) -> list[str]:
    """What the board calls models that ran in this order, one run of each."""
    facts = {
        one.model: one.model_facts
        for one in (ScoredRun(RunRecord(run(model), {}, {}, {})).public for model in models)
    }
    assert len(facts) == len(models)
    said = distinct_names({slug: one["name"] for slug, one in facts.items()}, facts)
    return [said[slug] for slug in facts]


def test_what_tells_models_of_one_name_apart_is_said() -> None:
    told = ("qwen2_5_vl", "qwen2_5_vl, simple interface", "huggingface", "medtasks_vlm")
    assert names(*FOUR) == [f"tinyckpt ({one})" for one in told]
    assert names(FOUR[0], VLM) == [
        "tinyckpt",
        VLM["pretrained"],
    ]  # a name of its own stays as it is
    for change, expected in (
        ({"revision": "abc"}, ["tinyckpt", "tinyckpt (revision abc)"]),
        ({"load_in_4bit": True}, ["tinyckpt", "tinyckpt (load in 4bit true)"]),
        (
            {"fingerprint": "2" * 64},
            ["tinyckpt (fingerprint 11111111)", "tinyckpt (fingerprint 22222222)"],
        ),
        (
            {"presentation": {"system_prompt": "Be brief."}},
            ["tinyckpt", "tinyckpt (own system prompt)"],
        ),
    ):
        assert names(FOUR[0], {**FOUR[0], **change}) == expected
    # if they differ in nothing that is shown, it is the slug's hash
    prompts = [
        {**FOUR[0], "presentation": {"system_prompt": said}} for said in ("Be brief.", "Be long.")
    ]
    found = [
        re.fullmatch(r"tinyckpt \(own system prompt, ([0-9a-f]{8})\)", name)
        for name in names(*prompts)
    ]
    assert len({match and match[1] for match in found} - {None}) == 2


@given(
    st.lists(
        st.sampled_from([*FOUR, {**FOUR[0], "dtype": "float16"}, VLM, {**VLM, "revision": "2"}]),
        max_size=7,
    )
)
@settings(derandomize=True, max_examples=40, deadline=None)
def test_no_two_models_on_a_board_have_one_name(models: list[dict[str, Any]]) -> None:
    once = [model for number, model in enumerate(models) if model not in models[:number]]
    assert len(set(names(*once))) == len(once)


def test_a_board_shows_the_names_told_apart() -> None:
    shown = {model: {"name": "tinyckpt", "model": model} for model in ("vllm", "huggingface")}
    found = board(
        *(made_run(name, [cxr(0.5, 1)], model_facts=facts) for name, facts in shown.items())
    )
    assert sorted(facts.name for facts in found.models.values()) == [
        "tinyckpt (huggingface)",
        "tinyckpt (vllm)",
    ]
