"""Forged runs: whatever of a sample's document, prompt or scores was changed, it is refused, and
never ranked.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from forged_runs import (
    Forge,
    Samples,
    apart,
    board,
    check,
    codes,
    each,
    every,
    on_a_release,
    places,
    rewritten,
    wrong_ones_left_out,
)
from invented_runs import MODELS, edit_json, write_run_of, write_runs
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.publish import BoardOptions, publish
from medtasks.leaderboard.schema.board import Board
from medtasks.leaderboard.verify.scored_run import scored_run

from medtasks.core.findings import failed
from medtasks.harness import run_tasks
from medtasks.runs.samples import Sample
from medtasks.scoring import run_tables
from medtasks.scoring.run_folder import read_run, write_run
from medtasks.scoring.run_record import RunRecord

CAREFUL = MODELS[1]
NAME = CAREFUL.name


def values(found: Board) -> list[list[Any]]:
    """The scores of every table, best model first."""
    (benchmark,) = found.benchmarks
    return [
        [[cell.value for cell in row.cells.values()] for row in table.rows]
        for table in benchmark.tables
    ]


def is_right(sample: Sample) -> bool:
    return sample.scores["accuracy"] == 1.0


# -------------------------------------------------------------------------------------------------------
# the forgeries


@each
def gold_is_the_response(sample: Sample) -> Sample:
    return sample.model_copy(update={"target": sample.filtered})


@each
def easier_question(sample: Sample) -> Sample:
    told = f"{sample.document['question']} (It is {sample.target}.)"
    return sample.model_copy(update={"document": {**sample.document, "question": told}})


@each
def other_cluster(sample: Sample) -> Sample:
    """Every item a patient of its own: intervals shrink."""
    return sample.model_copy(update={"cluster": sample.sample_id})


@each
def a_field_more(sample: Sample) -> Sample:
    return sample.model_copy(
        update={"document": {**sample.document, "ideal_response": sample.filtered}}
    )


def right_ones_under_the_ids_of_wrong_ones(samples: Samples) -> Samples:
    found = {}
    for task, members in samples.items():
        right = [one for one in members if is_right(one)] or [members[0]]
        found[task] = [
            one
            if is_right(one)
            else right[number % len(right)].model_copy(update={"sample_id": one.sample_id})
            for number, one in enumerate(members)
        ]
    return found


def right_samples_of_other_tasks(samples: Samples) -> Samples:
    """True documents, true answers, in a task that they are not of."""
    right = [one for members in samples.values() for one in members if is_right(one)]
    return {
        task: [one.model_copy(update={"task": task}) for one in right[: len(members)]]
        for task, members in samples.items()
    }


DOCUMENTS = [
    gold_is_the_response,
    easier_question,
    other_cluster,
    a_field_more,
    right_ones_under_the_ids_of_wrong_ones,
    right_samples_of_other_tasks,
]


SAME_RESPONSES = [gold_is_the_response, other_cluster, a_field_more]


def forgery_names(forge: object) -> str:
    change = getattr(forge, "__closure__", None)
    return change[0].cell_contents.__name__ if change else getattr(forge, "__name__", "")


def test_honest_runs_pass_and_are_ranked(honest: Path, guessed: Path) -> None:
    assert check(guessed).findings == ()
    assert check(honest).findings == ()
    found = board(honest, guessed)
    assert places(found) == [NAME, MODELS[3].name]
    assert not apart(found)
    assert not any("verified" in note for run in found.runs.values() for note in run.notes)


@pytest.mark.parametrize("forge", DOCUMENTS, ids=forgery_names)
def test_a_forged_document_gains_nothing(
    forge: Forge, honest: Path, guessed: Path, tmp_path: Path
) -> None:
    """The data's documents are scored; a run asked with other prompts, or with other samples, is
    not ranked.
    """
    forged = rewritten(guessed, tmp_path, forge)
    found = board(honest, forged)
    assert places(found)[:1] == [NAME]
    if places(found) == [NAME]:
        assert codes(check(forged)) & {"LB401", "LB403"}
        (reasons,) = apart(found).values()
        assert "differ from the template" in reasons or "of no document of the task" in reasons
    if forge in SAME_RESPONSES:
        assert values(found) == values(board(honest, guessed))


def test_the_page_says_what_no_check_can_see(honest: Path, tmp_path: Path) -> None:
    publish([honest], tmp_path / "page", BoardOptions(demonstration=True))
    assert "protocol.html#trust" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "No check can prove that the named model gave the responses." in (
        (tmp_path / "page" / "protocol.html").read_text(encoding="utf-8")
    )


def test_wrong_answers_cannot_be_left_out(honest: Path, guessed: Path, tmp_path: Path) -> None:
    forged = rewritten(guessed, tmp_path, wrong_ones_left_out)
    assert codes(check(forged)) == {"LB201"}
    found = board(honest, forged)
    assert places(found) == [NAME]
    (reasons,) = apart(found).values()
    assert re.fullmatch(r"\d+ of 43 documents", reasons)


@pytest.mark.parametrize("part", [run_tables.PART_SIZE, 5])
def test_another_prompt_is_refused_and_not_ranked(
    honest: Path, guessed: Path, tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tables, "PART_SIZE", part)
    forged = rewritten(guessed, tmp_path, every(lambda _: {"prompt": "What do you see?"}))
    assert codes(check(forged)) == {"LB403"}
    found = board(honest, forged)
    assert len(places(found)) == 1
    assert "prompts differ from the template" in str(apart(found))


def errors(folder: Path) -> str:
    return " ".join(one.message for one in check(folder).findings if one.severity == "error")


def test_answered_samples_cannot_be_declared_missed(guessed: Path, tmp_path: Path) -> None:
    forged = rewritten(guessed, tmp_path, every(lambda _: {"missed": True}))
    assert "field `missed` is true, but the run was not paced" in errors(forged)

    def paced(manifest: dict[str, Any]) -> None:
        for facts in manifest["tasks"].values():
            facts["pace"] = "realtime"

    edit_json(forged / "manifest.json", paced)
    assert "field `missed` is true, but `responses` has a text" in errors(forged)


@pytest.mark.slow
@pytest.mark.parametrize("group", ["kvasir_vqa_x1", "medstreambench", "mi_cxr_stagewise_tel"])
def test_other_kinds_of_benchmarks_are_compared_too(group: str, tmp_path: Path) -> None:
    folder = write_run_of(tmp_path / "a", CAREFUL, [group])
    judged = {"LB205"}  # nobody judged them here
    assert codes(check(folder)) <= judged
    assert codes(check(folder), "warning") <= judged

    manifest, samples = read_run(folder)
    forge = every(lambda one: {"target": one.responses[0]})
    forged = write_run(tmp_path / "b" / folder.name, RunRecord(manifest, forge(samples), {}, {}))
    assert scored_run(forged).scores == scored_run(folder).scores


def test_without_data_runs_are_ranked_and_marked(
    honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    folders = [on_a_release(honest, tmp_path / "one"), on_a_release(guessed, tmp_path / "two")]
    report = check(folders[0])
    assert codes(report) == set()
    assert codes(report, "warning") == {"LB402"}
    assert len([one for one in report.findings if one.code == "LB402"]) == 1
    assert failed(report.findings, strict=True)
    found = board(*folders)
    assert len(places(found)) == 2
    assert "Documents not verified: med_cmr_mcq" in found.benchmarks[0].tables[0].note
    assert all("Documents not verified" in " ".join(run.notes) for run in found.runs.values())


def test_verified_runs_go_before_many_on_data_that_nobody_has(
    honest: Path, guessed: Path, tmp_path: Path
) -> None:
    """A forger who invents a fingerprint is compared with nothing; company does not help."""
    folders = [honest]
    for seed in range(3):
        forged = rewritten(guessed, tmp_path / str(seed), gold_is_the_response)
        data, model = (
            {"fingerprint": "f" * 64, "mini": False},
            {"pretrained": f"sock/Puppet-{seed}"},
        )
        edit_json(forged / "manifest.json", lambda it, new=data: it["data"]["med_cmr"].update(new))
        edit_json(forged / "manifest.json", lambda it, new=model: it["model"].update(new))
        folders.append(forged)
    found = board(*folders)
    assert places(found) == [NAME]
    assert len(apart(found)) == 3


def test_miniature_runs_are_verified_wherever_they_are_checked(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    assert check(honest).findings == ()


@pytest.mark.slow
def test_a_frame_cap_is_no_forgery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_MAX_FRAMES", "2")
    folder = run_tasks("medtasks_baseline", "policy=uniform", ["medstreambench_present"], tmp_path)
    monkeypatch.delenv("MEDTASKS_MAX_FRAMES")
    assert codes(check(folder)) == {"LB203"}  # and comparable with no other run


def test_a_stripped_run_stands_below_as_claimed(tmp_path: Path) -> None:
    """Whatever it claims: only runs with responses are ranked where there are any."""
    whole = write_run_of(tmp_path / "whole", MODELS[3], ["mi_cxr_tel"])
    stripped = remove_rows(
        write_run_of(tmp_path / "a", CAREFUL, ["mi_cxr_tel"]), tmp_path / "b" / "20261101_medtasks"
    )
    assert {(one.code, one.severity) for one in check(stripped).findings} == {("LB305", "note")}
    manifest, samples = read_run(stripped)
    right = every(lambda _: {"scores": {"accuracy": 1.0}, "statistics": {"accuracy": (1.0, 1.0)}})
    forged = write_run(
        tmp_path / "forged" / stripped.name, RunRecord.scored(manifest, right(samples))
    )
    found = board(whole, forged)
    assert places(found) == ["invented/Guess-1B"]
    assert "claimed: it has no prompts and responses" in str(apart(found))
    assert (
        "are claimed: they cannot be computed from responses"
        in board(stripped).benchmarks[0].tables[0].note
    )


# -------------------------------------------------------------------------------------------------
# responses, verdicts


@pytest.fixture(scope="module")
def judged_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (folder,) = write_runs(tmp_path_factory.mktemp("judged"), [CAREFUL], ["med_cmr_open"]).values()
    assert collect([folder])[1] == []
    return folder


@pytest.fixture
def judged(judged_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged_run, tmp_path / judged_run.name))


def test_a_malformed_verdict_refuses_the_directory(judged: Path) -> None:
    """Its claimed scores are never taken instead."""
    path = sorted((judged / "samples").glob("*.jsonl"))[0]

    def malformed(sample: Any) -> None:
        (verdict,) = sample["verdicts"]["med_cmr_open"]
        (judge,) = verdict["judges"].values()
        judge["scores"] = {"nothing": 5}

    edit_json(path, malformed, line=0)
    digests, (refused,) = collect([judged])
    assert digests == []
    assert f"samples/{path.name}: sample " in refused.reason
    assert "`verdicts`" in refused.reason


def test_the_metrics_of_a_rubric_are_those_installed(judged_run: Path, judged: Path) -> None:

    def remapped(manifest: Any) -> None:
        metrics = manifest["judge"]["med_cmr_open"]["rubric"]["metrics"]
        metrics |= dict(zip(metrics, reversed([*metrics.values()]), strict=True))

    edit_json(judged / "manifest.json", remapped)
    assert scored_run(judged).scores == scored_run(judged_run).scores


def test_another_judge_under_the_same_hash_is_refused(judged: Path) -> None:
    def other_judge(facts: Any) -> None:
        (name,) = facts["judges"]
        facts["judges"][name]["model"] = "better/Judge-100B"

    def other_weights(facts: Any) -> None:
        facts["rubric"]["aspects"][0]["guidance"] = "Full marks."

    content = (judged / "manifest.json").read_bytes()
    for edit in (other_judge, other_weights):
        (judged / "manifest.json").write_bytes(content)
        edit_json(judged / "manifest.json", lambda it, edit=edit: edit(it["judge"]["med_cmr_open"]))
        (refused,) = collect([judged])[1]
        assert "field `judge.med_cmr_open.judge_hash`" in refused.reason
        assert codes(check(judged)) == {"LB102"}


def test_a_threshold_that_is_no_share_refuses_the_directory(judged: Path) -> None:
    text = (judged / "manifest.json").read_text(encoding="utf-8")
    for threshold in ("2.0", "-0.1", "NaN"):
        changed = text.replace('"threshold": 0.99', f'"threshold": {threshold}')
        assert changed != text
        (judged / "manifest.json").write_text(changed, encoding="utf-8")
        digests, (refused,) = collect([judged])
        assert digests == []
        assert "threshold`" in refused.reason


def test_a_copy_under_another_name_is_reported(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path / "one", CAREFUL, ["kvasir_vqa_x1_level1"])
    copy = Path(shutil.copytree(folder, tmp_path / "copy" / "20261102_medtasks"))
    edit_json(copy / "manifest.json", lambda it: it["model"].update(pretrained="sock/Puppet"))
    notes = [note for run in board(folder, copy).runs.values() for note in run.notes]
    assert sum(note.startswith("same responses as run-") for note in notes) == 2
    assert codes(check(folder, copy), "warning") >= {"LB212"}
