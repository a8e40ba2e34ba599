"""Forged runs: whatever of a sample's document, prompt or scores was changed, it is refused, and never ranked."""

from __future__ import annotations

import base64
import json
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
    command,
    each,
    of_a_release,
    on_a_release,
    places,
    prompted,
    rewritten,
)
from invented_runs import MODELS, write_run_of
from medtasks.leaderboard.collect import collect
from medtasks.leaderboard.publish import publish
from medtasks.leaderboard.strip import strip_run

from medtasks.cli.app import main
from medtasks.harness import run_tasks
from medtasks.results.folder import RunRecord, read_run, write_run
from medtasks.results.run import pooled_scores
from medtasks.results.samples import Sample

CAREFUL = MODELS[1]
NAME = "noisy_oracle (accuracy 0.8, seed 1)"
EASY, HARD = "med_cmr_mcq_su", "med_cmr_mcq_sod"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the real harness that is right in most cases: what a forger has to beat."""
    out = tmp_path_factory.mktemp("honest")
    return run_tasks("medtasks_baseline", "policy=noisy_oracle,accuracy=0.8,seed=1", ["med_cmr_mcq"], out)


@pytest.fixture(scope="module")
def guessed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the real harness whose answers are guessed."""
    out = tmp_path_factory.mktemp("guessed")
    return run_tasks("medtasks_baseline", "policy=uniform,seed=3", ["med_cmr_mcq"], out)


def is_right(sample: Sample) -> bool:
    return sample.scores["accuracy"] == 1.0


# ------------------------------------------------------------------------------------------------------- the forgeries


@each
def gold_is_the_response(sample: Sample) -> Sample:
    return sample.model_copy(update={"target": sample.filtered})


@each
def options_are_swapped(sample: Sample) -> Sample:
    """The gold letter stays; the options are such that the letter given is right."""
    gold, said = sample.target, sample.filtered
    choices = dict(sample.document["choices"])
    choices[gold], choices[said] = choices[said], choices[gold]
    return sample.model_copy(update={"target": said, "document": {**sample.document, "choices": choices}})


@each
def easier_question(sample: Sample) -> Sample:
    told = f"{sample.document['question']} (It is {sample.target}.)"
    return sample.model_copy(update={"document": {**sample.document, "question": told}})


@each
def other_picture(sample: Sample) -> Sample:
    return sample.model_copy(update={"media": ("shown/instead.png",)})


@each
def other_cluster(sample: Sample) -> Sample:
    """Every item a patient of its own: intervals shrink."""
    return sample.model_copy(update={"cluster": sample.sample_id})


@each
def a_field_more(sample: Sample) -> Sample:
    return sample.model_copy(update={"document": {**sample.document, "ideal_response": sample.filtered}})


def right_ones_under_the_ids_of_wrong_ones(samples: Samples) -> Samples:
    found = {}
    for task, members in samples.items():
        right = [one for one in members if is_right(one)] or [members[0]]
        found[task] = [
            one if is_right(one) else right[number % len(right)].model_copy(update={"sample_id": one.sample_id})
            for number, one in enumerate(members)
        ]
    return found


def one_right_sample_in_other_tasks(samples: Samples) -> Samples:
    right = next(one for members in samples.values() for one in members if is_right(one))
    return {
        task: [
            prompted(right.model_copy(update={"task": task, "sample_id": f"{right.sample_id}-{number}" * bool(number)}))
            if number
            else right.model_copy(update={"task": task})
            for number, _ in enumerate(members)
        ]
        if task != right.task
        else members
        for task, members in samples.items()
    }


def right_samples_of_other_tasks(samples: Samples) -> Samples:
    """True documents, true answers, in a task that they are not of."""
    right = [one for members in samples.values() for one in members if is_right(one)]
    return {
        task: [one.model_copy(update={"task": task}) for one in right[: len(members)]]
        for task, members in samples.items()
    }


def wrong_ones_left_out(samples: Samples) -> Samples:
    """Nothing in the folder says that there ever were more documents."""
    return {task: [one for one in members if is_right(one)] or members[:1] for task, members in samples.items()}


DOCUMENTS = [
    gold_is_the_response,
    options_are_swapped,
    easier_question,
    other_picture,
    other_cluster,
    a_field_more,
    right_ones_under_the_ids_of_wrong_ones,
    one_right_sample_in_other_tasks,
    right_samples_of_other_tasks,
]


def forgery_names(forge: object) -> str:
    change = getattr(forge, "__closure__", None)
    return change[0].cell_contents.__name__ if change else getattr(forge, "__name__", "")


# -------------------------------------------------------------------------------------------------------- with the data


def test_honest_runs_pass_and_are_ranked(honest: Path, guessed: Path) -> None:
    assert check(guessed).findings == ()
    assert check(honest).findings == ()
    found = board(honest, guessed)
    assert places(found) == [NAME, "uniform (seed 3)"]
    assert not apart(found)
    assert not any("verified" in note for run in found.runs.values() for note in run.notes)


@pytest.mark.parametrize("forge", DOCUMENTS, ids=forgery_names)
def test_a_forged_document_is_refused_and_not_ranked(forge: Forge, honest: Path, guessed: Path, tmp_path: Path) -> None:
    forged = rewritten(guessed, tmp_path, forge)
    report = check(forged)
    assert "LB401" in codes(report)
    assert report.failed()
    found = board(honest, forged)
    assert places(found) == [NAME]
    (reasons,) = apart(found).values()
    assert "documents differ from the data" in reasons


def test_the_page_says_what_no_check_can_see(honest: Path, tmp_path: Path) -> None:
    publish([honest], tmp_path / "page", demonstration=True, figures=())
    assert "protocol.html#trust" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "No check can detect whether the named model gave the responses." in (
        (tmp_path / "page" / "protocol.html").read_text(encoding="utf-8")
    )


def test_a_changed_target_is_named_without_telling_the_right_one(guessed: Path, tmp_path: Path) -> None:
    report = check(rewritten(guessed, tmp_path, gold_is_the_response))
    found = [one for one in report.findings if one.code == "LB401" and one.line is not None]
    assert all(one.message.startswith("`target` changed, expected a document of the data") for one in found)
    assert {Path(one.file).stem for one in found} >= {EASY, HARD}


def test_wrong_answers_cannot_be_left_out(honest: Path, guessed: Path, tmp_path: Path) -> None:
    forged = rewritten(guessed, tmp_path, wrong_ones_left_out)
    assert codes(check(forged)) == {"LB201"}
    found = board(honest, forged)
    assert len(places(found)) == 1
    assert "documents of the data were left out" in str(apart(found))


def test_a_forged_run_alone_is_ranked_nowhere(guessed: Path, tmp_path: Path) -> None:
    found = board(rewritten(guessed, tmp_path, gold_is_the_response))
    assert places(found) == []
    assert len(apart(found)) == 1


def test_another_prompt_is_refused_and_not_ranked(honest: Path, guessed: Path, tmp_path: Path) -> None:
    def forge(samples: Samples) -> Samples:
        return {
            task: [one.model_copy(update={"prompt": "What do you see?"}) for one in members]
            for task, members in samples.items()
        }

    forged = rewritten(guessed, tmp_path, forge)
    assert codes(check(forged)) == {"LB403"}
    found = board(honest, forged)
    assert len(places(found)) == 1
    assert "prompts differ from the template" in str(apart(found))


def test_scores_that_the_responses_do_not_give_are_never_ranked(honest: Path, guessed: Path, tmp_path: Path) -> None:
    manifest, samples = read_run(guessed)
    right = {"scores": {"accuracy": 1.0}, "statistics": {"accuracy": (1.0, 1.0)}}
    forged = {task: [one.model_copy(update=right) for one in members] for task, members in samples.items()}
    folder = write_run(tmp_path / guessed.name, RunRecord(manifest, forged, *pooled_scores(forged, manifest.groups)))
    assert codes(check(folder)) == {"LB106"}
    found = board(honest, folder)
    assert len(places(found)) == 1
    assert "get different scores under today's rules" in str(apart(found))


def test_a_run_stripped_without_need_is_not_ranked(honest: Path, guessed: Path, tmp_path: Path) -> None:
    """Without prompts and responses nothing could be scored again."""
    manifest, samples = read_run(guessed)
    right = {"scores": {"accuracy": 1.0}, "statistics": {"accuracy": (1.0, 1.0)}, "prompt": "", "responses": ()}
    bare = {
        task: [one.model_copy(update={**right, "filtered": one.target}) for one in members]
        for task, members in samples.items()
    }
    folder = write_run(tmp_path / guessed.name, RunRecord(manifest, bare, *pooled_scores(bare, manifest.groups)))
    assert codes(check(folder)) == {"LB305"}
    found = board(honest, folder)
    assert len(places(found)) == 1
    assert "although they may be shown" in str(apart(found))


def test_a_benchmark_of_another_name_is_refused(guessed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(guessed, tmp_path / guessed.name))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["data"]["mine"] = manifest["data"]["med_cmr"]
    manifest["tasks"][EASY]["benchmark"] = "mine"
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert codes(check(folder)) == {"LB102"}
    assert f"`tasks.{EASY}.benchmark` is 'mine', expected 'med_cmr'" in str(collect([folder])[1])


# ------------------------------------------------------------------------------------------- text metrics and streams


@pytest.mark.parametrize("group", ["kvasir_vqa_x1", "medstreambench", "mi_cxr_stagewise_tel"])
def test_other_kinds_of_benchmarks_are_compared_too(group: str, tmp_path: Path) -> None:
    folder = write_run_of(tmp_path / "a", CAREFUL, [group])
    judged = {"LB205"}  # nobody judged them here
    assert codes(check(folder)) <= judged
    assert codes(check(folder), "warning") <= judged

    def forge(samples: Samples) -> Samples:
        return {
            task: [one.model_copy(update={"target": one.responses[0]}) for one in members]
            for task, members in samples.items()
        }  # fmt: skip

    manifest, samples = read_run(folder)
    forged = write_run(tmp_path / "b" / folder.name, RunRecord(manifest, forge(samples), {}, {}))
    assert "LB401" in codes(check(forged, rescore=False))


# ----------------------------------------------------------------------------------------------------- without the data


@pytest.fixture
def hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    out = tmp_path / "documents.json"
    command(monkeypatch, "digest", "med_cmr", "--out", str(out))
    return of_a_release(out)


@pytest.fixture
def nothing_here(tmp_path: Path, hashes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data are prepared on this machine; their hashes were written before."""
    assert hashes.is_file()
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))


@pytest.mark.usefixtures("nothing_here")
def test_without_data_runs_are_ranked_and_marked(honest: Path, guessed: Path, tmp_path: Path) -> None:
    folders = [on_a_release(honest, tmp_path / "one"), on_a_release(guessed, tmp_path / "two")]
    report = check(folders[0])
    assert codes(report) == set()
    assert codes(report, "warning") == {"LB402"}
    assert len([one for one in report.findings if one.code == "LB402"]) == 1
    assert report.failed(strict=True)
    found = board(*folders)
    assert len(places(found)) == 2
    assert "Documents not verified: med_cmr_mcq" in found.benchmarks[0].tables[0].note
    assert all("Documents not verified" in " ".join(run.notes) for run in found.runs.values())


@pytest.mark.usefixtures("nothing_here")
@pytest.mark.parametrize("forge", DOCUMENTS, ids=forgery_names)
def test_a_file_of_hashes_finds_forged_documents(
    forge: Forge, honest: Path, guessed: Path, hashes: Path, tmp_path: Path
) -> None:
    true = on_a_release(honest, tmp_path / "true")
    forged = on_a_release(rewritten(guessed, tmp_path / "forged", forge), tmp_path / "submitted")
    assert check(true, documents=[hashes]).findings == ()
    assert "LB401" in codes(check(forged, documents=[hashes]))
    found = board(true, forged, documents=(hashes,))
    assert len(places(found)) == 1
    assert "differ from the data" in str(apart(found))
    assert "not verified" not in found.benchmarks[0].tables[0].note


def test_hashes_of_a_trusted_run_serve_as_well_as_those_of_the_data(
    honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "run.json", tmp_path / "data.json"
    command(monkeypatch, "digest", str(honest.parent), "--out", str(one))
    command(monkeypatch, "digest", "med_cmr", "--out", str(other))
    kept, all_ = (json.loads(path.read_text(encoding="utf-8"))["documents"] for path in (one, other))
    ((fingerprint, tasks),) = kept.items()
    assert tasks.items() <= all_[fingerprint].items()
    assert len(base64.b64decode(tasks[EASY])) == 12 * len(read_run(honest)[1][EASY])
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    assert check(on_a_release(guessed, tmp_path), documents=[of_a_release(one)]).findings == ()


def test_verified_runs_go_before_many_on_data_that_nobody_has(honest: Path, guessed: Path, tmp_path: Path) -> None:
    """A forger who invents a fingerprint is compared with nothing; company does not help."""
    folders = [honest]
    for seed in range(3):
        forged = rewritten(guessed, tmp_path / str(seed), gold_is_the_response)
        manifest = json.loads((forged / "manifest.json").read_text(encoding="utf-8"))
        manifest["data"]["med_cmr"] |= {"fingerprint": "f" * 64, "mini": False}
        manifest["model"] = {"model": "medtasks_vlm", "pretrained": f"sock/Puppet-{seed}"}
        (forged / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        folders.append(forged)
    found = board(*folders)
    assert places(found) == [NAME]
    assert len(apart(found)) == 3


@pytest.mark.usefixtures("nothing_here")
def test_miniature_runs_are_verified_wherever_they_are_checked(honest: Path) -> None:
    assert check(honest).findings == ()


def test_a_frame_cap_is_no_forgery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_MAX_FRAMES", "2")
    folder = run_tasks("medtasks_baseline", "policy=uniform", ["medstreambench_present"], tmp_path)
    monkeypatch.delenv("MEDTASKS_MAX_FRAMES")
    assert codes(check(folder)) == {"LB203"}  # and comparable with no other run


@pytest.mark.parametrize(
    ("content", "told"),
    [("", "not a file of document hashes"), ("{}", "field `schema_version`"),
     ('{"schema_version": 1, "documents": {"f": {"t": "abc"}}}', "field `documents.f.t`: damaged hashes")],
)  # fmt: skip
def test_a_damaged_file_of_hashes_is_one_sentence(
    content: str, told: str, honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    path = tmp_path / "documents.json"
    path.write_text(content, encoding="utf-8")
    for arguments in (["check", str(honest)], ["build", str(honest), "--out", str(tmp_path / "page")]):
        monkeypatch.setattr("sys.argv", ["medtasks", "leaderboard", *arguments, "--documents", str(path)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr().err
        assert ended.value.code == 1
        assert len(said.splitlines()) == 1
        assert told in said


@pytest.mark.parametrize(
    ("source", "told"),
    [("nowhere", "neither a result directory"), ("limited", "not all documents were asked"),
     ("forged", "differ from the data")],
)  # fmt: skip
def test_what_is_no_measure_is_not_recorded(
    source: str, told: str, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    write_run_of(tmp_path / "limited", CAREFUL, [EASY], limit=2)
    rewritten(guessed, tmp_path / "forged", gold_is_the_response)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["medtasks", "leaderboard", "digest", source, "--out", "documents.json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (1, 2)
    assert told in capsys.readouterr().err
    assert not (tmp_path / "documents.json").exists()


# ------------------------------------------------------------------------------------------------------------- stripped


def test_a_stripped_run_is_compared_in_what_it_keeps(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path / "whole", CAREFUL, ["mi_cxr_tel"])
    stripped = strip_run(folder, tmp_path / "stripped" / folder.name)
    assert {(one.code, one.severity) for one in check(stripped).findings} == {("LB305", "note")}
    manifest, samples = read_run(stripped)
    claimed = {
        task: [one.model_copy(update={"target": one.filtered if one.status == "ok" else "A"}) for one in members]
        for task, members in samples.items()
    }
    run = RunRecord(manifest, claimed, *pooled_scores(claimed, manifest.groups))
    forged = write_run(tmp_path / "forged" / folder.name, run)
    assert "LB401" in codes(check(forged))
    assert "differ from the data" in str(apart(board(forged)))
    assert "their scores are taken as submitted" in board(stripped).benchmarks[0].tables[0].note
