"""MI-CXR's prompting variants, repeated sampling and report generation, through the real
harness.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from foreign_backend import Backend, evaluate
from lmms_eval.utils import load_yaml_config
from runs import Run, baseline, vlm
from test_harness_failures import target

from medtasks import harness
from medtasks.benchmarks.documents import prompt_text, task_documents, task_rows
from medtasks.benchmarks.mi_cxr import with_demonstrations
from medtasks.benchmarks.mi_cxr.cider import CiderCorpus
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.errors import DataError

ONE_SHOT = [*leaf_tasks("mi_cxr_1shot"), "mi_cxr_icr_variant_1shot"]


@pytest.mark.parametrize("task", ONE_SHOT)
def test_an_example_is_of_another_patient_and_the_same_type(task: str) -> None:
    direct = {
        document["sample_id"]: document for document in task_documents(task.removesuffix("_1shot"))
    }
    for document in task_documents(task):
        own, example = direct[document["sample_id"]], document["demonstration"]
        other = direct[document["demonstration_id"]]
        assert other["cluster"] != own["cluster"]
        assert other["qtype"] == own["qtype"]
        assert (example["question"], example["answer"]) == (other["question"], other["target"])
        assert document["media"] == [*other["media"], *own["media"]]
        assert len(document["media"]) == 10


def test_an_example_does_not_depend_on_the_other_rows() -> None:
    documents = [
        document for task in ONE_SHOT for document in task_documents(task.removesuffix("_1shot"))
    ]
    chosen = {one["sample_id"]: one["demonstration_id"] for one in with_demonstrations(documents)}
    again = {
        one["sample_id"]: one["demonstration_id"] for one in with_demonstrations(documents[::-1])
    }
    assert chosen == again


def test_a_type_with_one_patient_has_no_example_and_says_so() -> None:
    documents = [
        one
        for one in task_documents("mi_cxr_icr")
        if one["cluster"] == task_documents("mi_cxr_icr")[0]["cluster"]
    ]
    with pytest.raises(DataError, match="no other patient has a question of type icr_multi_abn"):
        with_demonstrations(documents)


@pytest.mark.slow
def test_every_question_is_sampled_three_times_with_seeds_of_its_own(tmp_path: Path) -> None:
    task = "mi_cxr_icr_sampled"
    settings: list[dict[str, Any]] = [{"batch_size": 4}, {}, {"seed": 1}]
    lines, again, other = (
        vlm([task], tmp_path / str(given), **given).samples(task) for given in settings
    )
    assert (
        {len(line["responses"]) for line in lines}
        == {len(line["repeats"]) for line in lines}
        == {3}
    )
    assert all(len(set(line["responses"])) > 1 for line in lines)
    assert [line["responses"] for line in again] == [line["responses"] for line in lines]
    assert [line["responses"] for line in other] != [line["responses"] for line in lines]


@pytest.mark.slow
def test_streams_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluate(Backend(target), ["medstreambench_proactive"], tmp_path, repeats=3)
    assert "medstreambench_proactive: repeats is 3, expected 1" in capsys.readouterr().err


@pytest.mark.slow
def test_reports_are_scored_against_the_right_option_and_null_rows_are_counted(
    tmp_path: Path,
) -> None:
    rows = [document for task in leaf_tasks("mi_cxr_gts") for document in task_documents(task)]
    without = [document for document in rows if document["target"] == "E"]
    reports = task_documents("mi_cxr_report")
    run = baseline("oracle", ["mi_cxr_report"], tmp_path)

    assert len(reports) == len(rows) - len(without)
    assert task_rows("mi_cxr_report").excluded() == {"null_option_right": len(without)}
    assert run.manifest["tasks"]["mi_cxr_report"]["excluded"] == {"null_option_right": len(without)}
    right = {document["sample_id"]: document["choices"][document["target"]] for document in rows}
    assert all(document["target"] == right[document["sample_id"]] for document in reports)
    metrics = run.scores["mi_cxr_report"]["metrics"]
    assert metrics["rougeL"]["value"] == 1.0
    assert metrics["cider"]["value"] == pytest.approx(10.0)


@pytest.mark.slow
def test_cider_weighs_by_all_references_of_the_task_however_few_are_run(tmp_path: Path) -> None:
    references = [document["target"] for document in task_documents("mi_cxr_report")]
    corpus = CiderCorpus(references)
    run = Run(
        harness.run_tasks(
            "medtasks_baseline", "policy=uniform,seed=3", ["mi_cxr_report"], tmp_path, limit=3
        )
    )
    lines = run.samples("mi_cxr_report")
    expected = [corpus.score(line["filtered"], line["target"]) for line in lines]

    assert [line["scores"]["cider"] for line in lines] == pytest.approx(expected)
    assert run.scores["mi_cxr_report"]["metrics"]["cider"]["value"] == pytest.approx(
        math.fsum(expected) / 3
    )


PROMPTS = "mi_cxr_icr_prompts"


def test_the_harness_alone_asks_with_every_template() -> None:
    """`--include_path` without our entry point: nothing but the task file tells the harness what to
    ask.
    """
    config = load_yaml_config(yaml_path=str(load_spec(PROMPTS).path), mode="full")
    documents = config["process_docs"](None)
    assert documents["sample_id"] == [one["sample_id"] for one in task_documents(PROMPTS)]
    texts = [
        config["doc_to_text"](one, config["lmms_eval_specific_kwargs"])
        for one in documents.select(range(4))
    ]
    assert len(set(texts)) == 4


@pytest.mark.parametrize("end", ["_prompts", "_circular"])
def test_no_other_group_has_such_tasks(end: str) -> None:
    for name, spec in load_specs().items():
        assert name.endswith(end) or not [one for one in spec.members if one.endswith(end)]


def test_a_policy_that_is_right_under_one_prompt_is_scored_and_its_prompts_are_kept(
    tmp_path: Path,
) -> None:
    answer = Backend(
        lambda document: document["target"] if document["prompt"] == 2 else "I cannot tell."
    )
    run = evaluate(answer, [PROMPTS], tmp_path)
    metrics = {name: score["value"] for name, score in run.scores[PROMPTS]["metrics"].items()}
    assert metrics == {
        "accuracy": 0.25,
        "worst_prompt": 0.0,
        "best_prompt": 1.0,
        "prompt_spread": pytest.approx(0.5),
        "prompt_agreement": 0.0,
        **{f"prompt_{number}": float(number == 2) for number in range(1, 5)},
    }
    assert run.manifest["tasks"][PROMPTS]["prompt_hash"] == load_spec(PROMPTS).prompt_hash
    for sample, document in zip(run.samples(PROMPTS), task_documents(PROMPTS), strict=True):
        assert sample["prompt"] == prompt_text(document, "a template that does not exist")


@pytest.mark.slow
def test_the_prompts_and_rotations_of_a_question_share_its_media(tmp_path: Path) -> None:
    plain, paraphrased, rotated = (
        vlm([task], tmp_path / task, batch_size=4).manifest["usage"]["counters"]
        for task in ("mi_cxr_icr", PROMPTS, "mi_cxr_icr_circular")
    )
    assert paraphrased["media_encoded"] == rotated["media_encoded"] == plain["media_encoded"]
    assert paraphrased["prompt_tokens_reused"] > plain["prompt_tokens_reused"]
    assert rotated["prompt_tokens_reused"] > rotated["prompt_tokens_computed"]
