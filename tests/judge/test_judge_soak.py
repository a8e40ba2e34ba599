"""A judging process that is killed again and again: nothing that was stored is asked again, and no sample is lost."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faulty_judge import FAULTS, FaultyJudge

from medtasks.judge.pipeline import INVALID, REFUSED, REPAIR
from medtasks.judge.store import VerdictStore

SAMPLES = 800
KILLED_AT = (100, 300, 550)  # stored answers
# a process of its own: SIGKILL asks nobody
JUDGE = """
import asyncio, json, sys
from medtasks.judge.pipeline import Question, judge_questions
from medtasks.judge.client import JudgeClient
from medtasks.catalog.rubric import load_rubric
from medtasks.judge.settings import JudgeSettings
from medtasks.judge.store import VerdictStore

url, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
document = {"sample_id": "d", "question": "What is it?", "visual_description": "A shadow.", "target": "A cyst."}
questions = [Question(f"s{n}", document, f"Response {n}") for n in range(count)]
client = JudgeClient(JudgeSettings(base_url=url, model="stub", concurrency=64, backoff=0.02))
with VerdictStore(path) as store:
    result = asyncio.run(judge_questions(questions, load_rubric("med_cmr_open"), client, store))
judged = {name: [one.key, one.unjudged, one.repaired] for name, one in result.by_question.items()}
print(json.dumps({"judged": judged, "answered": result.spent.answered}))
"""


def start(url: str, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", JUDGE, url, str(path), str(SAMPLES)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def stored(path: Path) -> dict[str, tuple[str, bool]]:
    """Of each stored answer its prompt, and whether it is a verdict, refused, or the answer to a repair."""
    try:
        with sqlite3.connect(path) as connection:
            rows = connection.execute("SELECT key, prompt, parsed IS NOT NULL, reason FROM verdicts").fetchall()
    except sqlite3.OperationalError:  # the file or the table is being made
        return {}
    return {key: (prompt, bool(ok) or why == REFUSED or key.endswith(REPAIR)) for key, prompt, ok, why in rows}


@pytest.mark.slow
def test_killed_three_times_it_asks_nothing_twice_and_judges_or_names_every_sample(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    rates = dict.fromkeys(FAULTS, 0.05 / len(FAULTS))
    before: dict[str, tuple[str, bool]] = {}
    with FaultyJudge(latency=0.02, seed=2, **rates) as stub:
        for until in (*KILLED_AT, None):
            process = start(stub.url, path)
            while until is not None and len(stored(path)) < until and process.poll() is None:
                time.sleep(0.02)
            if until is not None:
                process.kill()
            said, _ = process.communicate(timeout=120)
            settled = {prompt for prompt, done in before.values() if done}
            answered = {prompt for prompt, _ in before.values()}
            requests = [(one.body["messages"][0]["content"], len(one.body["messages"])) for one in stub.requests]
            stub.requests.clear()
            assert not [one for one in requests if one[0] in settled]
            assert not [one for one in requests if one[0] in answered and one[1] == 1]  # but for the repair
            assert requests
            before = stored(path)
            assert until is None or until <= len(before) < SAMPLES
    result = json.loads(said)
    judged = result["judged"]
    assert len(judged) == SAMPLES
    assert {reason for _, reason, _ in judged.values()} <= {None, REFUSED, INVALID}
    assert 0 < sum(reason == REFUSED for _, reason, _ in judged.values()) < 0.05 * SAMPLES
    assert sum(repaired for _, _, repaired in judged.values()) > 0
    with VerdictStore(path) as store:  # who has a verdict follows from the stored answers alone
        rows = store.get(stored(path))
    assert {key.removesuffix(REPAIR) for key in rows} == {key for key, _, _ in judged.values()}
    for key, reason, repaired in judged.values():
        row = rows[key + REPAIR] if key + REPAIR in rows else rows[key]
        assert repaired == (key + REPAIR in rows and reason is None)  # a repair may be refused
        assert (reason is None) == (row.parsed is not None)
