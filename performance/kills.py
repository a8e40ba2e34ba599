"""Kills at random moments: no answer is lost, and none that was on disk is asked for again.

For each back-end the same command is started again until it finishes, and killed (SIGKILL): three
times out of four at a moment drawn uniformly over the time that asking for the missing replies
takes, else over the duration of a whole run with start-up, scoring and writing. Each attempt is a
forked process in which lmms-eval is imported already. After each attempt, the requests sent to the
model, or received by the HTTP server, are compared with the replies that were on disk before it. At
the end the result directory is compared with that of a run that was not killed.

    python performance/kills.py --kills 50 --seed 0

Exits with 1 if a reply was lost, asked for again, or a result differs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forked_command import Moment, forked
from kill_case import Case
from kill_outcome import contents, differing
from logging_server import serve

sys.path.append(str(Path(__file__).parents[1]))  # training/ is not installed
TASKS = ["kvasir_vqa_x1_level1", "mi_cxr_stagewise_icr", "med_cmr_mcq_ltg"]
SERVER_TASKS = ["kvasir_vqa_x1_level1", "mi_cxr_tel", "med_cmr_mcq_ltg"]
"""Tasks of which no two requests are alike."""
FLYING = 4
PHASES = ("starting", "asking", "scoring, writing")


@dataclass(frozen=True)
class WholeRun:
    """A run that was not killed: its seconds, those from the first request to the last, its
    requests and its result.
    """

    duration: float
    asking: float
    requests: set[str]
    contents: dict[str, Any]


def run_whole(case: Case) -> WholeRun:
    """Run ``case`` once, and import here what it imported."""
    case.work.mkdir()
    output = case.work / "whole"
    _, duration = forked(lambda: case.run(output), case.work / "output")
    # which each attempt would have to import
    for module in (case.work / "modules").read_text().split():
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    return WholeRun(duration, case.seconds_asking(), set(case.asked()), contents(output))


def kill_at_random(case: Case, kills: int, draw: random.Random) -> None:
    """Kill ``case`` until it was killed ``kills`` times and finished."""
    whole = run_whole(case)
    case.requests = len(whole.requests)
    while case.kills.total() < kills:
        output = case.work / f"killed-{case.finished}"
        case.log.unlink(missing_ok=True)
        stored: set[str] = set()
        is_finished = False
        while not is_finished:
            kill = None
            if case.kills.total() < kills:
                missing = 1 - len(stored) / len(whole.requests)
                kill = random_moment(case, whole, missing, draw)
            stored, is_finished = attempt(case, output, whole, stored, kill)
        case.finished += 1
        asked = Counter(case.asked())
        case.lost += len(whole.requests - set(asked))
        case.in_flight += asked.total() - len(asked)
        case.differing += differing(whole.contents, contents(output))


def random_moment(case: Case, whole: WholeRun, missing: float, draw: random.Random) -> Moment:
    """A moment of a whole run or, mostly, of asking for the share of replies that is missing."""
    moment = Moment(draw.uniform(0, whole.duration))
    if missing and draw.random() < 0.75:
        before = len(case.asked())
        seconds = draw.uniform(0, whole.asking * missing)
        moment = Moment(seconds, lambda: len(case.asked()) > before)
    return moment


def attempt(
    case: Case, output: Path, whole: WholeRun, stored: set[str], kill: Moment | None
) -> tuple[set[str], bool]:
    """Start ``case`` once; returns the requests whose reply is on disk then, and whether it has
    finished. ``stored`` are those before.
    """
    from medtasks.runs.find import run_folders

    before = len(case.asked())
    has_ended, _ = forked(lambda: case.run(output), case.work / "output", kill)
    asked_now = set(case.asked()[before:])
    case.again += len(stored & asked_now)
    # not the hidden directories, in which a killed attempt was writing a result
    has_result = bool(run_folders(output))
    stored_now = case.stored(output)
    if not has_result:
        case.lost += len(stored - stored_now)
    if not has_ended:
        if has_result or stored_now >= whole.requests:
            case.kills["scoring, writing"] += 1
        elif asked_now:
            case.kills["asking"] += 1
        else:
            case.kills["starting"] += 1
    return stored_now, has_ended or has_result


def predictions(path: Path) -> str:
    """A file with a response to every document of :data:`TASKS`."""
    from medtasks.benchmarks.documents import task_documents
    from medtasks.catalog.spec import leaf_tasks

    rows = set()
    for task in TASKS:
        for leaf in leaf_tasks(task):
            rows.update((leaf, document["sample_id"]) for document in task_documents(leaf))
    lines = []
    for task, sample_id in sorted(rows):
        lines.append(json.dumps({"task": task, "sample_id": sample_id, "response": "A"}))
    path.write_text("\n".join(lines))
    return str(path)


def cases(work: Path, address: str) -> list[Case]:
    """All back-ends; the server of ``async_openai`` is at ``address``."""
    from training.tiny import tiny_checkpoint

    forked(lambda: tiny_checkpoint() and None, work / "tiny")
    vlm = "pretrained=tiny,device=cpu,batch_size=8"
    replay = f"path={predictions(work / 'predictions.jsonl')}"
    qwen = f"pretrained={tiny_checkpoint()},device_map=cpu,device=cpu"
    openai = f"model_version=m,max_retries=1,num_cpus={FLYING},base_url={address}"
    return [
        Case("medtasks_vlm", "medtasks_vlm", vlm, TASKS, work / "vlm"),
        Case("medtasks_replay", "medtasks_replay", replay, TASKS, work / "replay"),
        Case("qwen2_5_vl", "qwen2_5_vl", qwen, TASKS, work / "qwen"),
        Case(
            "async_openai, HTTP server",
            "async_openai",
            openai,
            SERVER_TASKS,
            work / "async_openai",
        ),
    ]


COLUMNS = (
    "back-end",
    "kills",
    *PHASES,
    "runs finished",
    "requests of a run",
    "lost",
    "on disk and asked again",
    "in flight and asked again",
    "results that differ",
)


def table(tried: list[Case]) -> str:
    """The outcomes as a table in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for case in tried:
        phases = [case.kills[phase] for phase in PHASES]
        requests = [case.requests, case.lost, case.again, case.in_flight, len(case.differing)]
        cells = [case.name, sum(phases), *phases, case.finished, *requests]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50, help="over all back-ends")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one back-end")
    options = parser.parse_args()
    os.environ.setdefault("MEDTASKS_DATA", "mini")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["OMP_NUM_THREADS"] = "1"  # attempts are forked
    os.environ["OPENAI_API_KEY"] = "x"
    work = Path(tempfile.mkdtemp(prefix="medtasks-kills-"))
    os.environ.setdefault("MEDTASKS_CACHE", str(work / "cache"))
    server, address = serve(work / "async_openai" / "asked")
    try:
        import lmms_eval.evaluator  # once for all attempts
        import lmms_eval.models  # noqa: F401
        import transformers  # noqa: F401

        tried = [case for case in cases(work, address) if options.only in (None, case.model)]
        for number, case in enumerate(tried):
            killed_before = options.kills * number // len(tried)
            kills = options.kills * (number + 1) // len(tried) - killed_before
            kill_at_random(case, kills, random.Random(f"{options.seed} {case.model}"))
            print(case, file=sys.stderr, flush=True)
    finally:
        os.kill(server, signal.SIGKILL)
        shutil.rmtree(work, ignore_errors=True)
    print(f"{sum(case.kills.total() for case in tried)} kills, seed {options.seed}\n")
    print(table(tried))
    return int(not all(case.flawless for case in tried))


if __name__ == "__main__":
    sys.exit(main())
