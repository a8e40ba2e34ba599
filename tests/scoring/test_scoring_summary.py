"""The summary after a run: one screen if the results are saved, everything if they are not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from made_samples import made_manifest
from test_scoring_samples import FOUR, MI_CXR

from medtasks.answers.alert_state import AlertStatus
from medtasks.answers.answerability import AnswerabilityStatus
from medtasks.answers.option_letter import Status
from medtasks.answers.reasoned_answer import ReasonedStatus
from medtasks.catalog.spec import leaf_tasks, load_specs
from medtasks.catalog.statuses import STATUS_WORDS
from medtasks.runs.protocol import task_facts
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore
from medtasks.scoring.summary import summary

GROUPS = sorted(name for name, spec in load_specs().items() if spec.kind == "group")
SCORES = score_samples(FOUR, MI_CXR)


def finished(groups: Iterable[str], problems: int = 0) -> RunRecord:
    """A run of these groups and all within them, with the same scores everywhere."""
    members = {name: leaf_tasks(name) for name in groups}
    leaves = dict.fromkeys(leaf for inner in members.values() for leaf in inner)
    notes = tuple(f"problem {number}: {'a long sentence ' * 9}" for number in range(problems))
    manifest = made_manifest(groups=members, problems=notes)
    return RunRecord(manifest, {}, dict.fromkeys(leaves, SCORES), dict.fromkeys(members, SCORES))


def screen_lines(text: str) -> int:
    return sum(max(1, -(-len(line) // 100)) for line in text.splitlines())


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_fits_one_screen_and_the_path_comes_last(group: str, tmp_path: Path) -> None:
    text = summary(finished([group], problems=50), tmp_path)
    assert screen_lines(text) <= 40
    assert text.splitlines()[-1] == f"  samples, scores and manifest: {tmp_path}"
    assert f"  {group}" in text


def test_all_groups_at_once_fit_one_screen_and_the_rest_is_counted(tmp_path: Path) -> None:
    run = finished(GROUPS, problems=50)
    text = summary(run, tmp_path)
    assert screen_lines(text) <= 40
    shown = sum(" n=4 " in line for line in text.splitlines())
    assert (
        f"  and {len(run.groups) + len(run.tasks) - shown} more tasks and groups: scores.json"
        in text
    )
    assert "more notes: manifest.json and scores.json" in text


def test_nothing_is_left_out_of_results_that_are_not_saved() -> None:
    run = finished(GROUPS, problems=50)
    text = summary(run, None)
    assert sum(" n=4 " in line for line in text.splitlines()) == len(run.groups) + len(run.tasks)
    assert all(f"problem {number}:" in text for number in range(50))


def test_few_scores_are_shown_in_full(tmp_path: Path) -> None:
    run = finished(["mi_cxr"])
    text = summary(run, tmp_path)
    assert all(f"  {name} " in text for name in (*run.groups, *run.tasks))
    assert "more tasks" not in text


@pytest.mark.parametrize(
    ("ends", "model", "said"),
    [
        ({"stop": 100}, {}, None),
        (
            {"stop": 199, "length": 1},
            {},
            "cut off at the token limit: 0.5% of mi_cxr_icr",
        ),  # too few for a warning
        ({"stop": 88, "length": 12}, {}, "raise --gen_kwargs max_new_tokens"),
        (
            {"stop": 88, "length": 12},
            {"max_new_tokens": 32},
            "limit of 32 tokens are lost; raise max_new_tokens in --mod",
        ),
        (
            {"unknown": 100},
            {},
            "cut off at the token limit: unknown, the back-end does not say (mi_cxr_icr)",
        ),
    ],
)
def test_answers_cut_off_at_the_token_limit(
    ends: dict[str, int], model: dict[str, int], said: str | None
) -> None:
    run = finished(["mi_cxr_icr"])
    spec = load_specs()["mi_cxr_icr"]
    facts = task_facts(spec, spec.generation, 100).model_copy(update={"finish": ends})
    run = replace(
        run,
        manifest=run.manifest.model_copy(update={"model": model, "tasks": {"mi_cxr_icr": facts}}),
    )
    text = " ".join(summary(run, None).split())
    assert (said or "") in text
    assert ("warning:" in text) == (ends.get("length") == 12)
    assert ("cut off" in text) == (said is not None)
    if ends.get("length") == 12:
        assert "cut off at the token limit: 12% of mi_cxr_icr" in text


def test_tasks_are_in_the_order_of_their_group_and_the_command_that_judges_is_named(
    tmp_path: Path,
) -> None:
    run = finished(["med_cmr"])
    awaiting = MetricScore(
        value=None, interval=None, samples=7, judged=0, bounds=(0.0, 100.0), signature="s"
    )
    scores = SCORES.model_copy(update={"metrics": {"open_total": awaiting}})
    shuffled = dict.fromkeys(sorted(run.tasks, reverse=True), scores)
    text = summary(replace(run, tasks=shuffled), tmp_path)
    named = [line.split()[0] for line in text.splitlines() if line.startswith("  med_cmr")]
    assert named == ["med_cmr", *leaf_tasks("med_cmr")]
    assert (
        f"  to judge: medtasks judge {tmp_path} --judge model=NAME,base_url=ADDRESS"
        in text.splitlines()
    )
    assert "to judge" not in summary(run, tmp_path)


@pytest.mark.parametrize("columns", [80, 120])
def test_scores_fit_the_terminal(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    run, score = finished(["med_cmr_mcq"]), SCORES.metrics["accuracy"]
    scores = SCORES.model_copy(
        update={"metrics": dict.fromkeys(("accuracy", "exact_match", "rougeL", "chrf"), score)}
    )
    lines = summary(replace(run, tasks=dict.fromkeys(run.tasks, scores)), tmp_path).splitlines()
    ends = [len(line) for line in lines if "accuracy" in line or "exact_match" in line]
    assert columns - 40 < max(ends) <= columns


def test_responses_without_an_answer_are_counted_in_words() -> None:
    status = {"ok": 7, "none": 2, "empty": 1, "two_states": 1, "no_final_answer": 12, "failed": 3}
    run = finished(["mi_cxr_icr"])
    scores = SCORES.model_copy(update={"status": status})
    text = " ".join(summary(replace(run, tasks={"mi_cxr_icr": scores}, groups={}), None).split())
    assert "(no answer extracted: 2 without an option, 1 empty, 1 two states)" in text
    assert "(12 without a final answer)" in text
    assert "(3 failed)" in text


@pytest.mark.parametrize("statuses", [Status, ReasonedStatus, AnswerabilityStatus, AlertStatus])
def test_every_status_of_our_filters_has_words(statuses: object) -> None:
    assert set(get_args(statuses)) <= STATUS_WORDS.keys()


@pytest.mark.parametrize(
    ("generation", "backend", "said"),
    [
        (
            {"temperature": 0.7, "do_sample": False},
            "medtasks.adapters.vlm.MedtasksVlm",
            "0.7 has no effect, because",
        ),
        (
            {"temperature": 0.7},
            "lmms_eval.models.chat.qwen.Qwen (chat)",
            "0.7 may have no effect without sampling",
        ),
        (
            {"temperature": 0, "do_sample": True},
            "lmms_eval.models.chat.qwen.Qwen (chat)",
            "true at temperature 0",
        ),
        (
            {"temperature": 0.7},
            "medtasks.adapters.vlm.MedtasksVlm (chat)",
            None,
        ),  # which samples then
        ({"temperature": 0.7, "do_sample": True}, "lmms_eval.models.chat.qwen.Qwen (chat)", None),
        ({"temperature": 0}, "lmms_eval.models.chat.qwen.Qwen (chat)", None),
        ({}, "", None),
    ],
)
def test_a_temperature_without_sampling_is_named(
    generation: dict[str, float], backend: str, said: str | None
) -> None:
    run = finished(["mi_cxr_icr"])
    tasks = {
        name: task_facts(load_specs()[name], generation, 6)
        for name in ("mi_cxr_icr", "mi_cxr_tel_single")
    }
    changed = {"tasks": tasks, "settings": {"model_backend": backend}}
    run = replace(run, manifest=run.manifest.model_copy(update=changed))
    text = " ".join(summary(run, None).split())
    assert ("warning:" in text) == (said is not None)
    if said is not None:
        assert said in text
        assert "(mi_cxr_icr, mi_cxr_tel_single)" in text
