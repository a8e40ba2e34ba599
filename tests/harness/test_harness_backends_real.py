"""Back-ends of the harness as they are installed: what they lack, and what they answer with a tiny
checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import Run

from medtasks import harness
from medtasks.harness.backends import lacks
from training.tiny import tiny_checkpoint

pytestmark = pytest.mark.slow


def test_doctor_imports_a_back_end_and_names_what_is_missing(python: Any, tmp_path: Path) -> None:
    models = tmp_path / "plugins" / "other_lab" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").touch()
    (models / "__init__.py").write_text('AVAILABLE_MODELS = {"needy": "Needy"}\n')
    (models / "needy.py").write_text("import a_module_that_nobody_has\n")
    other_lab = {"PYTHONPATH": str(models.parents[1]), "LMMS_EVAL_PLUGINS": "other_lab"}
    done = python(
        "-m",
        "medtasks",
        "doctor",
        "--model",
        "needy",
        "--model",
        "huggingface",
        "--json",
        **other_lab,
    )
    checks = {check["what"]: check for check in json.loads(done.stdout)}
    assert checks["back-end needy"] == {
        "what": "back-end needy",
        "state": "broken",
        "found": "module a_module_that_nobody_has is not installed",
        "fix": "pip install a_module_that_nobody_has",
    }
    assert checks["back-end huggingface"]["state"] == "ok"
    assert done.returncode == 1


def test_back_ends_are_looked_for_where_this_process_imports_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "medtasks").mkdir()  # as in a checkout beside an installed medtasks
    (tmp_path / "medtasks" / "__init__.py").write_text("raise ImportError('the working directory')")
    monkeypatch.chdir(tmp_path)
    assert lacks(["medtasks_vlm"]) == {"medtasks_vlm": None}


TASKS = [
    "kvasir_vqa_x1_level1",
    "mi_cxr_icr",
    "mi_cxr_stagewise_icr",
    "medstreambench_future_streaming",
]


def answers(run: Run, task: str) -> list[str]:
    return [response for sample in run.samples(task) for response in sample["responses"]]


@pytest.mark.parametrize("model", ["huggingface", "async_hf"])
def test_generic_back_ends_answer_all_kinds_of_tasks(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ",device_map=cpu" if model == "huggingface" else ""
    arguments = f"pretrained={tiny_checkpoint()},device=cpu{place}"

    def run(folder: str) -> Run:
        output = tmp_path / folder
        return Run(
            harness.run_tasks(
                model, arguments, TASKS, output, limit=2, gen_kwargs="max_new_tokens=8"
            )
        )

    seen = run("seen")
    monkeypatch.setenv("MEDTASKS_BLIND", "1")
    blind = run("blind")
    for one in (seen, blind):
        assert [facts["failed"] for facts in one.manifest["tasks"].values()] == [{}] * len(TASKS)
    assert any(answers(seen, task) != answers(blind, task) for task in TASKS)


@pytest.mark.parametrize("options", [(), ("--force_simple",)], ids=["chat", "simple"])
def test_the_readme_s_first_back_end_runs(
    options: tuple[str, ...], python: Callable[..., Any], tmp_path: Path
) -> None:
    pytest.importorskip("decord", reason='pip install "medtasks[qwen]"')
    done = python(
        *(
            "-m",
            "lmms_eval",
            "--model",
            "qwen2_5_vl",
            "--tasks",
            "kvasir_vqa_x1_level1,mi_cxr_stagewise_icr",
        ),
        *(
            "--model_args",
            f"pretrained={tiny_checkpoint()},device_map=cpu",
            "--device",
            "cpu",
            *options,
        ),
        *(
            "--limit",
            "2",
            "--gen_kwargs",
            "max_new_tokens=8",
            "--output_path",
            "results",
            "--log_samples",
        ),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (folder,) = tmp_path.rglob("*_medtasks")
    manifest = Run(folder).manifest
    assert manifest["model"]["model"] == "qwen2_5_vl"
    assert [facts["answered"] for facts in manifest["tasks"].values()] == [2, 2]
