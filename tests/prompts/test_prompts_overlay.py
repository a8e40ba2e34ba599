"""Authors' wording in place of ours: the files that docs/judging.md names, and that hashes show
them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from medtasks.benchmarks.documents import doc_to_messages, task_documents
from medtasks.catalog.judge_prompt import judge_prompt
from medtasks.catalog.prompts import overlay_diff, template_hash, template_source
from medtasks.catalog.rubric import rubric_hash
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError

DOCS = Path(__file__).parent.parent.parent / "docs"
FILES = re.findall(
    r"^\| `mine/(\S+\.j2)`", (DOCS / "judging.md").read_text(encoding="utf-8"), re.MULTILINE
)
SYSTEM, PLAIN, RUBRIC = "kvasir_vqa_x1_level2_system", "kvasir_vqa_x1_level2", "kvasir_aspects"


def hashes() -> tuple[str | None, str | None, str]:
    return (
        load_spec(SYSTEM).prompt_hash,
        load_spec(PLAIN).prompt_hash,
        rubric_hash(load_rubric(RUBRIC)),
    )


def shown(task: str) -> list[str]:
    turns = doc_to_messages(
        task_documents(task)[0], load_spec(task).resolved["lmms_eval_specific_kwargs"]
    )
    return [turn["content"][-1]["text"] for turn in turns]


def test_every_file_replaces_ours_and_every_hash_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hashes()
    question = str(task_documents(PLAIN)[0]["question"])
    assert len(FILES) == 4
    for name in FILES:
        ours = template_source(name)  # the shipped file of that name
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"As the authors say in {name}.\n{ours}", encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))

    system, user = shown(SYSTEM)
    assert system.startswith("As the authors say in kvasir_vqa_x1/system.j2.\n")
    assert user == f"As the authors say in kvasir_vqa_x1/question.j2.\n{question}"
    assert shown(PLAIN)[0].startswith("As the authors say in kvasir_vqa_x1/answer.j2.\n")
    asked = judge_prompt(load_rubric(RUBRIC), task_documents(PLAIN)[0], "One polyp.")
    assert asked.startswith("As the authors say in judge/kvasir_aspects.j2.\n")
    assert not set(before) & set(hashes())


def test_the_difference_of_an_overlay_is_shown_and_its_directory_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kvasir_vqa_x1").mkdir()
    (tmp_path / "kvasir_vqa_x1" / "answer.j2").write_text("Verbatim: {{ question }}")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    assert "+Verbatim: {{ question }}\n" in overlay_diff("kvasir_vqa_x1/answer.j2")
    assert overlay_diff("mi_cxr/mcq.j2") == ""
    before = template_hash("mi_cxr/mcq.j2")
    (tmp_path / "mi_cxr").mkdir()
    (tmp_path / "mi_cxr" / "_options.j2").write_text("included by it")
    assert template_hash("mi_cxr/mcq.j2") != before
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="expected a directory of templates"):
        template_source("kvasir_vqa_x1/answer.j2")
