"""What every command says of paths that are not what it expects, and that ``--json`` is one JSON
document.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import load_spec
from medtasks.metrics.registry import get_metric

JUDGE = ("--judge", "model=m,base_url=http://127.0.0.1:9/v1")
OF_RESULTS = {
    "score": (),
    "judge": JUDGE,
    "compare": ("{}",),
    "plan": (),
    "leaderboard build": ("--out", "page"),
    "leaderboard check": (),
    "leaderboard strip": ("--out", "stripped"),
    "export inspect": ("--out", "logs"),
    "view": ("--no-browser",),
}
"""Commands that read results, and what they need beside the path."""


def typed(command: str, path: str) -> list[str]:
    first = ["mi_cxr", "--pilot", path] if command == "plan" else [path]
    return [*command.split(), *first, *(one.format(path) for one in OF_RESULTS[command])]


@pytest.mark.parametrize("command", OF_RESULTS)
def test_a_path_without_results_is_wrong_usage(medtasks: Any, command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("{}")
    said = {
        "empty": "contains no result directory",
        "file": "is a file",
        "nowhere": "no such directory",
    }
    for name, why in said.items():
        if (command, name) == ("score", "file"):  # a file of predictions
            continue
        if (command, name) == ("view", "empty"):  # it waits for a run
            continue
        done = medtasks(*typed(command, name))
        assert (done.returncode, done.stdout) == (2, ""), name
        assert name in done.stderr
        assert why in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_directory_that_cannot_be_read_is_not_missing(
    medtasks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = os.scandir

    def scandir(path: Any = ".") -> Any:
        if str(path) == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    (tmp_path / "closed").mkdir()
    monkeypatch.setattr("os.scandir", scandir)
    for command in ("score", "judge", "compare", "leaderboard build", "leaderboard check", "view"):
        done = medtasks(*typed(command, "closed"))
        assert done.returncode == 2, command
        assert "closed: cannot be listed (Permission denied)" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("show",), ("plan",), ("validate",), ("score", "p.csv", "--task")]
)
def test_unknown_tasks_get_a_suggestion(
    medtasks: Any, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text("sample_id,response\nx,A\n")
    done = medtasks(*arguments, "mi_cxr_ic")
    assert done.returncode == 2
    assert "did you mean 'mi_cxr_icr'?" in done.stderr


def test_an_empty_yaml_file_is_empty(medtasks: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    assert (
        "empty.yaml: is empty, expected" in medtasks("judge", ".", "--judge", "empty.yaml").stderr
    )
    *table, counts = medtasks("validate", "empty.yaml").stdout.splitlines()
    assert "the file is empty, expected" in table[-1]
    assert counts == "1 task file: 1 error, 0 warnings, 0 notes"


def test_score_on_a_narrow_terminal_keeps_intervals_and_the_order_of_tasks(
    medtasks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = ("kvasir_vqa_x1_level1", "kvasir_vqa_x1_level2", "kvasir_vqa_x1_level3")
    lines = [f"{one['sample_id']},a polyp" for task in tasks for one in task_documents(task)]
    (tmp_path / "p.csv").write_text("\n".join(["sample_id,response", *lines]))
    medtasks("score", "p.csv", "--task", "kvasir_vqa_x1", "--out", "run_medtasks")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    printed = re.sub("\x1b\\[[0-9;]*m", "", medtasks("score", "run_medtasks").stdout)
    _, _, tables = printed.partition("\nDiagnostics\n")
    diagnostics, _, levels = tables.partition("\nComplexity levels\n")
    assert [line.split()[0] for line in diagnostics.splitlines() if line.startswith("kvasir")] == [
        "kvasir_vqa_x1",
        *tasks,
    ]
    assert "95 % interval" in levels.splitlines()[0]
    assert all(len(line) <= 80 for line in tables.splitlines() if line.startswith("kvasir"))


def test_json_is_one_document_and_findings_have_one_form(medtasks: Any, tmp_path: Path) -> None:
    lines = [
        json.dumps({"sample_id": one["sample_id"], "response": "A"})
        for one in task_documents("mi_cxr_icr")
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    run = "run_medtasks"
    medtasks("score", "p.jsonl", "--task", "mi_cxr_icr", "--out", run)
    (tmp_path / "wrong.yaml").write_text("tag: x\n")
    commands = {
        "list": ["list"],
        "show": ["show", "mi_cxr_icr"],
        "plan": ["plan", "mi_cxr_icr", "--pilot", run],
        "score": ["score", run],
        "compare": ["compare", run, run],
        "validate": ["validate", "wrong.yaml"],
        "check": ["leaderboard", "check", run],
    }
    printed = {}
    for name, arguments in commands.items():
        done = medtasks(*arguments, "--json")
        printed[name] = json.loads(done.stdout)
    assert printed["score"]["tasks"]["mi_cxr_icr"]["metrics"]["accuracy"]["value"] is not None
    assert printed["compare"]["lines"][0]["pair"]["difference"] == 0
    assert printed["check"]["folders"] == [run]
    findings = [*printed["check"]["findings"], *printed["validate"]["tasks"]]
    assert {one["code"][:2] for one in findings} == {"LB", "MT"}
    fields = ["severity", "check", "where", "message", "code", "file", "line", "field"]
    assert all([*one] in (fields, [*fields, "submission"]) for one in findings)


def test_an_installed_task_file_is_checked_as_if_it_had_been_named(
    medtasks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def codes() -> list[str]:
        found = json.loads(medtasks("validate", str(load_spec("mi_cxr_icr").path), "--json").stdout)
        return [one["code"] for one in found["tasks"] if one["code"].startswith("MT5")]

    assert codes() == []
    monkeypatch.setattr(type(get_metric("accuracy")), "statistics", lambda *_: np.array([1.0, 1.0]))
    assert codes() != []  # how its scores behave


@pytest.mark.slow
@pytest.mark.parametrize("named", ["beside.function", "antigravity.webbrowser"])
def test_a_task_file_imports_installed_packages_only(
    python: Any, tmp_path: Path, named: str
) -> None:
    (tmp_path / "beside.py").write_text("open('imported', 'w').close()\ndef function(): pass\n")
    task = tmp_path / "tasks" / "foreign" / "foreign_task.yaml"
    task.parent.mkdir(parents=True)
    installed = load_spec("mi_cxr_icr").path
    text = installed.read_text(encoding="utf-8") + f"process_results: !function {named}\n"
    task.write_text(text.replace("include: ", f"include: {installed.parent}/"), encoding="utf-8")
    done = python(
        "-m", "medtasks", "validate", "--quick", "--json", str(task), MEDTASKS_DATA="mini"
    )
    assert done.stderr.startswith(
        "medtasks: importing what the files name, from installed packages only\n"
    )
    (found,) = (one for one in json.loads(done.stdout)["tasks"] if one["code"] == "MT120")
    assert f"no installed package has a module '{named.partition('.')[0]}'" in found["message"]
    assert not (tmp_path / "imported").exists()
