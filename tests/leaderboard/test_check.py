"""The submission check: a clean folder passes, and each thing that must not be submitted is found
and named.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import medtasks.leaderboard
import pytest
import yaml
from forged_runs import RELEASE
from invented_runs import MODELS, Invented, edit_json, make_run, write_run_of
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.intake.check import CheckReport, check_results
from medtasks.leaderboard.intake.check_run import check_run
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.intake.rules import RULES
from medtasks.leaderboard.intake.submission import Requirements, Submission
from medtasks.leaderboard.rank.apart import MINIATURE
from medtasks.leaderboard.verify.scored_run import scored_run

from medtasks.core.errors import MedtasksError
from medtasks.core.findings import as_rows, failed
from medtasks.scoring.run_folder import read_run, write_run
from medtasks.scoring.run_record import RunRecord

NOISY = MODELS[1]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that claim to be on a release: one that is fine, one of withheld rows, one that was not
    judged.
    """
    root = tmp_path_factory.mktemp("runs")
    groups = {
        "clean": ["med_cmr_mcq"],
        "withheld": ["mi_cxr", "mi_cxr_report"],
        "unjudged": ["med_cmr_open"],
    }
    return {
        name: write_run_of(root / name, NOISY, tasks, mini=False) for name, tasks in groups.items()
    }


@pytest.fixture
def copy(written: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of the runs, which a test may spoil."""
    return lambda name: Path(
        shutil.copytree(written[name], tmp_path / "submitted" / "20261101_000000_medtasks")
    )


def check(*folders: Path, **options: Any) -> CheckReport:
    """The check of a repository that takes any share of a release: the miniatures claim to be
    one.
    """
    required = {"coverage": 0.0}
    for name in ("coverage", "demonstration", "public"):
        if name in options:
            required[name] = options.pop(name)
    return check_results(folders, Requirements(**required), **{"environment": {}, **options})


def codes(report: CheckReport, severity: str | None = None) -> list[str]:
    return sorted({one.code for one in report.findings if severity in (None, one.severity)})


def only(report: CheckReport, code: str) -> Any:
    found = [one for one in report.findings if one.code == code]
    assert found, [one.message for one in report.findings]
    return found[0]


def test_a_whole_comparable_run_has_no_finding(written: dict[str, Path]) -> None:
    report = check(written["clean"])
    assert report.findings == ()
    assert report.folders == (str(written["clean"]),)
    assert not failed(report.findings, strict=True)


@pytest.mark.parametrize(
    ("options", "code", "found"),
    [({"limit": 2}, "LB201", "--limit 2"), ({"subset": "0.5@0"}, "LB201", "the subset 0.5@0 (in 7 tasks)"),
     ({"mini": True}, "LB202", ""), ({"generation": {"temperature": 0.7}}, "LB203", ""),
     ({"blind": True}, "LB206", "prompts were sent without media (in 7 tasks)")],
)  # fmt: skip
def test_runs_that_are_not_comparable(
    options: dict[str, Any], code: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What all tasks have in common is one finding."""
    monkeypatch.setenv("MEDTASKS_SUBSET", options.pop("subset", ""))
    folder = write_run_of(tmp_path, NOISY, ["med_cmr_mcq"], **{"mini": False, **options})
    report = check(folder)
    assert {*codes(report)} - {"LB401"} == {
        code
    }  # a subset's documents are not those of miniature data
    said = [one.message for one in report.findings if one.code == code]
    assert not found or [found in message for message in said] == [True]
    assert failed(report.findings) is (RULES[code].severity == "error")
    assert code != "LB202" or check(folder, demonstration=True).findings == ()


def test_a_protocol_hash_that_its_own_settings_deny_and_a_hidden_field_in_a_prompt(
    copy: Callable[[str], Path],
) -> None:
    folder, task = copy("clean"), "med_cmr_mcq_su"
    edit_json(
        folder / "manifest.json",
        lambda it: it["tasks"][task]["generation"].update(max_new_tokens=9),
    )

    def leak(sample: Any) -> None:
        sample["document"]["visual_description"] = "A calcified focus lies in the left upper pole."
        sample["prompt"] += "\nHint: a calcified  focus lies in the left upper pole."

    edit_json(folder / "samples" / f"{task}.jsonl", leak, 1)
    report = check(folder)
    found = only(report, "LB203")
    assert found.field == f"tasks.{task}.protocol_hash"
    assert "'max_new_tokens': 9" in found.message
    found = only(report, "LB303")
    assert (found.field, found.line, found.severity) == ("visual_description", 2, "error")


@pytest.mark.parametrize(
    ("data", "told"),
    [({"excluded": {"missing_image": 2000}, "records": 18654}, "18,654 of the release's 20,654 records (90.3%)"),
     ({"records": 654}, "654 of the release's 20,654 records (3.2%)"),
     ({"coverage": [{"source": "one", "task": "med_cmr_mcq_su", "prepared": 300, "records": 336},
                    {"source": "one", "task": "med_cmr_open_su", "prepared": 0, "records": 20318}]},
      "300 of the release's 336 records (89.3%)"),
     ({"coverage": [{"source": "one", "task": "med_cmr_mcq_su", "prepared": 6, "records": 6}], "records": 6},
      "6 of the release's 20,654 records (0.0%)")],
    ids=["excluded", "fewer-than-published", "by-task", "by-task-of-a-small-source"],
)  # fmt: skip
def test_coverage_below_the_threshold(
    data: dict[str, Any], told: str, copy: Callable[[str], Path]
) -> None:
    folder = copy("clean")
    edit_json(
        folder / "manifest.json", lambda it: it["data"]["med_cmr"].update({**RELEASE, **data})
    )
    assert (
        f"{told}, expected 95% or more"
        in only(check(folder, coverage=0.95, rescore=False), "LB204").message
    )
    assert "LB204" not in codes(check(folder, rescore=False))


def test_fewer_items_than_were_published(copy: Callable[[str], Path], tmp_path: Path) -> None:
    """The data are said to be whole, but the tasks are not: the run's own counts agree with each
    other.
    """
    folder = copy("clean")
    edit_json(folder / "manifest.json", lambda it: it["data"]["med_cmr"].update(RELEASE))
    # of MI-CXR's ICR variant the paper says 400 questions, and prints fractions of 183; there is
    # nothing to expect
    whole = write_run_of(tmp_path / "whole", NOISY, ["mi_cxr_icr_variant"], mini=False)
    edit_json(
        whole / "manifest.json",
        lambda it: it["data"]["mi_cxr"].update(fingerprint="a" * 64, records=183),
    )
    report = check(folder, whole, coverage=0.95, rescore=False)
    found = {one.where: one.message for one in report.findings if one.code == "LB204"}
    assert "5 items, 1.3% of the published number" in found["med_cmr_mcq_su"]
    assert {*found} == {name for name in found if name.startswith("med_cmr_mcq")}


def test_a_group_without_one_of_its_tasks_is_named(copy: Callable[[str], Path]) -> None:
    """A release may have no rows of a task, which is then never run."""
    folder, task = copy("clean"), "med_cmr_mcq_su"
    (folder / "samples" / f"{task}.jsonl").unlink()

    def remove(manifest: Any) -> None:
        del manifest["tasks"][task]
        manifest["groups"]["med_cmr_mcq"].remove(task)

    edit_json(folder / "manifest.json", remove)
    report = check(folder, rescore=False)
    assert codes(report) == ["LB208"]
    assert "the group lacks med_cmr_mcq_su" in only(report, "LB208").message
    edit_json(folder / "manifest.json", lambda it: it["data"]["med_cmr"].update(RELEASE))
    few = {
        one.where
        for one in check(folder, coverage=0.95, rescore=False).findings
        if one.code == "LB204"
    }
    assert few
    assert "med_cmr_mcq" not in few


def test_miniature_data_prepared_like_a_release_are_known(written: dict[str, Path]) -> None:
    assert codes(check(written["clean"], coverage=0.95)) == ["LB202"]
    assert check(written["clean"], coverage=0.95, demonstration=True).findings == ()
    digests, _ = collect([written["clean"]])
    (found,) = build_board(digests, title="Board").benchmarks
    assert (found.rankings, {one.reasons for one in found.tables[0].apart}) == ((), {(MINIATURE,)})


def test_a_benchmark_that_rests_on_a_judge_must_be_judged(written: dict[str, Path]) -> None:
    """Too few verdicts are named whatever threshold the run was judged with."""
    folder, group = written["unjudged"], "med_cmr_open"
    found = [one for one in check(folder).findings if one.code == "LB205"]
    assert {(one.where, one.field) for one in found if one.severity == "error"} == {
        (group, "open_total")
    }
    assert "med_cmr_open_su" in {one.where for one in found if one.severity == "warning"}
    run = scored_run(folder)
    scores = run.record.groups[group]
    for judged, said in ((scores.items * 2 // 3, True), (scores.items, False)):
        told = {"value": 1.0, "judged": judged, "bounds": (0.66, 1.0), "incomplete": False}
        metrics = {name: score.model_copy(update=told) for name, score in scores.metrics.items()}
        groups = {group: scores.model_copy(update={"metrics": metrics})}
        changed = replace(run, record=replace(run.record, groups=groups))
        submitted = Submission(folder, "x", *read_run(folder), changed, Requirements())
        found = check_run(submitted, learned=False)
        assert (("LB205", group) in {(one.code, one.where) for one in found}) is said


@pytest.mark.parametrize(
    "secret",
    ["sk-abcdefghijklmnop1234", "hf_abcdefghijklmnopqrst", "Bearer abcdefghij.klmnopqrst", "ghp_abcdefghijklmnopqrstuv",
     "AKIAABCDEFGHIJKLMNOP", "-----BEGIN RSA PRIVATE KEY-----", "api_key=0123456789abcdef", "vault-value-42"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["manifest", "response", "file"])
def test_keys_are_found_in_any_file_and_never_repeated(
    secret: str, where: str, tmp_path: Path
) -> None:
    folder = tmp_path / "20261101_000000_medtasks"
    (folder / "samples").mkdir(parents=True)
    file = {"manifest": "manifest.json", "response": "samples/x.jsonl", "file": "harness.log"}[
        where
    ]
    (folder / file).write_text(
        json.dumps({"responses": [f"x {secret} y"]}) + "\n", encoding="utf-8"
    )
    found = only(
        check(folder, environment={"VAULT_TOKEN": "vault-value-42", "PATH": "x "}), "LB301"
    )
    assert (Path(found.file).name, found.line) == (Path(file).name, 1)
    assert secret not in found.message


PATHS = ["/home/anna/x", "~/models/x", "pretrained=/mnt/x/y,device=cuda", r"C:\models\x", "file:///x/y", "/any/x",
         "a /b/c"]  # fmt: skip
TEXTS = [
    "lab/Model-7B",
    "and/or",
    "score of 0/1",
    "https://example.org/a/b",
    "s/p",
    "/no_think",
    "a: b/c",
    "~ 5",
]
NO_KEYS = [
    "task-specific-prompts-of-this-benchmark",
    "hf_x",
    "risk-adjusted-mortality-rates",
    "api_key_env",
]


def test_paths_of_a_machine_and_what_only_looks_like_one(copy: Callable[[str], Path]) -> None:
    folder = copy("clean")
    settings = {f"path{n}": path for n, path in enumerate(PATHS)}
    settings |= {f"text{n}": text for n, text in enumerate([*TEXTS, *NO_KEYS])} | {"/srv/a/b": 1}
    edit_json(folder / "manifest.json", lambda it: it["settings"].update(settings))
    # what the model said is no path, but a medium is
    lines = folder / "samples" / "med_cmr_mcq_su.jsonl"
    edit_json(lines, lambda it: it.update(media=["/home/anna/images/x.png"]), 0)
    found = [
        one for one in check(folder).findings if one.code != "LB404"
    ]  # the data name another medium
    assert {one.code for one in found} == {"LB302"}
    expected = {
        *((f"settings.path{n}", None) for n in range(len(PATHS))),
        ("settings", None),
        ("media", 1),
    }
    assert {(one.field, one.line) for one in found} == expected


def test_files_that_are_no_runs(copy: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copy("clean")
    (folder / "samples" / "image.png").write_bytes(b"\x89PNG")
    (folder.parent / "beside.jpg").write_bytes(b"x")
    (folder / "linked.json").symlink_to(tmp_path)
    report = check(folder.parent)
    found = sorted((Path(one.file).name, one.code) for one in report.findings)
    assert found == [("beside.jpg", "LB103"), ("image.png", "LB103"), ("linked.json", "LB104")]
    # a link to a run is no run
    (folder.parent / "other_medtasks").symlink_to(folder.rename(tmp_path / "elsewhere_medtasks"))
    report = check(folder.parent)
    assert codes(report) == ["LB101", "LB103", "LB104"]
    assert Path(only(report, "LB104").file).name == "other_medtasks"


def test_a_folder_without_a_run_and_one_that_is_broken_hide_no_other(
    written: dict[str, Path], copy: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    folder = copy("clean")
    (folder / "samples" / "med_cmr_mcq_su.jsonl").write_text("{\n")
    report = check(tmp_path / "empty", folder, written["unjudged"])
    assert codes(report) == ["LB101", "LB102", "LB205"]
    assert len(report.folders) == 2
    message = only(report, "LB102").message
    assert "med_cmr_mcq_su.jsonl, line 1" in message
    assert message.endswith("; restore it.")  # and no second fix behind it


def test_other_data_than_most_runs_have(
    written: dict[str, Path], copy: Callable[[str], Path], tmp_path: Path
) -> None:
    third = Path(shutil.copytree(written["clean"], tmp_path / "third" / "20261101_000000_medtasks"))
    other = copy("clean")
    edit_json(
        other / "manifest.json", lambda it: it["data"]["med_cmr"].update(fingerprint="f" * 64)
    )
    report = check(written["clean"], third, other, rescore=False)
    assert [(one.code, Path(one.file).parent) for one in report.findings] == [
        ("LB402", other),
        ("LB209", other),
    ]


def test_rows_that_must_not_be_shared(
    written: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written["withheld"])
    report = check(written["withheld"])
    assert codes(report, "error") == ["LB304"]
    assert "PhysioNet" in only(report, "LB304").message
    rows: Sequence[tuple[str, ...]] = as_rows(report.findings)
    assert rows[0][:2] == ("error", "LB304")
    assert all(one.code in RULES and ", expected " in one.message for one in report.findings)
    public = check(written["withheld"], public=False)
    assert codes(public, "warning") == ["LB304"]
    assert not failed(public.findings)


def test_stripped_runs_keep_their_scores_and_nothing_else(
    written: dict[str, Path], tmp_path: Path
) -> None:
    folder = remove_rows(written["withheld"], tmp_path / "20261101_000000_medtasks")
    before, samples = read_run(written["withheld"])
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.json*")))
    for sample in [one for members in samples.values() for one in members]:
        hidden = [sample.document["question"], sample.prompt, sample.cluster, *sample.media]
        hidden += [
            one
            for one in (*sample.document.get("choices", {}).values(), sample.target)
            if len(one) > 1
        ]
        assert not [one for one in hidden if json.dumps(one)[1:-1] in text]
    assert (folder / "scores.json").read_bytes() == (
        written["withheld"] / "scores.json"
    ).read_bytes()
    assert read_run(folder)[0] == before
    report = check(folder)
    assert codes(report) == ["LB305"]
    assert "neither prompts nor responses (in 7 tasks)" in only(report, "LB305").message
    assert not failed(report.findings, strict=True)
    one, other = scored_run(written["withheld"]), scored_run(folder)
    assert {name: entry.signatures for name, entry in one.entries.items()} == {
        name: entry.signatures for name, entry in other.entries.items()
    }


def test_a_stripped_run_keeps_the_scores_of_its_confidences(tmp_path: Path) -> None:
    model = Invented("invented/Calibrated-7B", "calibrated", seed=1)
    run = make_run(model, ["mi_cxr_icr", "mi_cxr_icr_verbalised"])
    silent, sure = (run.samples[task] for task in ("mi_cxr_icr", "mi_cxr_icr_verbalised"))
    silent[0] = silent[0].model_copy(update={"probabilities": (None,)})  # counted by reason
    run = RunRecord.scored(run.manifest, run.samples)
    assert run.tasks["mi_cxr_icr"].metrics["ece"].value is not None
    whole = write_run(tmp_path / "whole_medtasks", run)
    folder = remove_rows(whole, tmp_path / "stripped_medtasks")
    assert (folder / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()
    text = "".join(path.read_text(encoding="utf-8") for path in (folder / "samples").glob("*"))
    assert '"probabilities"' not in text
    assert sure[0].responses[0] not in text
    assert codes(check(folder, demonstration=True)) == ["LB305"]
    # no question has all of its rotations, so none has a score, but their groups are counted
    whole = write_run_of(tmp_path, NOISY, ["mi_cxr_icr_circular"], limit=1)
    folder = remove_rows(whole, tmp_path / "one_rotation_medtasks")
    assert (folder / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()


def test_a_task_whose_scores_need_texts_is_left_out_and_named(tmp_path: Path) -> None:
    run = make_run(NOISY, ["mi_cxr"])
    told: list[str] = []
    run.samples["mi_cxr_icr"][0].document["qtype"] = "a type in words"
    run = RunRecord.scored(run.manifest, run.samples)
    whole = write_run(tmp_path / "whole_medtasks", run)
    folder = remove_rows(whole, tmp_path / "stripped_medtasks", told.append)
    assert told[0] == (
        "left out: mi_cxr_icr, because its scores depend on the field `qtype`, which is text ('a type in words')"
    )
    assert "left out: mi_cxr, because one of its tasks is" in told
    kept = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    assert {*kept["tasks"]} == {*run.manifest.tasks} - {"mi_cxr_icr"}
    expected = {
        name: one.model_dump(mode="json")
        for name, one in run.tasks.items()
        if name in kept["tasks"]
    }
    assert kept["tasks"] == expected


def test_a_place_that_cannot_be_written_is_one_sentence(
    written: dict[str, Path], tmp_path: Path, medtasks: Callable[..., Any]
) -> None:
    (tmp_path / "file").write_text("")
    done = medtasks(
        "leaderboard",
        "strip",
        str(written["clean"]),
        "--out",
        str(tmp_path / "file" / "new_medtasks"),
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"{tmp_path / 'file'}" in done.stderr
    assert "cannot be read or written (File exists)" in done.stderr


def test_only_withheld_rows_are_stripped(
    copy: Callable[[str], Path], written: dict[str, Path], tmp_path: Path
) -> None:
    path = copy("clean") / "samples" / "med_cmr_mcq_su.jsonl"
    for line in range(path.read_bytes().count(b"\n")):
        edit_json(path, lambda sample: sample.update(prompt="", responses=[]), line)
    assert only(check(path.parents[1]), "LB305").severity == "error"
    same = remove_rows(written["clean"], tmp_path / "same_medtasks")
    one, other = (folder / "samples" / path.name for folder in (same, written["clean"]))
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(MedtasksError, match="never overwritten"):
        remove_rows(written["clean"], same)


def test_the_ready_workflow_asks_for_little_and_runs_our_commands() -> None:
    path = Path(medtasks.leaderboard.__path__[0]) / "workflow" / "leaderboard.yml"
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    assert set(workflow[True]) == {
        "pull_request",
        "push",
        "workflow_dispatch",
    }  # YAML reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {
        "publish": {"pages": "write", "id-token": "write"}
    }
    assert "secrets." not in path.read_text(encoding="utf-8")
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(
        re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step
    )
    commands = [
        line
        for step in steps
        for line in step.get("run", "").split("\n")
        if "medtasks leaderboard" in line
    ]
    assert [line.split()[:3] for line in commands] == [
        ["medtasks", "leaderboard", "check"],
        ["medtasks", "leaderboard", "build"],
    ]
    # whoever opens a pull request writes what is in it: nothing of it may become part of a command
    assert not [
        step
        for step in steps
        if "github.event" in step.get("run", "") or "github.head" in step.get("run", "")
    ]


LOG = "20261101_000000_samples_{}.jsonl"
KEY = '{"model_args": "sk-abcdefghijklmnop1234"}'
UNFINISHED = "0123456789ab_unfinished"
BESIDE = {
    "files of the harness beside a run": (
        [LOG.format("med_cmr_mcq_su"), "20261101_000000_results.json", "models.yaml"], "{}", [],
    ),
    "a log without a run": (["alone/" + LOG.format("med_cmr_mcq_su")], "{}", ["LB103 error"]),
    "a log and replies of a withheld benchmark": (
        [LOG.format("mi_cxr_icr"), f"{UNFINISHED}/run.json", f"{UNFINISHED}/mi_cxr_icr.rank0.jsonl"],
        "{}", ["LB304 error", "LB304 error"],
    ),
    "a key in the results of the harness": (["20261101_000000_results.json"], KEY, ["LB301 error"]),
    "a key in a hidden file": ([".hidden/settings"], KEY, ["LB301 error"]),
    "what git keeps for itself": ([".git/config"], KEY, []),
}  # fmt: skip


@pytest.mark.parametrize(("files", "content", "expected"), BESIDE.values(), ids=BESIDE)
def test_files_beside_a_run(
    files: list[str], content: str, expected: list[str], copy: Callable[[str], Path]
) -> None:
    root = copy("clean").parent
    for name in files:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    report = check(root)
    assert sorted(f"{one.code} {one.severity}" for one in report.findings) == expected
    assert failed(report.findings, strict=True) is any("error" in one for one in expected)
    assert failed(check(root, public=False).findings) is bool(
        {"LB301 error", "LB103 error"} & {*expected}
    )
