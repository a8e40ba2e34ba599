"""Kills, outages and rate limits while closed models are asked: no answer is lost, and none that
was on disk is asked for again.

For each back-end the same command is started again until it finishes. Each attempt meets one
trouble: it is killed (SIGKILL) at a random moment, or for a random time the endpoint closes every
connection, or answers with 429, 500, 503 or 529. The endpoint is a server in a process of its own
(`backends/closed_models.py`), which logs the requests that arrive and those that it answered. In
the end the result directory is compared with that of a run without troubles.

    python performance/closed_kills.py --troubles 60 --seed 0

Exits with 1 if an answer was lost, one on disk was asked for again, or a result differs. Needs the
extras `claude`, `gemini` and `litellm`.
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
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from forked_command import Moment, forked
from kill_outcome import Outcome, contents, differing
from logging_server import append_keys

sys.path.append(str(Path(__file__).parent / "backends"))
from closed_models import Answer, Closed, ClosedModels, Problem, Question
from closed_models import Outcome as Decision

TASKS = ["mi_cxr_tel", "med_cmr_mcq_ltg"]
"""Tasks of which no two requests are alike."""
LATENCY = 0.15
FLYING = 4
FLYING_OF_CLAUDE = 8
"""This back-end takes no argument for it."""
OFTEN = f"retry_backoff_s=0.05,max_retries=2,num_concurrent={FLYING}"
BACK_ENDS = {
    "openai": f"model_version=m,base_url=URL/v1,{OFTEN}",
    "async_openai": "model_version=m,base_url=URL/v1,retry_backoff_s=0.05,max_retries=2,"
    f"num_cpus={FLYING}",
    "claude": "model_version=m",
    "gemini": f"model=m,{OFTEN}",
    "litellm": f"model=anthropic/m,base_url=URL,{OFTEN}",
}
KILL, DOWN, BUSY = "killed", "endpoint down", "429 and 5xx"
STATUSES = (429, 500, 503, 529)


@dataclass
class Endpoint:
    """The server's files: what it logs, and the trouble that it reads."""

    work: Path
    url: str = ""
    process: int = 0

    def start(self) -> None:
        """Serve in a process of its own."""
        server = ClosedModels(self.decide)
        server.answered = AnswerLog(self.work / "answered")  # type: ignore[assignment]
        self.url = server.url
        self.process = os.fork()
        if not self.process:
            with server:
                threading.Event().wait()

    def decide(self, question: Question) -> Decision:
        """An answer with the question's key, or the trouble that there is now."""
        append_keys(self.work / "asked", [question.key])
        trouble, until = self._trouble()
        if time.monotonic() >= until:
            letter = "ABCDE"[int(question.key, 16) % 5]
            return Answer(f"{letter} {question.key}", seconds=LATENCY)
        if trouble == DOWN:
            return Closed()
        status = STATUSES[int(time.monotonic() * 1000) % len(STATUSES)]
        headers = {"Retry-After": "0"} if status == 429 else {}
        return Problem(status, "in trouble", headers)

    def _trouble(self) -> tuple[str, float]:
        """The trouble and its end, a reading of the clock."""
        try:
            kind, until = json.loads((self.work / "trouble").read_text())
        except (FileNotFoundError, ValueError):
            return "", 0.0
        return kind, until

    def be_in_trouble(self, kind: str, seconds: float) -> None:
        """Have trouble from now on for some seconds."""
        (self.work / "new").write_text(json.dumps([kind, time.monotonic() + seconds]))
        (self.work / "new").replace(self.work / "trouble")

    def keys(self, log: str) -> list[str]:
        """The keys in a log."""
        path = self.work / log
        return path.read_text().split()[::2] if path.exists() else []

    def clear(self) -> None:
        """Empty the logs."""
        for log in ("asked", "answered"):
            (self.work / log).unlink(missing_ok=True)


@dataclass(frozen=True)
class AnswerLog:
    """Takes the place of the server's list of answered questions."""

    path: Path

    def append(self, question: Question) -> None:
        """Log a question whose answer was written."""
        append_keys(self.path, [question.key])


@dataclass
class Case(Outcome):
    """A back-end, and what became of its runs; ``troubles`` are those that they met."""

    model: str
    endpoint: Endpoint
    work: Path
    troubles: Counter[str] = field(default_factory=Counter)
    requests: int = 0

    def run(self, output: Path) -> None:
        """The command, in this process."""
        from medtasks.core.errors import MedtasksError
        from medtasks.harness import run_tasks

        os.environ["ANTHROPIC_BASE_URL"] = self.endpoint.url
        os.environ["GOOGLE_GEMINI_BASE_URL"] = self.endpoint.url
        arguments = BACK_ENDS[self.model].replace("URL", self.endpoint.url)
        # an endpoint that is down ends the run
        with contextlib.suppress(MedtasksError):
            run_tasks(self.model, arguments, TASKS, output, gen_kwargs="max_new_tokens=8")
        (self.work / "modules").write_text("\n".join(sys.modules))

    def stored(self, output: Path) -> set[str]:
        """The keys of all requests whose answer is on disk."""
        from medtasks.runs.unfinished import read_answers

        keys: set[str] = set()
        for folder in output.rglob("*_unfinished"):
            for answer in read_answers(folder):
                if answer.reply.failed is None:
                    keys.add(answer.reply.text.split()[-1])
        return keys

    def trouble(self, kinds: list[str], draw: random.Random) -> None:
        """Start the command until it met troubles of these kinds and finished without one."""
        whole, seconds = self._undisturbed()
        output = self.work / "troubled"
        self.endpoint.clear()
        stored: set[str] = set()
        kills = 0
        while True:
            kind = kinds.pop() if kinds else ""
            before = len(self.endpoint.keys("asked"))
            has_ended = self._attempt(output, kind, seconds, draw)
            kills += not has_ended
            if kind == KILL and has_ended:  # it ended before the moment
                kinds.append(kind)
            asked_now = self.endpoint.keys("asked")[before:]
            self.again += len(stored & set(asked_now))
            is_complete = self._is_complete(output)
            stored_now = self.stored(output)
            if not is_complete:
                self.lost += len(stored - stored_now)
            stored = stored_now
            if is_complete:
                self._compare(output, whole, kills)
                kills = 0
                shutil.rmtree(output)
                self.endpoint.clear()
                stored = set()
                if not kinds:
                    return
            elif not kind and has_ended:
                raise SystemExit(f"{self.model}: a run without trouble did not finish")

    def _undisturbed(self) -> tuple[dict[str, object], float]:
        """The content of a run without troubles, and its seconds."""
        output = self.work / "whole"
        forked(lambda: self.run(output), self.work / "output")
        # which each attempt would have to import
        for module in (self.work / "modules").read_text().split():
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        self.requests = len(set(self.endpoint.keys("asked")))
        begin = time.monotonic()
        forked(lambda: self.run(self.work / "again"), self.work / "output")
        return contents(output), time.monotonic() - begin

    def _attempt(self, output: Path, kind: str, seconds: float, draw: random.Random) -> bool:
        """Start the command once, with a trouble of this kind; whether it ended by itself."""
        before = len(self.endpoint.keys("asked"))
        has_begun: Callable[[], bool] = lambda: len(self.endpoint.keys("asked")) > before  # noqa: E731
        kill = None
        if kind == KILL and draw.random() < 0.25:
            kill = Moment(draw.uniform(0, seconds))
        elif kind == KILL:
            kill = Moment(draw.uniform(0, self.requests * LATENCY / FLYING), has_begun)
        elif kind:
            timer = threading.Thread(target=self._wait_and_trouble, args=(kind, has_begun, draw))
            timer.start()
        has_ended, _ = forked(lambda: self.run(output), self.work / "output", kill)
        if kind in (DOWN, BUSY):
            timer.join()
        if kind and not (kind == KILL and has_ended):
            self.troubles[kind] += 1
        return has_ended

    def _wait_and_trouble(
        self, kind: str, has_begun: Callable[[], bool], draw: random.Random
    ) -> None:
        """Make trouble at a random moment after the first request, for a random time."""
        patience = time.monotonic() + 120
        while not has_begun() and time.monotonic() < patience:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, self.requests * LATENCY / FLYING / 2))
        self.endpoint.be_in_trouble(kind, draw.uniform(0.1, 1.5))

    def _is_complete(self, output: Path) -> bool:
        """Whether there is a result with an answer to every request."""
        from medtasks.runs.find import run_folders
        from medtasks.scoring.run_folder import read_run

        folders = sorted(run_folders(output)) if output.exists() else []
        if not folders:
            return False
        manifest, _ = read_run(folders[-1])
        return not any(facts.failed for facts in manifest.tasks.values())

    def _compare(self, output: Path, whole: dict[str, object], kills: int) -> None:
        """Compare a finished result, and count what the endpoint answered twice.

        Only as many requests may be answered twice as were in flight when the run was killed.
        """
        self.finished += 1
        answered = Counter(self.endpoint.keys("answered"))
        self.lost += self.requests - len(answered)
        repeated = answered.total() - len(answered)
        self.in_flight += repeated
        in_flight = FLYING_OF_CLAUDE if self.model == "claude" else FLYING
        self.again += max(0, repeated - in_flight * kills)
        self.differing += differing(whole, contents(output))


COLUMNS = (
    "back-end",
    "troubles",
    KILL,
    DOWN,
    BUSY,
    "runs finished",
    "requests of a run",
    "lost",
    "on disk and asked again",
    "in flight when killed, and answered again",
    "results that differ",
)


def table(cases: list[Case]) -> str:
    """The outcomes as a table in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for case in cases:
        kinds = [case.troubles[kind] for kind in (KILL, DOWN, BUSY)]
        outcomes = [case.lost, case.again, case.in_flight, len(case.differing)]
        cells = [case.model, sum(kinds), *kinds, case.finished, case.requests, *outcomes]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--troubles", type=int, default=60, help="over all back-ends")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one back-end")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    for vendor in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        os.environ[f"{vendor}_API_KEY"] = f"key-of-{vendor.lower()}"
    os.environ.setdefault("MEDTASKS_DATA", "mini")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    work = Path(tempfile.mkdtemp(prefix="medtasks-troubles-"))
    os.environ.setdefault("MEDTASKS_CACHE", str(work / "cache"))
    models = [model for model in BACK_ENDS if options.only in (None, model)]
    cases: list[Case] = []
    for number, model in enumerate(models):
        done = options.troubles * number // len(models)
        count = options.troubles * (number + 1) // len(models) - done
        draw = random.Random(f"{options.seed} {model}")
        kinds = [(KILL, DOWN, KILL, BUSY)[turn % 4] for turn in range(count)]
        draw.shuffle(kinds)
        folder = work / model
        folder.mkdir()
        endpoint = Endpoint(folder)
        endpoint.start()
        try:
            case = Case(model, endpoint, folder)
            cases.append(case)
            case.trouble(kinds, draw)
        finally:
            os.kill(endpoint.process, signal.SIGKILL)
        print(case, file=sys.stderr, flush=True)
    shutil.rmtree(work, ignore_errors=True)
    troubles = sum(case.troubles.total() for case in cases)
    print(f"{troubles} troubles, seed {options.seed}\n\n{table(cases)}")
    return int(not all(case.flawless for case in cases))


if __name__ == "__main__":
    sys.exit(main())
