"""The command line as a user meets it: output, exit codes, no tracebacks."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aligned import cells
from release_rows import write_med_cmr_archive, write_mini

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.contents import task_directory
from medtasks.catalog.spec import load_specs
from medtasks.cli.doctor import data_checks


def test_path_prints_the_task_folder(medtasks: Any) -> None:
    assert medtasks("path").stdout == f"{task_directory()}\n"


INTERRUPTED = """
import os, signal, sys, threading
from medtasks.cli.app import main
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.argv = ["medtasks", "demo", "--out", "demo"]
main()
"""


@pytest.mark.slow
def test_an_interrupted_command_ends_with_130_and_one_sentence(python: Any) -> None:
    done = python("-c", INTERRUPTED)
    assert done.returncode == 130
    assert (
        done.stderr.splitlines()[-1]
        == "medtasks: stopped; finished work is kept: run the same command again to continue"
    )
    assert "Traceback" not in done.stderr


def test_list_is_aligned_has_a_line_for_each_group_and_filters_by_name(medtasks: Any) -> None:
    header, *rows = medtasks("list", "--all").stdout.splitlines()
    assert header.split() == ["name", "title", "kind", "version", "package"]
    assert [cells(header, row)["name"] for row in rows] == list(load_specs())
    assert {cells(header, row)["kind"] for row in rows} >= {"task", "group: 6 tasks"}
    header, *rows, rest = medtasks("list").stdout.splitlines()
    names = [cells(header, row)["name"] for row in rows]
    assert {"med_cmr", "mi_cxr", "mi_cxr_circular"} < {*names}
    assert not {"mi_cxr_tel", "med_cmr_mcq"} & {*names}
    assert f"{len(load_specs()) - len(names)} tasks and groups are in these" in rest
    for pattern in ("cmr_open", "med_cmr_open*"):
        matching = [line.split()[0] for line in medtasks("list", pattern).stdout.splitlines()[1:]]
        assert matching == [name for name in load_specs() if "cmr_open" in name]
    unknown = medtasks("list", "mi_cxr_rapport")
    assert (unknown.returncode, "did you mean 'mi_cxr_report'?" in unknown.stderr) == (2, True)


def test_a_narrow_terminal_splits_neither_names_nor_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtasks.cli.console import table

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    name, note = (
        "kvasir_vqa_x1_transformed_level1",
        'pip install "medtasks[learned]", a very long sentence',
    )
    rows = [(name, "0.123 [0.100, 0.150]", note)]
    for width in (160, 100, 80, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        table(("task", "value", "note"), rows)
        shown = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
        assert shown.splitlines()[0].split() == (
            ["task", "value", "note"] if width > 60 else ["task", "value"]
        )
        assert ("not shown for lack of width: note" in shown) is (width == 60)
        assert all(len(line) <= width for line in shown.splitlines()), shown
        assert name in shown
        assert ("medtasks[learned]" in shown) is (width > 60)  # brackets are not markup
        assert "0.123 [0.100, 0.150]" in shown


def commands(command: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its name below ``medtasks``."""
    for child in command.commands.values():
        name = f"{above} {child.name}".strip()
        yield from commands(child, name) if hasattr(child, "commands") else [(name, child)]


def command_line() -> Any:
    import typer

    from medtasks.cli.app import app

    return typer.main.get_command(app)


def test_every_command_has_examples_and_no_python_types_in_its_help(medtasks: Any) -> None:
    assert medtasks("--version").stdout.startswith("medtasks ")
    for name, _ in commands(command_line()):
        shown = medtasks(*name.split(), "--help").stdout
        assert "Example" in shown, name
        assert "<str>" not in shown, name
        assert all(len(line) <= 80 for line in shown.partition("Example")[0].splitlines()), name


def test_every_option_has_a_help_and_every_example_fits_its_command() -> None:
    for name, command in commands(command_line()):
        assert None not in {param.help for param in command.params}, name
        for line in map(str.strip, command.epilog.splitlines()):
            if line.startswith("medtasks "):
                assert command.make_context(name, shlex.split(line)[1 + len(name.split()) :]), line


def test_the_reference_lists_the_commands() -> None:
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    listed = re.findall(
        r"^\| `medtasks (\w+)` \| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    whole = command_line()
    assert listed == [(name, command.short_help) for name, command in whole.commands.items()]


@pytest.mark.parametrize("terminal", [False, True])
def test_names_of_others_steer_neither_terminal_nor_log(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtasks.cli.console import fail, table

    evil = "evil\n::error::pwned\x1b[2J\tcol\x9b1m ##[group]"
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    table(("model", "why"), [(evil, "a"), (" ::warning::b", "c")])
    fail(f"{evil}: not read")
    shown = capsys.readouterr()
    lines = [*shown.out.splitlines(), *shown.err.splitlines()]
    assert not [line for line in lines if any(odd in line for odd in ("\x1b[2J", "\x9b", "##["))]
    assert not [line for line in lines if line.lstrip().startswith("::")]
    assert len(shown.err.splitlines()) == 1
    if not terminal:
        header, *rows = shown.out.splitlines()
        assert [cells(header, row)["why"] for row in rows] == ["a", "c"]


def test_show_renders_prompt_media_and_gold_answer(medtasks: Any) -> None:
    shown = medtasks("show", "mi_cxr_icr", "--doc", "1").stdout
    assert shown.count("<image: ") == 5
    assert (
        shown.index("<image: ")
        < shown.index("Question:")
        < shown.index("gold answer")
        < shown.index("task: mi_cxr_icr")
    )
    assert "prompt hash" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("score", "nowhere"), "nowhere: no such directory; give a result directory"),
        (("score", "p", "--from", "xml", "--task", "mi_cxr"), "unknown layout; choose from"),
        (("score", "p", "--from", "csv"), "--task is missing; give the task or group"),
        (("score", "p", "--task", "mi_cxr"), "p: no such file; give a file of predictions"),
        (("score", ".", "--task", "mi_cxr"), "are for prediction files; leave them out for a run"),
        (
            ("score", "p", "--from", "csv", "--task", "mi_cxr", "--column", "id"),
            "expected FIELD=COLUMN",
        ),
        (("show", "nope"), "task 'nope' is unknown"),
        (("show", "mi_cxr_icr", "--doc", "99"), "has 6 documents"),
        (("prepare", "kvasir_vqa_x1", "--source", "nowhere"), "no such file or directory"),
        (("prepare", "mi_cxr", "--rows", "x.jsonl", "--images", "nowhere"), "not a directory"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    medtasks: Any, arguments: tuple[str, ...], said: str
) -> None:
    done = medtasks(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_doctor_says_what_is_missing_and_the_command_for_it(python: Any) -> None:
    done = python("-m", "medtasks", "doctor", "--json", MEDTASKS_DATA="empty")
    checks = {check["what"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0
    assert checks["lmms-eval"]["state"] == checks["back-end medtasks_vlm"]["state"] == "ok"
    assert checks["back-end qwen2_5_vl"]["state"] in ("ok", "optional")
    assert checks["mi_cxr"]["state"] == "missing"
    assert checks["kvasir_vqa_x1"]["fix"] == "medtasks prepare kvasir_vqa_x1 --source hub"


def test_prepared_data_are_counted_beside_the_papers_and_their_gaps_named(
    medtasks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_mini("kvasir_vqa_x1", tmp_path / "source")
    data = {"MEDTASKS_DATA": str(tmp_path / "data")}
    refused = medtasks("prepare", "kvasir_vqa_x1_transformed", **data)
    assert refused.returncode == 1
    assert "run: medtasks prepare kvasir_vqa_x1 --source hub" in refused.stderr
    assert medtasks("prepare", "kvasir_vqa_x1", **data).returncode == 2
    done = medtasks("prepare", "kvasir_vqa_x1", "--source", "source", **data)
    assert done.returncode == 0, done.stderr
    assert "79 rows, 24 media files, 24 clusters" in done.stdout
    assert "differs: rows: 79 here, 16,022 published" in done.stdout
    done = medtasks("prepare", "kvasir_vqa_x1_transformed", "--variants", "2", **data)
    assert "prepared kvasir_vqa_x1_transformed: 79 rows, 72 media files, 24 clusters" in done.stdout

    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    checks = {check.what: check for check in data_checks()}
    for name in ("kvasir_vqa_x1", "kvasir_vqa_x1_transformed"):
        assert checks[name].state == "partly"
        assert checks[name].found.startswith("79 of 16,022 published rows")
        assert checks[name].fix.startswith(f"medtasks prepare {name}")

    (tmp_path / "source" / "images" / "mini0003.jpg").unlink()
    done = medtasks("validate", "kvasir_vqa_x1", "--quick", **data)
    assert done.returncode == 1
    assert done.stdout.endswith(
        "task files and the data of kvasir_vqa_x1: 1 error, 0 warnings, 0 notes\n"
    )
    assert "mini0003.jpg" in done.stdout
    assert "missing or changed since the data were prepared" in done.stdout


@pytest.mark.slow
def test_a_bad_row_stops_and_a_release_without_rows_of_a_task_is_valid(
    medtasks: Any, tmp_path: Path
) -> None:
    write_mini("mi_cxr", tmp_path / "source")
    rows = tmp_path / "source" / "micxr_test.jsonl"
    lines = rows.read_text(encoding="utf-8").splitlines()
    command, data = (
        ("prepare", "mi_cxr", "--rows", str(rows), "--images", "source"),
        {"MEDTASKS_DATA": "data"},
    )
    bad = json.dumps({**json.loads(lines[2]), "qtype": "guess_the_age"})
    rows.write_text("\n".join([*lines[:2], bad, *lines[3:]]), encoding="utf-8")
    done = medtasks(*command, **data)
    assert done.returncode == 1
    assert "micxr_test.jsonl, line 3: field `qtype` is 'guess_the_age'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "mi_cxr").exists()
    rows.write_text(
        "\n".join(line for line in lines if "icr_variant" not in line), encoding="utf-8"
    )
    assert medtasks(*command, **data).returncode == 0
    done = medtasks("validate", "mi_cxr", "--quick", **data)
    assert done.returncode == 0, done.stdout
    assert "mi_cxr_icr_variant" in done.stdout


def test_importing_medtasks_stays_light(python: Any) -> None:
    heavy = ("torch", "transformers", "datasets", "lmms_eval", "openai")
    modules = "medtasks.cli.app, medtasks.judge.judge_run"
    code = f"import sys, {modules}; print([name for name in {heavy} if name in sys.modules])"
    assert python("-c", code).stdout == "[]\n"


def test_validate_without_data_says_how_to_get_them(medtasks: Any, tmp_path: Path) -> None:
    done = medtasks("validate", MEDTASKS_DATA=str(tmp_path / "none"))
    assert done.returncode == 1
    assert "no benchmark is prepared" in done.stderr
    done = medtasks("validate", "med_cmr", MEDTASKS_DATA=str(tmp_path / "none"))
    assert "run: medtasks prepare med_cmr --source hub" in done.stderr


def test_another_med_cmr_archive_is_taken_only_when_said(medtasks: Any, tmp_path: Path) -> None:
    write_med_cmr_archive(tmp_path / "dataset.zip")
    command, data = (
        ("prepare", "med_cmr", "--source", "dataset.zip"),
        {"MEDTASKS_DATA": str(tmp_path / "data")},
    )
    refused = medtasks(*command, **data)
    assert refused.returncode == 1
    assert "is not the published archive" in refused.stderr
    done = medtasks(*command, "--allow-other-archive", **data)
    assert done.returncode == 0, done.stderr
    assert "differs: mcq_ltg: 13 (30.2%) here, 11,582 (69.5%) published" in done.stdout
    assert "noted: rows whose options carry their own letter: 2" in done.stdout


@pytest.mark.slow
def test_score_reads_predictions_made_elsewhere_and_its_own_folders(
    medtasks: Any, tmp_path: Path
) -> None:
    documents = task_documents("mi_cxr_icr")
    lines = [
        f'{document["sample_id"]},"The answer is {document["target"]}."'
        for document in documents[:-1]
    ]
    (tmp_path / "p.csv").write_text(
        "id,said\n" + "\n".join([*lines, "stranger,A"]), encoding="utf-8"
    )
    columns = ("--column", "sample_id=id", "--column", "response=said")
    done = medtasks(
        "score", "p.csv", "--from", "csv", "--task", "mi_cxr_icr", *columns, "--out", "scored"
    )
    assert done.returncode == 0, done.stderr
    assert "accuracy 1.000" in done.stdout
    assert f"{len(documents) - 1} of {len(documents)} documents have a prediction" in done.stdout
    assert "left out, because no document matches: 1 prediction (p.csv, line 7)" in done.stdout
    again = medtasks("score", "scored")
    assert "no score has changed" in again.stdout
    assert "letter bias" in again.stdout
    as_json = json.loads(medtasks("score", "scored", "--json").stdout)
    written = json.loads((tmp_path / "scored" / "scores.json").read_text(encoding="utf-8"))
    latency = as_json.pop("latency")
    assert latency["reason"] == "no seconds: the responses were made elsewhere"
    assert {**written, "changes": [], "notes": []} == as_json
    of_file = medtasks(
        "score", "p.csv", "--from", "csv", "--task", "mi_cxr_icr", *columns, "--json"
    )
    predictions = json.loads(of_file.stdout)
    assert predictions.pop("predictions") == {
        "answered": len(documents) - 1,
        "missing": 1,
        "unmatched": 1,
        "strange": 0,
        "duplicates": 0,
        "ambiguous": 0,
        "of_other_tasks": 0,
        "of_other_epochs": 0,
        "repeated": 0,
    }
    notes = predictions.pop("notes")
    assert "left out, because no document matches: 1 prediction (p.csv, line 7)" in notes
    assert predictions == written
    log = tmp_path / "scored" / "samples" / "mi_cxr_icr.jsonl"
    first, rest = log.read_text(encoding="utf-8").split("\n", 1)
    older = {**json.loads(first), "filtered": "[none]"}  # as if an older filter had not read it
    log.write_text(f"{json.dumps(older)}\n{rest}", encoding="utf-8")
    changed = medtasks("score", "scored")
    assert "mi_cxr_icr: filtered changed in 1 sample\n" in changed.stdout
    listed = json.loads(medtasks("score", "scored", "--json").stdout)["changes"]
    assert [(one["sample_id"], one["before"]) for one in listed] == [(older["sample_id"], "[none]")]
    both = medtasks("score", "scored", "--against", "scored")
    assert "mi_cxr_icr (this)  mi_cxr_icr (other)" in both.stdout
    assert (
        "warning: with 5 clusters no difference can be significant at the 5 % level" in both.stdout
    )
    assert "fewer than 20 clusters: only large differences are detected (mi_cxr_icr)" in both.stdout


@pytest.mark.slow
def test_score_says_what_it_took_a_file_for_and_takes_over_its_verdicts(
    medtasks: Any, tmp_path: Path
) -> None:
    rows = [
        {
            **{key: one[key] for key in ("img_id", "question", "answer")},
            "response": one["answer"],
            "original": "[]",
            "eval_json": {
                name: {"score": 1, "reason": "It does."} for name in one["question_class"]
            },
        }
        for one in task_documents("kvasir_vqa_x1_level1")
    ]
    (tmp_path / "pred_eval.json").write_text(json.dumps([*rows, rows[0]]), encoding="utf-8")
    command = ("score", "pred_eval.json", "--task", "kvasir_vqa_x1_level1")
    done = medtasks(*command)
    assert done.returncode == 0, done.stderr
    assert "pred_eval.json: read as a JSON array with columns (--from json)" in done.stdout
    assert "with a judge's verdict: 37 predictions; import with --verdicts-of JUDGE" in done.stdout
    assert (
        "left out, because it repeats an earlier one: 1 prediction (pred_eval.json, row 38)"
        in done.stdout
    )
    done = medtasks(*command, "--verdicts-of", "their judge")
    assert "37 of 37 responses have a verdict of their judge, imported from the file" in done.stdout


def test_names_that_are_not_utf_8_are_written(medtasks: Any, tmp_path: Path) -> None:
    """Bytes of arguments that are not UTF-8 reach Python as lone surrogates."""
    predictions = tmp_path / os.fsdecode(b"answers-\xff.jsonl")
    predictions.write_text('{"sample_id": "icr-33", "response": "B"}\n', encoding="utf-8")
    name, out = os.fsdecode(b"m-\xff"), tmp_path / "out"
    done = medtasks(
        "score", str(predictions), "--task", "mi_cxr_icr", "--model", name, "--out", str(out)
    )
    assert done.returncode == 0
    assert (
        json.loads((out / "manifest.json").read_text(encoding="utf-8"))["model"]["model"]
        == "m-\ufffd"
    )
