"""The commands in docs/judging.md that ask a judge again about the released responses of
Kvasir-VQA-x1.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.judge.stub import StubJudge

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPT = REPOSITORY / "examples" / "kvasir-verdicts" / "verdicts.py"
PAGE = REPOSITORY / "docs" / "judging.md"
RELEASED = "1_transform_to_vqa_format_test_pred_v1-4444_eval.json"
PROGRAMS = 'medtasks() { "$PYTHON" -m medtasks "$@"; }\npython() { "$PYTHON" "$@"; }\n'


def block(language: str) -> str:
    """The page's block of this language in the section on released verdicts."""
    section = PAGE.read_text(encoding="utf-8").partition("## Reproduce the released verdicts")[2]
    return section.partition(f"```{language}\n")[2].partition("```")[0]


def released_rows(levels: Sequence[int] = (1, 2, 3)) -> list[dict[str, Any]]:
    """Right answers as the authors release them: the judge gave 0 to the first class of every other
    row, and its verdict on the last row could not be read.
    """
    rows = []
    for level in levels:
        for document in task_documents(f"kvasir_vqa_x1_level{level}"):
            verdict = {name: {"score": 1, "reason": "."} for name in document["question_class"]}
            first = document["question_class"][0]
            verdict[first]["score"] = len(rows) % 2
            rows.append({
                **{name: document[name] for name in ("img_id", "question", "complexity", "answer")},
                "question_class": document["question_class"],
                "original": json.dumps(document["original"]),
                "response": document["target"],
                "eval_json": verdict,
            })  # fmt: skip
    del rows[-1]["eval_json"]
    rows[-1]["error"] = "list index out of range"
    return rows


def run_block(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHON": sys.executable, "MEDTASKS_CACHE": str(folder / "cache")}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", PROGRAMS + script],
        cwd=folder,
        env={**variables, "MEDTASKS_DATA": "mini", "XDG_CACHE_HOME": str(folder / "xdg")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_commands_of_the_page_give_verdicts_in_the_released_layout(tmp_path: Path) -> None:
    rows = released_rows()
    (tmp_path / RELEASED).write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    with StubJudge() as stub:
        judge = block("yaml").replace("http://127.0.0.1:8000/v1", stub.url)
        (tmp_path / "qwen3.yaml").write_text(judge, encoding="utf-8")
        done = run_block(tmp_path, block("bash"))
        sent = stub.requests[0]
    assert done.returncode == 0, done.stderr
    assert sent["model"] == "Qwen/Qwen3-30B-A3B"
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert not sent.keys() & {"temperature", "max_tokens", "max_completion_tokens"}

    # the stub judge finds that every reference answers its own question
    written = json.loads((tmp_path / "ours_eval.json").read_text(encoding="utf-8"))
    layout = {key: type(value) for key, value in rows[0].items()}
    for row in written:
        assert {key: type(value) for key, value in row.items()} == layout
        assert row["eval_json"].keys() == set(row["question_class"])
        assert {verdict["score"] for verdict in row["eval_json"].values()} == {1}
    known = {(row["img_id"], row["question"], row["response"]) for row in rows}
    assert {(row["img_id"], row["question"], row["response"]) for row in written} == known

    *_, total, last = done.stdout.splitlines()
    judged = rows[:-1]
    zeros = len(range(0, len(judged), 2))
    ones = sum(len(set(row["question_class"])) for row in judged) - zeros
    agreement = f"{ones / (ones + zeros):.3f}"
    assert total.split("\t") == ["all classes", str(ones), "0", str(zeros), "0", agreement]
    assert last.startswith(f"{len(rows)} responses in both runs, 1 of them without one of the")


@pytest.mark.slow
def test_runs_of_other_responses_are_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTASKS_DATA", "mini")
    rows = released_rows(levels=(3,))
    for name in "ab":
        Path(f"{name}_eval.json").write_text(json.dumps(rows), encoding="utf-8")
        medtasks.score(f"{name}_eval.json", "kvasir_vqa_x1_level3", verdicts_of="judge", out=name)
        rows[0]["response"] = "Something else."
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT))["main"](["a", "b", "--out", "c_eval.json"])
    assert str(caught.value) == (
        f"b: 1 of {len(rows)} responses are not those of a; import both runs from the same file."
    )
    assert not Path("c_eval.json").exists()


@pytest.mark.slow
def test_a_directory_of_several_runs_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", "mini")
    documents = task_documents("kvasir_vqa_x1_level3")
    responses = [{"sample_id": document["sample_id"], "response": "A"} for document in documents]
    for name in "ab":
        medtasks.score(responses, "kvasir_vqa_x1_level3", out=str(tmp_path / name))
    with pytest.raises(SystemExit, match="2 runs, expected 1; name the result directory of one"):
        runpy.run_path(str(SCRIPT))["main"]([str(tmp_path), str(tmp_path), "--out", "c_eval.json"])
