"""Commands that cannot work end with one sentence before lmms-eval indexes tasks or loads a
model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from medtasks.core.errors import UsageError
from medtasks.harness.command_line import check_command, read_commands

TASK = "med_cmr_mcq_ltg"
RUN = ["--model", "medtasks_baseline", "--tasks", TASK]


def refusal(*arguments: str) -> str:
    with pytest.raises(UsageError) as raised:
        check_command(arguments)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [("med_cmr_mcq_ltgg", TASK), ("kvasir_vqa", "kvasir_vqa_x1"), ("mmmu_vall", "mmmu_val")],
    ids=["ours", "the beginning of ours", "the harness's"],
)
def test_a_task_that_does_not_exist_is_named_with_the_closest_one(name: str, near: str) -> None:
    assert f"there is no task {name!r} (did you mean {near!r}?)" in refusal("--tasks", name)
    assert f"there is no task {name!r}" in refusal(
        "--tasks", f"{TASK},{name}", "--output_path", "out"
    )


def test_tasks_that_only_the_harness_or_an_included_folder_has_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("task: own_task\n")
    (tmp_path / "given.yaml").write_text("task: given\n")
    assert check_command(["--tasks", "mmmu_val"]) == []
    assert check_command(["--tasks", "own_task", "--include_path", str(tmp_path)]) == []
    assert check_command(["--tasks", str(tmp_path / "given.yaml")]) == []
    assert check_command(["--tasks", "list"]) == []
    assert "no task 'own_task'" in refusal("--tasks", "own_task")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("task: own_task\ndoc_to_text: [\n", "own.yaml, line 3, column 1: not valid YAML ("),
        ("- own_task\n", "own.yaml: is a list, expected the keys of a task or group; fix it"),
        ("# nothing yet\n", "own.yaml: is empty, expected the keys of a task or group; fix it"),
    ],
    ids=["damaged", "a list", "empty"],
)
def test_a_file_that_would_stop_the_index_is_named(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "own.yaml").write_text(text)
    assert sentence in refusal("--tasks", TASK, "--include_path", str(tmp_path))


def test_tags_and_ignored_directories_of_an_included_folder_are_left_to_the_harness(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.yaml").write_text("task: own_task\ndoc_to_text: !function own.text\n")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "own.yaml").write_text("[")
    assert check_command(["--tasks", TASK, "--include_path", str(tmp_path)]) == [TASK]


def test_tasks_of_a_plug_in_of_the_harness_are_left_to_the_harness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LMMS_EVAL_PLUGINS", "other_package")
    assert check_command(["--tasks", "task_of_other_package"]) == []


def test_a_pattern_selects_our_tasks() -> None:
    assert check_command(["--tasks", "*_mcq_ltg"]) == [TASK]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--predict_only"], "--predict_only needs --output_path DIR"),
        (["-x"], "--predict_only needs --output_path DIR"),
        (["--log_samples"], "--log_samples needs --output_path DIR"),
        (["--wandb_log_samples", "--wandb_args", "project=x"], "--wandb_log_samples needs"),
        (["--limit", "-5"], "--limit is -5.0, expected"),
        (["--offset", "-1"], "--offset is -1, expected"),
        (["--config", "absent.yaml"], "absent.yaml: cannot be read"),
    ],
)
def test_what_the_harness_answers_with_a_traceback_is_one_sentence(
    arguments: list[str], sentence: str
) -> None:
    assert refusal(*RUN, *arguments).startswith(sentence)


def test_options_that_the_harness_would_refuse_are_left_to_its_parser() -> None:
    assert read_commands([*RUN, "--limit", "many"]) == []
    assert read_commands([*RUN, "--output_path"]) == []


def test_tasks_of_the_harness_keep_all_of_its_options() -> None:
    assert (
        check_command(["--tasks", "mmmu_val", "--baseline", "qwen25vl", "--apply_chat_template"])
        == []
    )


def test_every_evaluation_of_a_config_file_is_checked_and_the_command_line_has_precedence(
    tmp_path: Path,
) -> None:
    config = tmp_path / "runs.yaml"
    config.write_text(f"- tasks: {TASK}\n- tasks: mi_cxr_icr\n  predict_only: true\n")
    assert "--predict_only needs --output_path" in refusal("--config", str(config))
    assert check_command(["--config", str(config), "--output_path", "out"]) == [TASK, "mi_cxr_icr"]
    config.write_text("tasks: [unclosed\n")
    assert f"{config}: not valid YAML" in refusal("--config", str(config))
    config.write_text("tasks: [mi_cxr, med_cmr]\n")
    assert "tasks is list, expected names with commas" in refusal("--config", str(config))
    config.write_text("- mi_cxr\n")
    assert f"{config}: an evaluation is str" in refusal("--config", str(config))


@pytest.mark.slow
def test_a_command_that_cannot_work_ends_with_exit_code_2_and_no_traceback(new_python: Any) -> None:
    done = new_python("-m", "lmms_eval", "--model", "medtasks_baseline", "--tasks", "mi_cxr_icrr")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "medtasks: --tasks: there is no task 'mi_cxr_icrr' (did you mean"
    )
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
def test_the_first_line_names_what_is_loaded(python: Any) -> None:
    done = python("-m", "lmms_eval", *RUN, "--limit", "1", "--verbosity", "WARNING")
    assert done.returncode == 0
    loading = [line for line in done.stderr.splitlines() if line.startswith("medtasks: ")]
    assert loading[0].startswith("medtasks: loading lmms-eval 0.7.")
    assert loading[0].endswith(f" for {TASK} …")


IN_A_NEW_PYTHON = """
import sys
from medtasks.__main__ import main

sys.argv = ["medtasks", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    print(ended.code, sorted({"torch", "transformers", "lmms_eval"} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tasks", "med_cmr_mcq_ltgg"], "there is no task 'med_cmr_mcq_ltgg' (did you mean"),
        ([*RUN, "--use_cache", "cache"], "--use_cache"),
        ([], "no tasks; give lmms-eval's options"),
    ],
    ids=["task", "option", "nothing"],
)
def test_our_command_refuses_before_torch_and_the_harness_are_imported(
    new_python: Any, arguments: list[str], sentence: str
) -> None:
    done = new_python("-c", IN_A_NEW_PYTHON, "run", *arguments)
    assert done.stdout == "2 []\n"
    assert done.stderr.startswith("medtasks: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_our_command_runs_what_lmms_eval_runs(new_python: Any, tmp_path: Path) -> None:
    samples = []
    for name, command in {"ours": ("medtasks", "run"), "theirs": ("lmms_eval",)}.items():
        output = tmp_path / name
        done = new_python("-m", *command, *RUN, "--output_path", str(output))
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[0].startswith("medtasks: loading lmms-eval 0.7.")
        assert done.stderr.count("medtasks: loading") == 1
        (lines,) = output.rglob(f"*_medtasks/samples/{TASK}.jsonl")
        samples.append(lines.read_bytes())
    assert samples[0] == samples[1]
