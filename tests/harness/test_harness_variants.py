"""MI-CXR's prompting variants, repeated sampling and report generation, through the real harness."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from runs import Run, baseline, vlm
from test_harness_failures import Backend, evaluate, target

from medtasks import harness
from medtasks.benchmarks.documents import task_documents, task_rows
from medtasks.benchmarks.mi_cxr import with_demonstrations
from medtasks.benchmarks.mi_cxr.cider import CiderCorpus
from medtasks.catalog.spec import leaf_tasks
from medtasks.core.errors import DataError

pytestmark = pytest.mark.slow


ONE_SHOT = [*leaf_tasks("mi_cxr_1shot"), "mi_cxr_icr_variant_1shot"]


@pytest.mark.parametrize("task", ONE_SHOT)
def test_an_example_is_of_another_patient_and_the_same_type(task: str) -> None:
    direct = {document["sample_id"]: document for document in task_documents(task.removesuffix("_1shot"))}
    for document in task_documents(task):
        own, example = direct[document["sample_id"]], document["demonstration"]
        other = direct[document["demonstration_id"]]
        assert other["cluster"] != own["cluster"]
        assert other["qtype"] == own["qtype"]
        assert (example["question"], example["answer"]) == (other["question"], other["target"])
        assert document["media"] == [*other["media"], *own["media"]]
        assert len(document["media"]) == 10


def test_an_example_does_not_depend_on_the_other_rows() -> None:
    documents = [document for task in ONE_SHOT for document in task_documents(task.removesuffix("_1shot"))]
    chosen = {one["sample_id"]: one["demonstration_id"] for one in with_demonstrations(documents)}
    again = {one["sample_id"]: one["demonstration_id"] for one in with_demonstrations(documents[::-1])}
    assert chosen == again


def test_a_type_with_one_patient_has_no_example_and_says_so() -> None:
    documents = [
        one for one in task_documents("mi_cxr_icr") if one["cluster"] == task_documents("mi_cxr_icr")[0]["cluster"]
    ]
    with pytest.raises(DataError, match="no other patient has a question of type icr_multi_abn"):
        with_demonstrations(documents)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return vlm(["mi_cxr_sampled"], tmp_path_factory.mktemp("sampled"), batch_size=4)


@pytest.mark.slow
def test_every_question_is_sampled_three_times_with_seeds_of_its_own(sampled: Run, tmp_path: Path) -> None:
    lines = sampled.samples("mi_cxr_icr_sampled")
    assert {len(line["responses"]) for line in lines} == {len(line["repeats"]) for line in lines} == {3}
    assert all(len(set(line["responses"])) > 1 for line in lines)
    again = vlm(["mi_cxr_icr_sampled"], tmp_path)
    assert [line["responses"] for line in again.samples("mi_cxr_icr_sampled")] == [line["responses"] for line in lines]
    other = vlm(["mi_cxr_icr_sampled"], tmp_path / "other", seed=1)
    assert [line["responses"] for line in other.samples("mi_cxr_icr_sampled")] != [line["responses"] for line in lines]


def test_streams_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluate(Backend(target), ["medstreambench_proactive"], tmp_path, repeats=3)
    assert "medstreambench_proactive: repeats is 3, expected 1" in capsys.readouterr().err


def test_reports_are_scored_against_the_right_option_and_null_rows_are_counted(tmp_path: Path) -> None:
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


def test_cider_weighs_by_all_references_of_the_task_however_few_are_run(tmp_path: Path) -> None:
    references = [document["target"] for document in task_documents("mi_cxr_report")]
    corpus = CiderCorpus(references)
    run = Run(harness.run_tasks("medtasks_baseline", "policy=uniform,seed=3", ["mi_cxr_report"], tmp_path, limit=3))
    lines = run.samples("mi_cxr_report")
    expected = [corpus.score(line["filtered"], line["target"]) for line in lines]

    assert [line["scores"]["cider"] for line in lines] == pytest.approx(expected)
    assert run.scores["mi_cxr_report"]["metrics"]["cider"]["value"] == pytest.approx(math.fsum(expected) / 3)
