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
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # training/ is not installed
TASKS = ["kvasir_vqa_x1_level1", "mi_cxr_stagewise_icr", "med_cmr_mcq_ltg"]
SERVER_TASKS = [
    "kvasir_vqa_x1_level1",
    "mi_cxr_tel",
    "med_cmr_mcq_ltg",
]  # no two requests are alike
FLYING = 4
LATENCY = 0.1


@dataclass(kw_only=True)
class Outcome:
    """What became of a command that was killed and started again: kills by their kind, finished
    runs, and requests.

    ``in_flight`` were asked for again since their answer was not on disk, ``again`` although it
    was; the answers of ``lost`` were on disk, or never arrived. ``differing`` are files that are
    not those of a run that was not killed.
    """

    kills: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    in_flight: int = 0
    again: int = 0
    lost: int = 0
    differing: list[str] = field(default_factory=list)

    @property
    def flawless(self) -> bool:
        """Whether nothing was lost, asked for again, or different."""
        return not (self.lost or self.again or self.differing)


@dataclass
class Case(Outcome):
    """A back-end and the command that is killed."""

    name: str
    model: str
    arguments: str
    tasks: list[str]
    work: Path
    requests: int = 0

    @property
    def log(self) -> Path:
        """Key and time of all requests that reached the model or the server, in their order."""
        return self.work / "asked"

    def run(self, output: Path) -> None:
        """The command, in this process."""
        import medtasks.harness as harness

        if self.model != "async_openai":
            _log_requests(self.model, self.log)
        harness.run_tasks(
            self.model, self.arguments, self.tasks, output, gen_kwargs="max_new_tokens=8"
        )
        (self.work / "modules").write_text("\n".join(sys.modules))

    def stored(self, output: Path) -> set[str]:
        """The keys of all requests whose reply is on disk."""
        from medtasks.runs.unfinished import read_answers

        answers = [
            answer for folder in output.rglob("*_unfinished") for answer in read_answers(folder)
        ]
        if self.model == "async_openai":
            return {answer.reply.text.split()[-1] for answer in answers}
        slots = [answer.slot for answer in answers if answer.reply.failed is None]
        return {_key(slot.task, slot.doc_id, slot.repeat, slot.prompt) for slot in slots}

    def asked(self) -> list[str]:
        """The keys of all requests that reached the model or the server."""
        return self.log.read_text().split()[::2] if self.log.exists() else []

    def seconds_asking(self) -> float:
        """From the first request to the last one."""
        times = [float(moment) for moment in self.log.read_text().split()[1::2]]
        return times[-1] - times[0]


def _key(task: str, doc_id: int, repeat: int, prompt: str) -> str:
    from medtasks.core.files import short_hash

    return f"{task}/{doc_id}/{repeat}/{short_hash(prompt)}"


def _log_requests(model: str, log: Path) -> None:
    """Make the back-end log each request before it answers."""
    from lmms_eval.models import MODEL_REGISTRY_V2

    from medtasks.harness.requests import REPEAT

    kind = MODEL_REGISTRY_V2.get_model_class(model)
    ours = hasattr(kind, "answer")
    name = "answer" if ours else "generate_until"
    original = getattr(kind, name)

    def key(one: Any) -> str:
        if ours:
            return _key(one.task, one.doc_id, one.repeat, one.prompt)
        return _key(one.task_name, one.doc_id, (one.metadata or {}).get(REPEAT, 0), one.args[0])

    def logged(self: Any, requests: list[Any]) -> Any:
        _append(log, [key(request) for request in requests])
        return original(self, requests)

    setattr(kind, name, logged)


def _append(log: Path, keys: list[str]) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, "".join(f"{key} {time.monotonic()}\n" for key in keys).encode())
    os.close(handle)


@dataclass
class Moment:
    """When to kill: ``seconds`` after ``began`` is true for the first time."""

    seconds: float
    began: Callable[[], bool] = lambda: True


def forked(work: Callable[[], None], log: Path, kill: Moment | None = None) -> tuple[bool, float]:
    """Whether ``work`` ended before it was killed, and its seconds.

    Raises:
        SystemExit: it failed; its output is shown.
    """
    began = time.monotonic()
    child = os.fork()
    if not child:
        code = 1
        try:
            handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    status = 0
    counted: float | None = None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if kill is not None and counted is None and kill.began():
            counted = time.monotonic()
        if kill is not None and counted is not None and time.monotonic() - counted >= kill.seconds:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.005)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(f"an attempt failed:\n{log.read_text()[-4000:]}")
    return os.WIFEXITED(status), time.monotonic() - began


def kill_at_random(case: Case, kills: int, draw: random.Random) -> None:
    """Kill ``case`` until it was killed ``kills`` times and finished."""
    case.work.mkdir()
    whole = case.work / "whole"
    _, duration = forked(lambda: case.run(whole), case.work / "output")
    for module in (
        (case.work / "modules").read_text().split()
    ):  # which each attempt would have to import
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    asking = case.seconds_asking()
    expected = contents(whole)
    everything = set(case.asked())
    case.requests = len(everything)
    while case.kills.total() < kills:
        output = case.work / f"killed-{case.finished}"
        case.log.unlink(missing_ok=True)
        stored: set[str] = set()
        ended = False
        while not ended:
            before = len(case.asked())
            moment = None
            if case.kills.total() < kills:
                missing = 1 - len(stored) / len(everything)
                moment = Moment(draw.uniform(0, duration))
                if missing and draw.random() < 0.75:
                    moment = Moment(
                        draw.uniform(0, asking * missing),
                        lambda seen=before: len(case.asked()) > seen,
                    )
            ended, _ = forked(lambda to=output: case.run(to), case.work / "output", moment)
            fresh = case.asked()[before:]
            case.again += len(stored & set(fresh))
            written = _results(output)
            now = case.stored(output)
            case.lost += 0 if written else len(stored - now)
            if not ended:
                where = (
                    "writing" if written or now >= everything else "asking" if fresh else "starting"
                )
                case.kills["scoring, " * (where == "writing") + where] += 1
            stored = now
            ended = ended or bool(written)
        case.finished += 1
        asked = Counter(case.asked())
        case.lost += len(everything - set(asked))
        case.in_flight += asked.total() - len(asked)
        case.differing += differing(expected, contents(output))


def _results(output: Path) -> list[Path]:
    """The result directories; not the hidden ones, in which a killed attempt was writing one."""
    from medtasks.runs.find import run_folders

    return run_folders(output)


def contents(output: Path) -> dict[str, Any]:
    """Content of the newest result directory; of the manifest, what does not depend on time and
    work.
    """
    folder = max(_results(output))
    files: dict[str, Any] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    manifest = json.loads(files.pop("manifest.json"))
    return {
        **files,
        "tasks of the manifest": manifest["tasks"],
        "finish": manifest["model"].get("finish"),
    }


def differing(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The files of which only one of two result directories has this content."""
    return [name for name in {*expected, *found} if expected.get(name) != found.get(name)]


class Handler(BaseHTTPRequestHandler):
    """Answers a chat request with a letter and the hash of the request."""

    log: Path
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = hashlib.sha256(body).hexdigest()[:16]
        _append(self.log, [key])
        time.sleep(LATENCY)
        message = {"role": "assistant", "content": f"{'ABCDE'[int(key, 16) % 5]} {key}"}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        reply = {"id": key, "object": "chat.completion", "created": 0, "model": "m", "usage": usage}
        raw = json.dumps(
            {**reply, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


def serve(log: Path) -> tuple[int, str]:
    """Process id and address of a server that logs the hash of each request to ``log``."""
    Handler.log = log
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # its client was killed
    child = os.fork()
    if not child:
        server.serve_forever()
    server.server_close()
    return child, f"http://127.0.0.1:{server.server_port}/v1"


def predictions(path: Path) -> str:
    """A file with a response to every document of :data:`TASKS`."""
    from medtasks.benchmarks.documents import task_documents
    from medtasks.catalog.spec import leaf_tasks

    rows = {
        (leaf, doc["sample_id"])
        for task in TASKS
        for leaf in leaf_tasks(task)
        for doc in task_documents(leaf)
    }
    lines = [
        json.dumps({"task": task, "sample_id": sample, "response": "A"})
        for task, sample in sorted(rows)
    ]
    path.write_text("\n".join(lines))
    return str(path)


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

        from training.tiny import tiny_checkpoint

        forked(lambda: tiny_checkpoint() and None, work / "tiny")
        openai = f"model_version=m,max_retries=1,num_cpus={FLYING},base_url={address}"
        replay = f"path={predictions(work / 'predictions.jsonl')}"
        qwen = f"pretrained={tiny_checkpoint()},device_map=cpu,device=cpu"
        cases = [
            Case(
                "medtasks_vlm",
                "medtasks_vlm",
                "pretrained=tiny,device=cpu,batch_size=8",
                TASKS,
                work / "vlm",
            ),
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
        cases = [case for case in cases if options.only in (None, case.model)]
        for number, case in enumerate(cases):
            kills = options.kills * (number + 1) // len(cases) - options.kills * number // len(
                cases
            )
            kill_at_random(case, kills, random.Random(f"{options.seed} {case.model}"))
            print(case, file=sys.stderr, flush=True)
    finally:
        os.kill(server, signal.SIGKILL)
        shutil.rmtree(work, ignore_errors=True)
    print(f"{sum(case.kills.total() for case in cases)} kills, seed {options.seed}\n")
    print(
        "| back-end | kills | starting | asking | scoring, writing | runs finished | requests of a "
        "run | lost |",
        end="",
    )
    print(
        " on disk and asked again | in flight and asked again | results that differ |\n|---|"
        + "---:|" * 10
    )
    for case in cases:
        phases = [case.kills[name] for name in ("starting", "asking", "scoring, writing")]
        columns = [
            sum(phases),
            *phases,
            case.finished,
            case.requests,
            case.lost,
            case.again,
            case.in_flight,
        ]
        print(f"| {case.name} | {' | '.join(map(str, columns))} | {len(case.differing)} |")
    return int(not all(case.flawless for case in cases))


if __name__ == "__main__":
    sys.exit(main())
