"""Signatures: whatever can move a score changes them, and nothing else does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_samples import made_manifest

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.prompts import template_path
from medtasks.catalog.registry import get_filter
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import UsageError
from medtasks.core.files import canonical_json
from medtasks.judge.judge_run import judge_all
from medtasks.judge.settings import JudgeConfig, JudgeSettings
from medtasks.judge.stub import StubJudge
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import RunManifest, versions
from medtasks.runs.protocol import protocol_hash, task_facts
from medtasks.runs.replies import Reply
from medtasks.runs.run_signatures import signatures
from medtasks.runs.samples import Sample
from medtasks.runs.signature import (
    differences,
    format_signature,
    has_unknown_prompts,
    parse_signature,
)
from medtasks.scoring.finished_run import data_facts
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.scored_samples import scored_samples

TASK = "kvasir_vqa_x1_level1"
OTHER = "kvasir_vqa_x1_level2"
GROUP = "kvasir_vqa_x1"
STREAM = "medstreambench_proactive"
ROUGE = "rougeL|f1|stem:no|rouge-score:0.1.2"
IDS = [f"s{number}" for number in range(30)]


def manifest(
    *tasks: str, spec: dict[str, Any] | None = None, generation: dict[str, Any] | None = None
) -> RunManifest:
    """The manifest of a run of ``tasks`` (both levels), whose first task's file says something else
    in ``spec``.
    """
    facts = {}
    for name in tasks or (TASK, OTHER):
        read = load_spec(name)
        changed = TaskSpec.model_validate(read.model_copy(update=(spec or {}) if not facts else {}))
        facts[name] = task_facts(changed, {**changed.generation, **(generation or {})}, len(IDS))
    return made_manifest(
        versions=versions(),
        model={"model": "medtasks_vlm", "pretrained": "a/b"},
        settings={"repeats": 1, "num_fewshot": None, "random_seed": 0},
        tasks=facts,
        groups={GROUP: tuple(facts)},
        data={name: data_facts(name) for name in sorted({one.benchmark for one in facts.values()})},
    )


@functools.cache
def plain() -> RunManifest:
    """The run that the others are compared with."""
    return manifest()


def signature(run: RunManifest, name: str, metric: str, scored: str, ids: list[str]) -> str:
    return signatures(run, name, {metric: scored}, ids, [metric])[metric]


def sign(run: RunManifest, name: str = TASK, ids: list[str] = IDS, scored: str = ROUGE) -> str:
    return signature(run, name, "rougeL", scored, ids)


@pytest.fixture
def overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], RunManifest]:
    """A run whose template a user has overlaid."""

    def run() -> RunManifest:
        template = load_spec(TASK).template or ""
        file = tmp_path / template
        file.parent.mkdir(parents=True)
        file.write_text(
            template_path(template).read_text(encoding="utf-8") + "\nThink.", encoding="utf-8"
        )
        monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
        return manifest()

    return run


def with_facts(**changes: Any) -> RunManifest:
    run = plain()
    return run.model_copy(
        update={"tasks": {**run.tasks, TASK: run.tasks[TASK].model_copy(update=changes)}}
    )


def with_settings(**changes: Any) -> RunManifest:
    run = plain()
    return run.model_copy(update={"settings": {**run.settings, **changes}})


def blind() -> RunManifest:
    read = load_spec(TASK)
    facts = task_facts(read, read.generation, len(IDS), blind=True)
    run = plain()
    return run.model_copy(update={"tasks": {**run.tasks, TASK: facts}})


def other_data() -> RunManifest:
    run = plain()
    facts = run.data[GROUP].model_copy(update={"fingerprint": "f" * 64})
    return run.model_copy(update={"data": {GROUP: facts}})


MOVED: dict[str, tuple[Callable[[], RunManifest], str]] = {
    "YAML": (
        lambda: manifest(spec={"resolved": {**load_spec(TASK).resolved, "target_delimiter": "x"}}),
        "protocol",
    ),
    "generation": (lambda: manifest(generation={"temperature": 0.7}), "protocol"),
    "task version": (lambda: with_facts(version=2.0), "version"),
    "blind": (blind, "blind"),
    "data": (other_data, "data"),
    "few shots": (lambda: with_settings(num_fewshot=2), "harness"),
    "repeats": (lambda: with_settings(repeats=4), "harness"),
    "system prompt": (lambda: with_settings(system_instruction="Be brief."), "harness"),
}


@pytest.mark.parametrize("name", [TASK, GROUP])
@pytest.mark.parametrize("what", MOVED)
def test_what_can_move_a_score_changes_its_signature(what: str, name: str) -> None:
    make, part = MOVED[what]
    before, after = sign(plain(), name), sign(make(), name)
    assert after != before
    assert parse_signature(after).get(part) != parse_signature(before).get(part)


@pytest.mark.parametrize("name", [TASK, GROUP])
def test_another_prompt_changes_it(overlay: Callable[[], RunManifest], name: str) -> None:
    before = sign(plain(), name)
    found = differences(sign(overlay(), name), before)
    assert found[0].startswith("prompt ")
    assert found[1].startswith("protocol ")


@pytest.mark.parametrize("name", [TASK, GROUP])
def test_another_version_of_a_filter_changes_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sign(plain(), name)
    changed = "medtasks.runs.protocol.get_filter"
    monkeypatch.setattr(changed, lambda name: replace(get_filter(name), version="99"))
    assert differences(sign(manifest(), name), before)[0].startswith(
        "filters AnswerTextFilter=99 instead of "
    )


def test_other_frames_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signature(manifest(STREAM), STREAM, "overall", "overall|mean:items", IDS)
    monkeypatch.setenv("MEDTASKS_MAX_FRAMES", "4")
    assert signature(manifest(STREAM), STREAM, "overall", "overall|mean:items", IDS) != before


def test_other_settings_of_the_metric_change_it() -> None:
    stemmed = sign(plain(), scored=ROUGE.replace("stem:no", "stem:yes"))
    assert differences(stemmed, sign(plain())) == ["stem yes instead of no"]
    assert differences(sign(plain(), scored="rouge1|f1"), sign(plain(), scored="rougeL|f1")) == [
        "metric rouge1 instead of rougeL"
    ]


def test_other_samples_change_it() -> None:
    every = sign(plain())
    assert differences(sign(plain(), ids=IDS[:10]), every) == ["10 samples instead of 30"]
    assert differences(sign(plain(), ids=[*IDS[1:], "s30"]), every) == [
        "other samples (30 in both)"
    ]


def test_a_group_of_other_tasks_is_another_group() -> None:
    """Even where the samples have the same names."""
    assert sign(manifest(TASK), GROUP) != sign(manifest(OTHER), GROUP) != sign(manifest(), GROUP)


def test_an_unknown_prompt_equals_other_unknown_prompts_only() -> None:
    imported = with_facts(prompt_hash="unknown")
    of_another_model = imported.model_copy(update={"model": {"model": "unknown", "sha256": "0"}})
    assert sign(imported) == sign(of_another_model)
    assert has_unknown_prompts(sign(imported))
    assert not has_unknown_prompts(sign(plain()))
    assert differences(sign(imported), sign(plain()))[0].startswith("prompt unknown instead of ")


@pytest.mark.parametrize(
    "change",
    [
        {"created": "2027-01-01T00:00:00+00:00"},
        {"processes": 8},
        {
            "settings": {
                "random_seed": 5,
                "batch_size": 64,
                "device": "cuda:3",
                "repeats": 1,
                "num_fewshot": 0,
            }
        },
        {"model": {"model": "medtasks_vlm", "pretrained": "c/d"}},
        {"versions": dict(reversed(versions().items()))},
        {"versions": {**versions(), "pillow": "1.0", "torch": "1.0"}},
        {"groups": {GROUP: (OTHER, TASK)}},
    ],
    ids=[
        "created",
        "processes",
        "settings",
        "model",
        "package order",
        "packages that score nothing",
        "task order",
    ],
)
@pytest.mark.parametrize("name", [TASK, GROUP])
def test_what_moves_no_score_changes_nothing(change: dict[str, Any], name: str) -> None:
    assert sign(plain().model_copy(update=change), name) == sign(plain(), name)


@given(st.permutations(IDS))
def test_the_order_of_samples_changes_nothing(ids: list[str]) -> None:
    run = plain()
    assert sign(run, ids=ids) == sign(run)


def test_a_manifest_that_was_read_signs_like_the_run() -> None:
    """Its keys are sorted; a task may name its filters in another order."""
    run = with_facts(filters={"ThinkingFilter": "1", "AnswerTextFilter": "2"})
    assert sign(
        RunManifest.model_validate_json(canonical_json(run.model_dump(mode="json")))
    ) == sign(run)


def test_package_versions_are_the_runs_not_the_readers() -> None:
    run = plain().model_copy(update={"versions": {**versions(), "rouge-score": "0.0.9"}})
    assert parse_signature(sign(run))["rouge-score"] == "0.0.9"
    rescored = run.model_copy(update={"scored": {"rouge-score": "0.2.0"}})
    assert parse_signature(sign(rescored))["rouge-score"] == "0.2.0"


# --------------------------------------------------------------------------------------------------------
# judges

JUDGED = "med_cmr_open_cr"
TOTAL = "open_total|scale:0-100|unjudged:left-out"


def judged(stub: StubJudge, store: Path, **settings: Any) -> RunManifest:
    spec = load_spec(JUDGED)
    answered = [
        scored_samples(
            spec, [Sample.answered(spec.name, one, (Reply("No."),), "?", spec.prompt_hash or "")]
        )[0]
        for one in task_documents(JUDGED)[:2]
    ]
    judge = JudgeSettings(**{"base_url": stub.url, "model": "stub-judge", **settings})
    config = JudgeConfig(judges={"any name": judge}, store=store)
    run = manifest(JUDGED).model_copy(update={"groups": {}})
    judged = judge_all({JUDGED: with_judged_scores(spec, answered)}, config, run)
    return run.model_copy(update={"judge": judged.facts})


def test_what_moves_a_verdict_changes_the_signature_of_judged_metrics_alone(tmp_path: Path) -> None:
    with StubJudge() as stub:
        first = judged(stub, tmp_path / "a")
        same = judged(stub, tmp_path / "b", timeout=9.0, concurrency=3)
        other = judged(stub, tmp_path / "c", temperature=0.5)
    total = [
        signature(run, JUDGED, "open_total", TOTAL, IDS)
        for run in (first, same, other, manifest(JUDGED))
    ]
    rouge = [
        signature(run, JUDGED, "rougeL", ROUGE, IDS)
        for run in (first, same, other, manifest(JUDGED))
    ]
    assert total[0] == total[1]
    assert differences(total[2], total[0])[0].startswith("judge ")
    assert differences(total[3], total[0])[0].startswith("no judge instead of ")
    assert len(set(rouge)) == 1


def test_a_judge_counts_where_no_response_needed_one(tmp_path: Path) -> None:
    """A model all of whose answers a rule decides has no judge in its score, and is compared with
    the others.
    """
    with StubJudge() as stub:
        run = judged(stub, tmp_path / "a")
    (judge,) = (facts.judge_hash for facts in run.judge.values())
    asked = signature(run, JUDGED, "open_total", f"{TOTAL}|judge:{judge}", IDS)
    assert asked == signature(run, JUDGED, "open_total", TOTAL, IDS)
    assert parse_signature(asked)["judge"] == judge


# --------------------------------------------------------------------------------------------------------
# text

TEXT = st.text() | st.sampled_from(["|", ":", "a:b|c", "%7C", "\n", "\ud800", "é", " ", "", "<b>"])


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=5), TEXT)
@example({"a|b:c": "d%7C", "task": ""}, "rouge:1|2")
def test_parts_survive_as_text(parts: dict[str, str], metric: str) -> None:
    text = format_signature({**parts, "metric": metric})
    assert parse_signature(text) == {**parts, "metric": metric}
    assert format_signature(parse_signature(text)) == text
    assert text.isascii()
    assert text.isprintable()


@given(st.lists(TEXT, min_size=1).map("|".join), st.lists(st.text(), max_size=3))
def test_any_metric_and_any_samples_have_a_signature(scored: str, ids: list[str]) -> None:
    text = sign(plain(), scored=scored, ids=ids)
    parts = parse_signature(text)
    assert format_signature(parts) == text
    assert parts["task"] == TASK
    assert parts["prompt"] == load_spec(TASK).prompt_hash


def test_it_begins_with_the_metric_and_shows_the_manifests_hashes() -> None:
    run = plain()
    text = sign(run)
    assert text.startswith(
        "rougeL|f1|stem:no|rouge-score:0.1.2|task:kvasir_vqa_x1_level1|version:1|filters:"
    )
    assert parse_signature(text)["protocol"] == run.tasks[TASK].protocol_hash
    assert (
        protocol_hash(load_spec(TASK), load_spec(TASK).generation) == run.tasks[TASK].protocol_hash
    )


@pytest.mark.parametrize("text", ["a||b", "a|k:1|k:2", "a|metric:b"])
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has no key"):
        parse_signature(text)


@pytest.mark.parametrize(
    ("metric", "timing"),
    [
        ("responsiveness", "law=tolerance,scale=1.0,default-tolerance=half-smallest-gap"),
        ("overall", "law=tolerance,scale=1.0,default-tolerance=half-smallest-gap"),
        ("responsiveness_stream_length", "default-tolerance=half-smallest-gap"),
        ("false_alarm_rate", "default-tolerance=half-smallest-gap"),
        ("content", None),
    ],
)
def test_scores_of_streams_name_the_timing_that_the_task_declares(
    metric: str, timing: str | None
) -> None:
    parts = parse_signature(
        signature(manifest(STREAM), STREAM, metric, get_metric(metric).signature, IDS)
    )
    assert parts.get("timing") == timing
