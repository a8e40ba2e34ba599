"""Responses that the token limit cut off: counted by task, shown, and named with the option to raise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from medtasks.adapters._base import Response
from medtasks.adapters._requests import read_requests
from medtasks.adapters.baseline import MedtasksBaseline
from medtasks.leaderboard.verify.board_run import run_notes
from medtasks.leaderboard.verify.scored_run import scored_record
from runs import Run

from medtasks.benchmarks.documents import task_documents
from medtasks.harness import run_tasks
from medtasks.runs.folder import read_run

LEVEL2, TEL = "kvasir_vqa_x1_level2", "mi_cxr_tel_single"


class CutOff(MedtasksBaseline):
    """Reaches the limit with the first two responses of one task, and does not say why the first of another ended."""

    def generate_until(self, requests: list[Any]) -> list[Response]:
        asked = read_requests(requests, self.task_dict)
        pairs = zip(asked, super().generate_until(requests), strict=True)
        return [replace(response, finish=self._finish(one.task, one.doc_id)) for one, response in pairs]

    def _finish(self, task: str, number: int) -> str | None:
        if task == LEVEL2 and number < 2:
            return "length"
        return None if (task, number) == (TEL, 0) else "stop"


def test_responses_that_were_cut_off_are_counted_shown_and_named_with_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = len(task_documents(LEVEL2))
    run = Run(run_tasks(CutOff(policy="oracle"), "policy=oracle", [LEVEL2, TEL], tmp_path / "out"))

    counts = {name: facts["finish"] for name, facts in run.manifest["tasks"].items()}
    assert counts[LEVEL2] == {"length": 2, "stop": count - 2}
    assert sum(facts.get("unknown", 0) for facts in counts.values()) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"cut off at the token limit: {2 / count:.0%} of {LEVEL2}" in said
    assert "warning: answers after the limit of 4096 tokens are lost; raise --gen_kwargs max_new_tokens" in said
    assert "cut off at the token limit: unknown, the back-end does not say (mi_cxr_tel_single" in said

    again = scored_record(*read_run(run.folder), own=True, whole=True)
    assert again.record.manifest.tasks[LEVEL2].finish == counts[LEVEL2]
    notes = run_notes(again.record.manifest, {**again.record.tasks, **again.record.groups})
    assert f"{LEVEL2}: {2 / count:.0%} of the responses were cut off at the token limit" in notes
