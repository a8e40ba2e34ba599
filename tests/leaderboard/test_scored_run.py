"""Digests: the run's own numbers made again, items by metric, timelines as scored, and notes on all
that is unusual.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_runs import add_strangers, check, codes
from invented_runs import MODELS, edit_json, make_run, shared_runs, write_run_of
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.verify.scored_run import RunStore, ScoredRun, scored_run

from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError
from medtasks.metrics.registry import get_metric
from medtasks.runs.signature import differences, parse_signature
from medtasks.scoring import run_tables
from medtasks.scoring.run_folder import RunFolder, read_run, write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.verified_runs import scored_record

SMALL = "kvasir_vqa_x1_level1"
GUESS = MODELS[3]


@pytest.fixture(scope="module")
def judged() -> ScoredRun:
    """Of a run over all four benchmarks."""
    return scored_run(shared_runs()["Careful-7B"])


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    scores = json.loads((shared_runs()["Careful-7B"] / "scores.json").read_text(encoding="utf-8"))
    return {**scores["tasks"], **scores["groups"]}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one level, without judge."""
    return write_run_of(tmp_path_factory.mktemp("small"), GUESS, [SMALL])


@pytest.fixture
def copy(small: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small, tmp_path / small.name))


def test_the_scores_are_the_runs_own(judged: ScoredRun, written: dict[str, Any]) -> None:
    assert {
        name: entry.scores.model_dump(mode="json") for name, entry in judged.entries.items()
    } == written


def test_a_clock_that_no_archive_can_record_keeps_no_score_from_the_cache(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 5 * 365 * 86_400.0)  # 1974
    first = scored_run(small, RunStore(tmp_path))
    assert len(list(tmp_path.glob("*.zip"))) == 1
    assert scored_run(small, RunStore(tmp_path)).scores == first.scores


def test_statistics_of_the_items_add_up_to_every_score(judged: ScoredRun) -> None:
    for entry in judged.entries.values():
        assert len(entry.items) == len(set(entry.items)) == len(entry.clusters)
        assert list(entry.items) == sorted(entry.items)
        for name, score in entry.scores.metrics.items():
            metric, rows = get_metric(name), entry.statistics(name)
            assert rows.shape == (len(entry.items), metric.width)
            known = rows[~np.isnan(rows).any(axis=1)]
            if score.value is not None:
                assert float(metric.score(known.sum(axis=0))) == pytest.approx(
                    score.value, abs=1e-12
                )
                if score.judged is not None:
                    assert (len(known) == len(rows)) == (score.judged == score.samples)


def test_a_pooled_metric_and_one_that_does_not_apply(judged: ScoredRun) -> None:
    stream = judged.entries["medstreambench"]
    assert stream.statistics("overall_table4").shape[1] == 16
    mixed = judged.entries["med_cmr"].statistics("accuracy")  # open questions have none
    assert {tuple(row) for row in mixed.tolist()} == {(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)}


def test_signatures_of_equal_runs_are_equal_and_tell_the_judge(judged: ScoredRun) -> None:
    other = scored_run(shared_runs()["Careful-twin-7B"])
    for name, entry in judged.entries.items():
        assert other.entries[name].signatures == entry.signatures
    total = parse_signature(judged.entries["med_cmr"].signatures["open_total"])
    judge, tasks = total["judge"].split(",")
    assert judge in judged.public.judges["med_cmr_open"]
    assert tasks == "7-tasks"
    assert "judge" not in parse_signature(judged.entries["med_cmr"].signatures["accuracy"])


def test_a_run_that_is_not_judged_is_told_apart_where_a_judge_counts(
    judged: ScoredRun, small: Path
) -> None:
    mine, theirs = scored_run(small).entries[SMALL].signatures, judged.entries[SMALL].signatures
    assert mine["rougeL"] == theirs["rougeL"]
    assert differences(mine["judged_accuracy"], theirs["judged_accuracy"])[0].startswith(
        "no judge instead of "
    )


def test_timelines_show_what_was_scored(judged: ScoredRun) -> None:
    _, samples = read_run(shared_runs()["Careful-7B"])
    for task in ("medstreambench_future_streaming", "medstreambench_proactive"):
        entry = judged.entries[task]
        by_id = {sample.sample_id: sample for sample in samples[task]}
        content = dict(zip(entry.items, entry.statistics("content").tolist(), strict=True))
        assert [one.item for one in entry.timelines] == list(entry.items)[:12]
        for one in entry.timelines:
            rounds = [by_id[f"{one.item}@{number}"] for number in range(1, len(one.rounds) + 1)]
            assert [(turn.time, turn.said, turn.answerable) for turn in one.rounds] == [
                (sample.document["time"], sample.filtered, sample.document["answerable"])
                for sample in rounds
            ]
            told = [turn.content for turn in one.rounds if turn.content is not None]
            if len(told) == len(one.rounds):
                assert sum(told) / len(told) == pytest.approx(content[one.item][0])
    assert judged.entries["medstreambench_present"].timelines == ()
    assert judged.entries["medstreambench"].timelines == ()


def test_times_of_a_timeline_by_hand() -> None:
    """The miniature stream of one operation: query at 6 s, bleeding at 13.5 s, rounds every 2 s
    from 10 s on.
    """
    (found,) = (
        one
        for one in scored_run(shared_runs()["Oracle-72B"])
        .entries["medstreambench_future_streaming"]
        .timelines
        if one.item == "mini_chole04_stream"
    )
    assert (found.query_time, found.expected_time, found.tolerance) == (6.0, 13.5, 1.0)
    assert [(turn.time, turn.positive, turn.valid, turn.content) for turn in found.rounds] == [
        (10.0, False, True, 1.0),
        (12.0, False, True, 1.0),
        (14.0, True, True, 1.0),
        (16.0, True, True, 1.0),
        (18.0, True, True, 1.0),
    ]


def test_what_is_usual_has_one_note(small: Path) -> None:
    digest = scored_run(small)
    assert digest.public.notes == (
        "miniature data (kvasir_vqa_x1): a demonstration, not a benchmark result",
        f"not judged: {SMALL}",
    )
    assert digest.complete == {SMALL: True}
    assert (digest.blind, digest.public.mini) == (False, True)


def test_a_limit_and_a_blind_run_are_noted(tmp_path: Path, small: Path) -> None:
    digest = scored_run(write_run_of(tmp_path, GUESS, [SMALL], limit=5, blind=True))
    assert {"run with --limit: 5 of 37 documents", "blind: prompts without media"} <= {
        *digest.public.notes
    }
    assert digest.complete == {SMALL: False}
    assert " --limit 5 " in digest.public.commands[-1]
    assert digest.blind
    assert digest.model == scored_run(small).model


def test_a_stream_that_a_limit_cut_is_in_no_score_and_no_signature(tmp_path: Path) -> None:
    task = "medstreambench_future_streaming"
    digest = scored_run(write_run_of(tmp_path, GUESS, [task], limit=7))
    entry = digest.entries[task]
    assert len(entry.items) == len(entry.statistics("content")) == entry.scores.items == 1
    assert (
        "streaming items not scored because not all of their rounds were asked: 1"
        in digest.public.notes
    )
    assert parse_signature(entry.signatures["content"])["items"].startswith("3-")


def test_a_run_on_a_release_has_no_note_of_miniature_data(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, GUESS, ["mi_cxr_icr"], mini=False)
    release = {"fingerprint": "a" * 64, "records": 5711}
    edit_json(folder / "manifest.json", lambda it: it["data"]["mi_cxr"].update(release))
    digest = scored_run(folder)
    assert [note[:23] for note in digest.public.notes] == ["Documents not verified:"]
    assert digest.public.commands[0].startswith("medtasks prepare mi_cxr ")
    assert digest.public.commands[1].startswith("lmms-eval --model medtasks_vlm ")


def test_a_rescored_run_says_so(small: Path, tmp_path: Path) -> None:
    again = scored_record(*read_run(small), own=True, whole=True)
    folder = write_run(tmp_path / "x_medtasks", again.rescored)
    digest = scored_run(folder)
    assert any(note.startswith("rescored: run with medtasks ") for note in digest.public.notes)
    assert digest.public.commands[-1] == "medtasks score x_medtasks --out NEW_DIR"
    assert digest.entries[SMALL].signatures == scored_run(small).entries[SMALL].signatures


def test_unjudged_responses_are_counted(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(shared_runs()["Careful-7B"], tmp_path / "run_medtasks"))
    unjudged = {"timeout at /srv/judge": 2}
    edit_json(
        folder / "manifest.json", lambda it: it["judge"]["med_cmr_open"].update(unjudged=unjudged)
    )
    facts = scored_run(folder).public
    assert any(
        note.startswith("med_cmr_open: 2 of ") and note.endswith("(timeout at judge: 2)")
        for note in facts.notes
    )
    assert "medtasks judge run_medtasks --rubric med_cmr_open --judge" in "\n".join(facts.commands)


def test_facts_hold_no_path_of_a_machine_and_no_key(tmp_path: Path) -> None:
    run = make_run(GUESS, [SMALL])
    secret = "sk-abcdefghijklmnopqrstuvwx"
    manifest = run.manifest.model_copy(
        update={
            "model": {**run.manifest.model, "pretrained": "/srv/weights/mine", "api_key": secret},
            "settings": {
                **run.manifest.settings,
                "model_args": f"pretrained=/srv/weights/mine,api_key={secret},device=cuda",
                "system_instruction": f"Read /srv/prompt.txt, {secret}",
            },
        }
    )
    digest = scored_run(
        write_run(tmp_path / "r_medtasks", RunRecord(manifest, run.samples, run.tasks, run.groups))
    )
    told = digest.public.model_dump_json()
    assert "/srv" not in told
    assert str(tmp_path) not in told
    assert secret not in told
    assert digest.public.model_facts["name"] == "mine"
    assert "--model_args pretrained=mine,api_key=…,device=cuda" in digest.public.commands[
        -1
    ].replace("'", "")


def test_facts_are_those_of_the_manifest(small: Path) -> None:
    manifest, _ = read_run(small)
    facts = scored_run(small).public
    task = manifest.tasks[SMALL]
    assert facts.protocols == {SMALL: task.protocol_hash}
    assert facts.prompts == {SMALL: load_spec(SMALL).prompt_hash}
    assert facts.data == {"kvasir_vqa_x1": manifest.data["kvasir_vqa_x1"].fingerprint}
    assert facts.counts[SMALL]["asked"] == facts.counts[SMALL]["answered"] == 37
    assert facts.folder == small.name
    assert facts.digest == RunFolder(small).content
    (command,) = facts.commands
    assert command == (
        "MEDTASKS_DATA=mini lmms-eval --model medtasks_vlm --model_args pretrained=invented/Guess-1B,device=cuda "
        f"--tasks {SMALL} --batch_size 1 --output_path results"
    )


# -------------------------------------------------------------------------------------------
# folders that do not fit


MANIFEST, SAMPLES = "manifest.json", f"samples/{SMALL}.jsonl"


def on_another_benchmark(manifest: Any) -> None:
    manifest["data"]["mine"] = manifest["data"]["kvasir_vqa_x1"]
    manifest["tasks"][SMALL]["benchmark"] = "mine"


def created(time: str) -> Callable[[Any], None]:
    return lambda manifest: manifest.update(created=time)


EDITS: list[tuple[str, Callable[[Any], None], str]] = [
    (SAMPLES, lambda it: it.update(responses=[]), "field `responses` has 0 entries, expected 1"),
    (
        SAMPLES,
        lambda it: it.update(responses=[it["target"]] * 25),
        "field `responses` has 25 entries, expected 1",
    ),
    (SAMPLES, lambda it: it.update(failed=["x", "y"]), "field `failed` has 2 entries, expected 1"),
    (
        MANIFEST,
        on_another_benchmark,
        f"`tasks.{SMALL}.benchmark` is 'mine', expected 'kvasir_vqa_x1'",
    ),
    (MANIFEST, lambda it: it.update(tasks={}), "field `tasks` names none"),
    (MANIFEST, lambda it: it["groups"].update(mi_cxr=[]), "field `groups.mi_cxr` names no task"),
    (
        MANIFEST,
        lambda it: it["groups"].update(mi_cxr=["mi_cxr_icr"]),
        "`groups.mi_cxr` names mi_cxr_icr, which is not",
    ),
    *(
        (MANIFEST, created(time), f"field `created` is {time!r}, expected a time with its offset")
        for time in ("yesterday", "", "2026-11-01T10:00:00", "0001-01-01T00:00:00+09:00")
    ),
    *(
        (MANIFEST, created(time), f"field `created` is {time!r}, in the future")
        for time in (
            "9999-12-31T00:00:00+00:00",
            (datetime.now(timezone.utc) + timedelta(days=30)).isoformat(),
        )
    ),
]


@pytest.mark.parametrize(
    ("name", "edit", "message"), EDITS, ids=range(len(EDITS))
)  # one has the time of today
def test_a_directory_that_contradicts_itself_is_refused(
    copy: Path, name: str, edit: Callable[[Any], None], message: str
) -> None:
    edit_json(copy / name, edit, None if name == MANIFEST else 0)
    digests, (refused,) = collect([copy])
    assert digests == []
    assert message in refused.reason
    assert codes(check(copy)) == {"LB102"}


def without_texts(line: str) -> str:
    return json.dumps({**json.loads(line), "prompt": "", "responses": []}) + "\n"


@pytest.mark.parametrize("part", [run_tables.PART_SIZE, 5])
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            lambda lines: lines[1:],
            r"36 samples, expected 37, the sum of `answered` and `failed` of",
        ),
        (lambda lines: [*lines[1:], lines[1]], "is duplicated"),
        (
            lambda lines: [*lines[:5], *map(without_texts, lines[5:10]), *lines[10:]],
            "`responses` has 0 entries",
        ),
        (None, "missing, although the manifest names the task"),
    ],
)
def test_samples_that_do_not_fit_are_refused(
    copy: Path,
    broken: Callable[[list[str]], list[str]] | None,
    message: str,
    part: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_tables, "PART_SIZE", part)
    path = copy / "samples" / f"{SMALL}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.unlink()
    if broken is not None:
        path.write_text("".join(broken(lines)), encoding="utf-8")
    with pytest.raises(MedtasksError, match=message):
        scored_run(copy)


def test_tasks_that_the_manifest_does_not_name_are_refused(copy: Path) -> None:
    (copy / "samples" / "mi_cxr_icr.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(
        MedtasksError, match=r"samples/mi_cxr_icr\.jsonl: of no task that the manifest names"
    ):
        scored_run(copy)


def test_tasks_of_packages_that_are_not_there_are_left_out_and_named(copy: Path) -> None:
    add_strangers(copy, SMALL)
    edit_json(
        copy / "manifest.json", lambda held: held["groups"].update(nobodys=["nobodys_task", SMALL])
    )
    digest = scored_run(copy)
    assert list(digest.entries) == [SMALL]
    assert list(digest.public.data) == ["kvasir_vqa_x1"]
    assert [note for note in digest.public.notes if "no installed package" in note] == [
        "left out, because no installed package has the task: nobodys",
        "left out, because no installed package has the task: nobodys_task",
    ]


def test_arguments_may_be_a_mapping(copy: Path) -> None:
    arguments = {"pretrained": "/srv/weights/mine", "api_key": "abc"}
    edit_json(copy / "manifest.json", lambda held: held["settings"].update(model_args=arguments))
    digest = scored_run(copy)
    assert digest.public.settings["model_args"] == '{"api_key": "…", "pretrained": "mine"}'
    assert "--model_args pretrained=mine,api_key=…" in digest.public.commands[-1].replace("'", "")
