"""Forged claims in a run's directory: scores, counts, judges, times and names that nothing in it supports."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
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
    counted,
    on_a_release,
    places,
    prompted,
    rewritten,
)
from invented_runs import MODELS, edit_json, write_run_of, write_runs
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.rank.comparability import ComparabilityGroups
from medtasks.leaderboard.verify.scored_run import RunStore, scored_run

from medtasks.runs.folder import read_run, write_run
from medtasks.runs.record import RunRecord

CAREFUL, GUESS = MODELS[1], MODELS[3]
EASY = "med_cmr_mcq_su"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An honest run, and the worse one of a forger."""
    root = tmp_path_factory.mktemp("runs")
    return tuple(write_run_of(root, model, ["med_cmr_mcq"]) for model in (CAREFUL, GUESS))


@pytest.fixture
def honest(runs: tuple[Path, Path]) -> Path:
    return runs[0]


@pytest.fixture
def guessed(runs: tuple[Path, Path]) -> Path:
    return runs[1]


def edited(folder: Path, out: Path, edit: Callable[[Any], None]) -> Path:
    """A copy of the run with an edited manifest."""
    copy = Path(shutil.copytree(folder, out / folder.name))
    edit_json(copy / "manifest.json", edit)
    return copy


def claiming(folder: Path, out: Path, statistics: tuple[float, float]) -> Path:
    """The run with these statistics for all samples, whatever the responses give."""
    manifest, samples = read_run(folder)
    told = {"scores": {"accuracy": 1.0}, "statistics": {"accuracy": statistics}}
    forged = {task: [one.model_copy(update=told) for one in members] for task, members in samples.items()}
    return write_run(out / folder.name, RunRecord.scored(manifest, forged))


def beside_forgers(honest: Path, guessed: Path, out: Path, forge: Forge, forgers: int) -> list[Path]:
    """The honest run, and the same forgery under several names, on a release that is not prepared here."""
    folders = [on_a_release(honest, out / "honest")]
    for number in range(forgers):
        forged = on_a_release(rewritten(guessed, out / f"forged-{number}", forge), out / f"submitted-{number}")
        named = edited(forged, out / str(number), partial(rename, f"sock/Puppet-{number}"))
        folders.append(named)
    return folders


def rename(name: str, manifest: Any) -> None:
    manifest["model"]["pretrained"] = name


# ------------------------------------------------------------------------------------------------- claimed statistics


def test_one_forged_score_among_many_is_not_read(guessed: Path, tmp_path: Path) -> None:
    manifest, samples = read_run(guessed)
    wrong = next(one for one in samples[EASY] if one.scores["accuracy"] == 0.0)
    right = wrong.model_copy(update={"scores": {"accuracy": 1.0}, "statistics": {"accuracy": (1.0, 1.0)}})
    copies = [wrong.model_copy(update={"sample_id": f"{wrong.sample_id}-{number}"}) for number in range(1000)]
    forged = {**samples, EASY: [right, *copies]}
    run = RunRecord.scored(counted(manifest, forged), forged)
    digest = scored_run(write_run(tmp_path / guessed.name, run))
    assert digest.entries[EASY].scores.metrics["accuracy"].value == 0.0


@pytest.mark.parametrize("statistics", [(1e11, 1.0), (2.0, 1.0), (-1.0, 1.0), (50.0, 50.0)])
def test_statistics_beyond_the_metric_s_bounds_are_not_read(
    statistics: tuple[float, float], guessed: Path, tmp_path: Path
) -> None:
    folder = claiming(guessed, tmp_path, statistics)
    scores, before = (scored_run(one).entries[EASY].scores for one in (folder, guessed))
    assert scores == before


def test_bounds_hold_where_nothing_can_be_scored_again(tmp_path: Path) -> None:
    """Stripped runs have no responses, and learned metrics are not computed by a build."""
    stripped = remove_rows(write_run_of(tmp_path / "a", CAREFUL, ["mi_cxr_icr"]), tmp_path / "b" / "20261101_medtasks")
    assert collect([claiming(stripped, tmp_path / "c", (3.0, 1.0))])[0] == []
    folder = write_run_of(tmp_path / "d", CAREFUL, ["kvasir_vqa_x1_level1"])
    manifest, samples = read_run(folder)

    def claimed(number: float) -> Path:
        told = {
            task: [one.model_copy(update={"scores": {**one.scores, "bertscore": number},
                                          "statistics": {**one.statistics, "bertscore": (number, 1.0)}})
                   for one in members]
            for task, members in samples.items()
        }  # fmt: skip
        record = RunRecord.scored(manifest, told)
        return write_run(tmp_path / str(number) / folder.name, record)

    assert collect([claimed(100.0)])[0] == []
    assert "bertscore are taken as submitted" in str(scored_run(claimed(0.9)).public.notes)


def test_an_invented_protocol_hash_changes_nothing(guessed: Path, tmp_path: Path) -> None:
    manifest, samples = read_run(claiming(guessed, tmp_path / "a", (1.0, 1.0)))
    facts = {task: one.model_copy(update={"protocol_hash": "0" * 16}) for task, one in manifest.tasks.items()}
    record = RunRecord(manifest.model_copy(update={"tasks": facts}), samples, {}, {})
    other = scored_run(write_run(tmp_path / "b" / guessed.name, record))
    assert {name: (one.scores, one.signatures) for name, one in other.entries.items()} == {
        name: (one.scores, one.signatures) for name, one in scored_run(guessed).entries.items()
    }


def test_what_cannot_be_scored_again_is_noted_and_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run_of(tmp_path / "run", CAREFUL, ["mi_cxr_report"])
    edit_json(folder / "manifest.json", lambda it: it["data"]["mi_cxr"].update(mini=False, records=10**6))
    before = tmp_path / "no-data"
    with monkeypatch.context() as changed:
        changed.setenv("MEDTASKS_DATA", str(before))
        (digest,), _ = collect([folder], RunStore(tmp_path / "cache"))
    assert "mi_cxr_report: scores are taken as submitted" in str(digest.public.notes)
    (digest,), _ = collect([folder], RunStore(tmp_path / "cache"))
    assert "taken as submitted" not in str(digest.public.notes)


def test_options_that_add_to_a_prompt_do_not_hide_a_changed_one(honest: Path, guessed: Path, tmp_path: Path) -> None:
    def other_prompt(samples: Samples) -> Samples:
        return {
            task: [one.model_copy(update={"prompt": f"{one.prompt} It is {one.target}."}) for one in members]
            for task, members in samples.items()
        }

    forged = rewritten(guessed, tmp_path, other_prompt)
    edit_json(forged / "manifest.json", lambda it: it["settings"].update(apply_chat_template=True))
    assert "LB203" in codes(check(forged))
    found = board(honest, forged)
    assert places(found) == ["invented/Careful-7B"]
    assert "harness options" in str(apart(found))


# --------------------------------------------------------------------------------------- pushing an honest run aside


def target_is_the_response(samples: Samples) -> Samples:
    return {
        task: [prompted(one.model_copy(update={"target": one.filtered})) for one in members]
        for task, members in samples.items()
    }


def wrong_ones_left_out(samples: Samples) -> Samples:
    return {
        task: [one for one in members if one.scores["accuracy"]] or members[:1] for task, members in samples.items()
    }


def clusters_of_one(samples: Samples) -> Samples:
    return {
        task: [one.model_copy(update={"cluster": one.sample_id}) for one in members]
        for task, members in samples.items()
    }


PUSHING = [target_is_the_response, wrong_ones_left_out, clusters_of_one]


@pytest.mark.slow
@pytest.mark.parametrize(("forge", "forgers"), [(PUSHING[0], 1), (PUSHING[0], 3), (PUSHING[2], 3)])
def test_without_data_no_forger_displaces_an_honest_run(
    forge: Forge, forgers: int, honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    folders = beside_forgers(honest, guessed, tmp_path, forge, forgers)
    found = board(*folders)
    assert len(places(found)) == 1 + forgers
    assert "invented/Careful-7B" in places(found)
    assert apart(found) == {}
    assert "Documents not verified" in found.benchmarks[0].tables[0].note
    assert {one.code for one in check(folders[0]).findings} == {"LB402"}


def test_without_data_an_invented_fingerprint_displaces_nobody(
    honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    folders = beside_forgers(honest, guessed, tmp_path, target_is_the_response, 3)
    for folder in folders[1:]:
        edit_json(folder / "manifest.json", lambda it: it["data"]["med_cmr"].update(fingerprint="b" * 64))
    assert "invented/Careful-7B" in places(board(*folders))


def test_published_counts_tell_who_left_samples_out(
    honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without data and hashes: three runs without their wrong samples against one that has them."""
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    folders = beside_forgers(honest, guessed, tmp_path, wrong_ones_left_out, 3)
    found = board(*folders)
    assert places(found) == ["invented/Careful-7B"]
    assert "samples instead of 43" in str(apart(found))


def test_stripped_runs_of_other_tasks_agree_on_clusters(tmp_path: Path) -> None:
    """Their patients are numbered differently, but the same samples are of one patient."""
    whole = write_run_of(tmp_path / "whole", MODELS[2], ["mi_cxr_icr"])
    some = remove_rows(write_run_of(tmp_path / "a", CAREFUL, ["mi_cxr_icr"]), tmp_path / "some_medtasks")
    more = remove_rows(write_run_of(tmp_path / "b", GUESS, ["mi_cxr"]), tmp_path / "more_medtasks")
    clusters = [scored_run(folder).entries["mi_cxr_icr"].clusters for folder in (whole, some, more)]
    assert len(set(clusters)) == 3
    digests = [scored_run(folder) for folder in (some, more)]
    assert len(ComparabilityGroups(digests, demonstration=True).of("mi_cxr_icr", "accuracy").ranked) == 2


def test_the_larger_part_of_a_release_is_usual_and_not_what_most_have(
    honest: Path, guessed: Path, tmp_path: Path
) -> None:
    """LB209 names the runs on a part, however many they are."""
    whole = on_a_release(honest, tmp_path / "whole")
    _, *parts = beside_forgers(honest, guessed, tmp_path, wrong_ones_left_out, 2)
    for part in parts:
        edit_json(part / "manifest.json", lambda it: it["data"]["med_cmr"].update(fingerprint="b" * 64))
    found = {Path(one.file).parent for one in check(whole, *parts).findings if one.code == "LB209"}
    assert found == {*parts}


# ------------------------------------------------------------------------------------- judges, versions, times, names


def test_another_judge_under_the_same_hash_is_refused(tmp_path: Path) -> None:
    (folder,) = write_runs(tmp_path, [CAREFUL], ["med_cmr_open"]).values()
    assert collect([folder])[1] == []

    def other_judge(manifest: Any) -> None:
        (name,) = manifest["judge"]["med_cmr_open"]["judges"]
        manifest["judge"]["med_cmr_open"]["judges"][name]["model"] = "better/Judge-100B"

    def other_weights(manifest: Any) -> None:
        manifest["judge"]["med_cmr_open"]["rubric"]["aspects"][0]["guidance"] = "Full marks."

    for number, edit in enumerate((other_judge, other_weights)):
        forged = edited(folder, tmp_path / str(number), edit)
        (refused,) = collect([forged])[1]
        assert "field `judge.med_cmr_open.judge_hash`" in refused.reason
        assert codes(check(forged)) == {"LB102"}


@pytest.mark.parametrize(
    ("edit", "told"),
    [(lambda it: it["tasks"][EASY].update(version=9.0), "task version 9.0 instead of 1.0"),
     (lambda it: it["settings"].update(system_instruction="Be right."), "--system_instruction 'Be right.'")],
    ids=["version", "system"],
)  # fmt: skip
def test_check_names_what_build_holds_against_a_run(
    edit: Callable[[Any], None], told: str, honest: Path, guessed: Path, tmp_path: Path
) -> None:
    other = edited(guessed, tmp_path, edit)
    found = [one.message for one in check(other).findings if one.code == "LB203" and one.where == EASY]
    assert len(found) == 1
    assert told in found[0]
    table = board(honest, other).benchmarks[0].tables
    assert {one.row.runs for some in table for one in some.apart} == {(scored_run(other).public.key,)}


@pytest.mark.parametrize(
    ("created", "told"),
    [("yesterday", "expected a time with"), ("", "expected a time"), ("2026-11-01T10:00:00", "expected a time"),
     ("0001-01-01T00:00:00+09:00", "expected a time"), ("9999-12-31T00:00:00+00:00", "in the future"),
     ("in 30 days", "in the future")],
)  # fmt: skip
def test_a_run_was_made_at_a_time_in_the_past(created: str, told: str, guessed: Path, tmp_path: Path) -> None:
    if created == "in 30 days":
        created = (datetime.now(timezone.utc) + timedelta(days=30)).isoformat()
    forged = edited(guessed, tmp_path, lambda it: it.update(created=created))
    (refused,) = collect([forged])[1]
    assert "manifest.json: field `created` is " in refused.reason
    assert told in refused.reason
    assert codes(check(forged)) == {"LB102"}


def test_times_of_different_offsets_are_ordered_as_times(guessed: Path, tmp_path: Path) -> None:
    later = edited(guessed, tmp_path, lambda it: it.update(created="2025-11-01T09:00:00-05:00"))
    assert scored_run(later).public.created == "2025-11-01T14:00:00+00:00"


def test_a_newer_run_under_another_s_name_is_pointed_out(honest: Path, guessed: Path, tmp_path: Path) -> None:
    model = json.loads((honest / "manifest.json").read_text(encoding="utf-8"))["model"]
    forged = edited(guessed, tmp_path, lambda it: it.update(model=model, created="2026-11-02T00:00:00+00:00"))
    assert scored_run(forged).model == scored_run(honest).model
    (found,) = [one for one in check(honest, forged).findings if one.code == "LB211"]
    assert (found.severity, Path(found.file).parent) == ("warning", forged)
    assert f"the model of {honest.name}, which it would replace" in found.message
    assert check(honest, honest).findings == ()
