"""Forged claims in a run's directory: scores, counts, judges, times and names that nothing in it
supports.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import cycle, permutations
from pathlib import Path
from typing import Any

import pytest
from forged_runs import (
    Forge,
    add_strangers,
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
from invented_runs import MODELS, edit_json, write_run_of
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.rank.comparability import ComparabilityGroups
from medtasks.leaderboard.rank.compare import compare_runs
from medtasks.leaderboard.verify.scored_run import RunStore, scored_run

from medtasks.runs.samples import JudgedScore, Repeat
from medtasks.scoring.run_folder import read_run, write_run
from medtasks.scoring.run_record import RunRecord

CAREFUL, GUESS = MODELS[1], MODELS[3]
EASY = "med_cmr_mcq_su"


def edited(folder: Path, out: Path, edit: Callable[[Any], None]) -> Path:
    """A copy of the run with an edited manifest."""
    copy = Path(shutil.copytree(folder, out / folder.name))
    edit_json(copy / "manifest.json", edit)
    return copy


def beside_forgers(
    honest: Path, guessed: Path, out: Path, forge: Forge, forgers: int
) -> list[Path]:
    """The honest run, and the same forgery under several names, on a release that is not prepared
    here.
    """
    folders = [on_a_release(honest, out / "honest")]
    for number in range(forgers):
        forged = on_a_release(
            rewritten(guessed, out / f"forged-{number}", forge), out / f"submitted-{number}"
        )
        name = f"sock/Puppet-{number}"
        folders.append(
            edited(
                forged, out / str(number), lambda it, name=name: it["model"].update(pretrained=name)
            )
        )
    return folders


AGAIN = Repeat(filtered="A", status="ok", statistics={"accuracy": (1.0, 1.0)})
CLAIMS: list[dict[str, Any]] = [
    {"scores": {"accuracy": 0.5}},
    {"statistics": {"accuracy": (1.0, 1.0)}},
    {"scores": {"accuracy": 1.0}, "statistics": {"accuracy": (1e300, 1.0)}},
    {"statistics": {"accuracy": (-1.0, 1.0)}},
    {"statistics": {"accuracy": (50.0, 50.0)}},
    {"judged": {"accuracy": JudgedScore(rubric="x", judge=None, limits=((1.0, 1.0), (1.0, 1.0)))}},
    {"repeats": (AGAIN, AGAIN)},
    {"pending": ("accuracy",)},
    {"filtered": "A", "status": "none"},
]


def test_nothing_that_a_run_claims_is_read(guessed: Path, tmp_path: Path) -> None:
    manifest, samples = read_run(guessed)
    claims = cycle(CLAIMS)
    forged = every(lambda _: next(claims))(samples)
    facts = {
        task: one.model_copy(update={"protocol_hash": "0" * 16, "status": {"empty": 5}})
        for task, one in manifest.tasks.items()
    }
    record = RunRecord(manifest.model_copy(update={"tasks": facts}), forged, {}, {})
    folder = write_run(tmp_path / guessed.name, record)
    (folder / "scores.json").write_text("{", encoding="utf-8")
    assert codes(check(folder)) == {"LB203", "LB405"}  # the protocol hash, and each claim
    one, other = scored_run(folder), scored_run(guessed)
    assert (one.scores, one.record.signatures) == (other.scores, other.record.signatures)
    assert one.record.notes == other.record.notes
    assert (one.public.notes, one.public.counts) == (other.public.notes, other.public.counts)


def test_a_stripped_task_and_one_of_nobody_switch_no_rescoring_off(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path / "whole", CAREFUL, [EASY, "mi_cxr_icr"])
    stripped = remove_rows(folder, tmp_path / "stripped" / folder.name)
    manifest, samples = read_run(stripped)
    right = {"scores": {"accuracy": 1.0}, "statistics": {"accuracy": (1.0, 1.0)}}
    samples[EASY] = [one.model_copy(update=right) for one in samples[EASY]]
    forged = write_run(tmp_path / "forged" / folder.name, RunRecord.scored(manifest, samples))
    assert [one.field for one in check(forged).findings if one.code == "LB405"] == [
        "scores.accuracy",
        "statistics",
    ]
    add_strangers(forged, EASY)
    assert {one.code: one.severity for one in check(forged).findings if one.severity != "note"} == {
        "LB207": "warning", "LB405": "error",
    }  # fmt: skip
    assert scored_run(forged).scores == scored_run(folder).scores


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ((float("inf"), 1.0), "is inf, expected a finite number"),
        ((1e300, 1.0), "an item's score is 1e+300, expected 0 to 1"),
        ((1.0, 1e-300), "an item's score is 1e+300, expected 0 to 1"),
        ((-1.0, -1.0), "an item counts -1 times, expected 0 or more"),
        ((1e-17, 1.0), ""),
    ],
)
def test_bounds_hold_where_nothing_can_be_scored_again(
    numbers: tuple[float, float], reason: str, guessed: Path, tmp_path: Path
) -> None:
    """Stripped runs have no responses."""
    manifest, samples = read_run(guessed)
    bare = every(lambda _: {"prompt": "", "responses": ()})(samples)
    folder = write_run(tmp_path / guessed.name, RunRecord(manifest, bare, {}, {}))
    edit_json(
        folder / "samples" / f"{EASY}.jsonl",
        lambda it: it["statistics"].update(accuracy=[*numbers]),
        line=0,
    )
    digests, refused = collect([folder])
    assert len(digests) == (not reason)
    assert all(reason in one.reason for one in refused)


def test_learned_metrics_are_taken_as_submitted_within_their_bounds(tmp_path: Path) -> None:
    """A build loads no models."""
    folder = write_run_of(tmp_path / "d", CAREFUL, ["kvasir_vqa_x1_level1"])
    manifest, samples = read_run(folder)
    for number in (100.0, 0.9):
        forge = every(
            lambda one, number=number: {
                "scores": {**one.scores, "bertscore": number},
                "statistics": {**one.statistics, "bertscore": (number, 1.0)},
            }
        )
        digests, _ = collect(
            [
                write_run(
                    tmp_path / str(number) / folder.name, RunRecord.scored(manifest, forge(samples))
                )
            ]
        )
        assert len(digests) == (number < 1)
    assert "bertscore are taken as submitted" in str(digests[0].public.notes)


def test_what_cannot_be_scored_again_is_noted_and_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run_of(tmp_path / "run", CAREFUL, ["mi_cxr_report"])
    edit_json(
        folder / "manifest.json", lambda it: it["data"]["mi_cxr"].update(mini=False, records=10**6)
    )
    before = tmp_path / "no-data"
    with monkeypatch.context() as changed:
        changed.setenv("MEDTASKS_DATA", str(before))
        (digest,), _ = collect([folder], RunStore(tmp_path / "cache"))
    assert "mi_cxr_report: scores are taken as submitted" in str(digest.public.notes)
    (digest,), _ = collect([folder], RunStore(tmp_path / "cache"))
    assert "taken as submitted" not in str(digest.public.notes)


def test_options_that_add_to_a_prompt_do_not_hide_a_changed_one(
    honest: Path, guessed: Path, tmp_path: Path
) -> None:
    forged = rewritten(
        guessed, tmp_path, every(lambda one: {"prompt": f"{one.prompt} It is {one.target}."})
    )
    edit_json(forged / "manifest.json", lambda it: it["settings"].update(apply_chat_template=True))
    assert "LB203" in codes(check(forged))
    found = board(honest, forged)
    assert places(found) == ["invented/Careful-7B"]
    assert "harness options" in str(apart(found))


target_is_the_response = each(lambda one: one.model_copy(update={"target": one.filtered}))
clusters_of_one = every(lambda one: {"cluster": one.sample_id})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forge", "forgers"),
    [(target_is_the_response, 1), (target_is_the_response, 3), (clusters_of_one, 3)],
)
def test_without_data_no_forger_displaces_an_honest_run(
    forge: Forge,
    forgers: int,
    honest: Path,
    guessed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    folders = beside_forgers(honest, guessed, tmp_path, forge, forgers)
    found = board(*folders)
    assert len(places(found)) == 1 + forgers
    assert "invented/Careful-7B" in places(found)
    assert apart(found) == {}
    assert "Documents not verified" in found.benchmarks[0].tables[0].note
    assert {one.code for one in check(folders[0]).findings} == {"LB402"}


@pytest.fixture
def contradicting(
    honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Path]:
    """An honest run, and one that claims the same data with other gold answers, where they are not
    prepared.
    """
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    return beside_forgers(honest, guessed, tmp_path, target_is_the_response, 1)


def test_runs_that_contradict_each_other_about_their_data_are_not_compared(
    contradicting: list[Path],
) -> None:
    found = board(*contradicting)
    ranking = found.benchmarks[0].rankings[0]
    assert [(pair.items, pair.p_value) for pair in ranking.pairs] == [(0, None)]
    assert {one.letters for one in ranking.ranked} == {("a",)}  # no difference is significant
    notes = {key: " ".join(run.notes) for key, run in found.runs.items()}
    for key, other in permutations(notes):
        assert (
            f"other questions or gold answers than {other}, which claims the same data, in med_cmr_"
            in notes[key]
        )


def test_check_points_them_out(contradicting: list[Path]) -> None:
    found = {
        Path(one.file).parent: one for one in check(*contradicting).findings if one.code == "LB215"
    }
    assert found.keys() == {*contradicting}
    assert all(one.severity == "warning" for one in found.values())
    assert f"differ from those of {contradicting[1].name}" in found[contradicting[0]].message


def test_compare_leaves_out_what_was_asked_otherwise(contradicting: list[Path]) -> None:
    first, second = map(scored_run, contradicting)
    lines = compare_runs(first, second, task=EASY, metric="accuracy").lines
    assert [(line.pair, line.reason) for line in lines] == [
        (None, "the runs have no item in common")
    ]
    assert any(
        "the runs have other questions or gold answers of" in reason for reason in lines[0].unlike
    )


def test_without_data_runs_with_equal_questions_are_compared(
    honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    found = board(on_a_release(honest, tmp_path / "a"), on_a_release(guessed, tmp_path / "b"))
    (pair,) = found.benchmarks[0].rankings[0].pairs
    assert pair.items == 43
    assert not any("gold answers than" in note for run in found.runs.values() for note in run.notes)


def test_without_data_an_invented_fingerprint_displaces_nobody(
    honest: Path, guessed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    folders = beside_forgers(honest, guessed, tmp_path, target_is_the_response, 3)
    for folder in folders[1:]:
        edit_json(
            folder / "manifest.json", lambda it: it["data"]["med_cmr"].update(fingerprint="b" * 64)
        )
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
    some = remove_rows(
        write_run_of(tmp_path / "a", CAREFUL, ["mi_cxr_icr"]), tmp_path / "some_medtasks"
    )
    more = remove_rows(write_run_of(tmp_path / "b", GUESS, ["mi_cxr"]), tmp_path / "more_medtasks")
    clusters = [scored_run(folder).entries["mi_cxr_icr"].clusters for folder in (whole, some, more)]
    assert len(set(clusters)) == 3
    digests = [scored_run(folder) for folder in (some, more)]
    assert (
        len(ComparabilityGroups(digests, demonstration=True).of("mi_cxr_icr", "accuracy").ranked)
        == 2
    )


def test_the_larger_part_of_a_release_is_usual_and_not_what_most_have(
    honest: Path, guessed: Path, tmp_path: Path
) -> None:
    """LB209 names the runs on a part, however many they are."""
    whole = on_a_release(honest, tmp_path / "whole")
    _, *parts = beside_forgers(honest, guessed, tmp_path, wrong_ones_left_out, 2)
    for part in parts:
        edit_json(
            part / "manifest.json", lambda it: it["data"]["med_cmr"].update(fingerprint="b" * 64)
        )
    found = {Path(one.file).parent for one in check(whole, *parts).findings if one.code == "LB209"}
    assert found == {*parts}


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
    found = [
        one.message for one in check(other).findings if one.code == "LB203" and one.where == EASY
    ]
    assert len(found) == 1
    assert told in found[0]
    table = board(honest, other).benchmarks[0].tables
    assert {one.runs for some in table for one in some.apart} == {(scored_run(other).public.key,)}


def test_times_of_different_offsets_are_ordered_as_times(guessed: Path, tmp_path: Path) -> None:
    later = edited(guessed, tmp_path, lambda it: it.update(created="2025-11-01T09:00:00-05:00"))
    assert scored_run(later).public.created == "2025-11-01T14:00:00+00:00"


def test_a_newer_run_under_another_s_name_is_pointed_out(
    honest: Path, guessed: Path, tmp_path: Path
) -> None:
    model = json.loads((honest / "manifest.json").read_text(encoding="utf-8"))["model"]
    forged = edited(
        guessed, tmp_path, lambda it: it.update(model=model, created="2026-11-02T00:00:00+00:00")
    )
    assert scored_run(forged).model == scored_run(honest).model
    (found,) = [one for one in check(honest, forged).findings if one.code == "LB211"]
    assert (found.severity, Path(found.file).parent) == ("warning", forged)
    assert (
        f"the model of {honest.name} (invented/Careful-7B), which it would replace" in found.message
    )
    assert check(honest, honest).findings == ()
