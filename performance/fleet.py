"""``medtasks_ray`` on a local Ray cluster of several nodes, with a back-end that sleeps instead of
computing.

    scaling     answers/s of 1, 2 and 4 replicas against the ideal, and with one of four replicas
                four times slower: units taken by idle replicas, against static shares
    driver      requests/s with a back-end that answers at once, with and without pictures kills
    random kills (SIGKILL) of replicas, nodes and the command: no answer on disk is lost or asked
    for again,
                and the result is that of a run that was not killed

Work is Kvasir-shaped: 24 questions about each picture of 720 × 576. Each run is a command in a
process of its own, with storing and scoring; answers/s are those of its manifest, from the first
request to the last answer on disk.

    python performance/fleet.py [scaling] [driver] [kills] [--kills 30] [--seed 0]

Exits with 1 if an answer was lost or asked for again, or a result differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kill_outcome import Outcome, contents, differing
from medtasks.adapters._base import MedtasksAdapter
from medtasks.adapters._requests import ChatRequest
from memory import prepared
from yardstick import speed

from medtasks.runs.find import run_folders
from medtasks.runs.replies import Reply
from medtasks.runs.unfinished import read_answers
from medtasks.scoring.run_folder import read_manifest

TASKS = ["kvasir_vqa_x1"]
REQUESTS, SECONDS, MOST, SLOWER = 960, 0.05, 4, 4
"""Requests and seconds of one; the most replicas, and how much slower the slow one is."""
UNIT = 8 * 512 + 1_024
"""Tokens of a unit of seven or eight requests."""
NODE = {"num_cpus": 1, "object_store_memory": 10**8}


class Sleeping(MedtasksAdapter):
    """Answers each request with its sample's id after ``seconds``.

    The first one that finds no directory ``slow`` is slower. Each request is logged with the
    process that got it.
    """

    runs_model = True

    def __init__(self, seconds: float = 0, slow: str = "", log: str = "", **_: Any) -> None:
        super().__init__()
        self._seconds, self._log = seconds, log
        with contextlib.suppress(FileExistsError):
            if slow:
                Path(slow).mkdir()
                self._seconds *= SLOWER

    def describe(self) -> dict[str, Any]:
        return {"model": "sleeping"}

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        replies = []
        for request in requests:
            if self._log:
                handle = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                os.write(handle, f"{request.sample_id} {os.getpid()}\n".encode())
                os.close(handle)
            time.sleep(self._seconds)
            replies.append(Reply(request.sample_id, finish="stop"))
        return replies


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[Any]:
    """A head without cores, and ``nodes`` of one core each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    try:
        for _ in range(nodes):
            made.add_node(**NODE)
        yield made
    finally:
        made.shutdown()


def command(
    output: Path,
    data: Path,
    arguments: str,
    launcher: tuple[str, ...] = (),
    how: str = "--command",
    **environment: str,
) -> subprocess.Popen[str]:
    """Start a run, or with ``--asking`` one that ends when all answers are on disk."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / "printed").open("w") as printed:
        return subprocess.Popen(
            [sys.executable, *launcher, __file__, how, str(output), arguments],
            env={
                **os.environ,
                "MEDTASKS_DATA": str(data),
                "MEDTASKS_CACHE": f"{data}/cache",
                **environment,
            },
            stdout=printed,
            stderr=printed,
        )


def run(output: Path, arguments: str) -> None:
    """The command, in this process; with a launcher, each process has its share of the requests."""
    from medtasks.core.settings import current_settings
    from medtasks.harness import run_tasks

    if current_settings().processes > 1:
        options = dict(part.split("=") for part in arguments.split(","))
        run_tasks(Sleeping(float(options["seconds"]), options["slow"]), arguments, TASKS, output)
    else:
        run_tasks("medtasks_ray", f"engine=fleet.Sleeping,{arguments}", TASKS, output)


def asking(output: Path, arguments: str) -> None:
    """:func:`run`, until all answers are on disk; prints seconds and CPU seconds of this
    process.
    """
    from medtasks.harness.requests import Requests

    def ask(self: Requests, lm: Any, requests: Any) -> Any:
        began = time.monotonic(), time.process_time()
        original(self, lm, requests)
        print(json.dumps([time.monotonic() - began[0], time.process_time() - began[1]]), flush=True)
        import ray

        ray.shutdown()
        os._exit(0)

    original, Requests._ask = Requests._ask, ask  # type: ignore[method-assign]
    run(output, arguments)


def result(output: Path) -> Path:
    """The newest result directory in ``output``.

    Raises:
        SystemExit: there is none; what the command printed is shown.
    """
    folders = run_folders(output)
    if not folders:
        sys.exit((output / "printed").read_text()[-4000:])
    return max(folders)


def seconds_of(*given: Any, **environment: Any) -> float:
    """Seconds that a run of :func:`command` took to answer."""
    command(*given, **environment).wait()
    return float(read_manifest(result(given[0])).usage.seconds or 0)


def scaling(work: Path) -> None:
    """Print answers/s by number of replicas, and with a slow one."""
    data = prepared(work / "scaling", REQUESTS)
    print(
        f"\n{REQUESTS} requests of {SECONDS} s\n\n| replicas | shares | s | answers/s | ideal | of "
        f"ideal |"
    )
    print("|---|---|---:|---:|---:|---:|")

    def row(replicas: str, shares: str, seconds: float, ideal: float) -> None:
        columns = [
            f"{seconds:.2f}",
            f"{REQUESTS / seconds:.1f}",
            f"{ideal:.1f}",
            f"{REQUESTS / seconds / ideal:.3f}",
        ]
        print(f"| {replicas} | {shares} | {' | '.join(columns)} |", flush=True)

    for replicas in (1, 2, 4):
        with cluster(replicas) as made:
            sleeping = (
                f"seconds={SECONDS},replicas={replicas},unit_tokens={UNIT},address={made.address}"
            )
            row(
                str(replicas),
                "units",
                seconds_of(work / f"{replicas}", data, sleeping),
                replicas / SECONDS,
            )
            if replicas == MOST:
                slower, ideal = (
                    f"{MOST}, one {SLOWER} times slower",
                    (MOST - 1 + 1 / SLOWER) / SECONDS,
                )
                row(
                    slower,
                    "units",
                    seconds_of(work / "slow", data, f"{sleeping},slow={work}/claimed"),
                    ideal,
                )
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(MOST))
    static = f"seconds={SECONDS},slow={work}/claimed-too"
    row(
        slower,
        "static",
        seconds_of(work / "static", data, static, launcher, ACCELERATE_USE_CPU="true"),
        ideal,
    )


def driver(work: Path) -> None:
    """Print requests/s of the command, with replicas that answer at once."""
    data = prepared(work / "driver", 16_022)
    print(
        "\n| 16,022 requests | replicas | s | requests/s | CPU s of the command | requests per CPU "
        "s |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for name, blind in (("without pictures", "1"), ("668 pictures", "0")):
        for replicas in (1, 2):
            output = work / f"driver-{blind}-{replicas}"
            command(
                output, data, f"replicas={replicas},cpus=0.5", how="--asking", MEDTASKS_BLIND=blind
            ).wait()
            seconds, cpu = json.loads((output / "printed").read_text().splitlines()[-1])
            columns = [
                f"{seconds:.2f}",
                f"{16_022 / seconds:,.0f}",
                f"{cpu:.2f}",
                f"{16_022 / cpu:,.0f}",
            ]
            print(f"| {name} | {replicas} | {' | '.join(columns)} |", flush=True)


@dataclass
class Kills(Outcome):
    """A command that is started again until it has finished, on a cluster whose nodes are
    replaced.
    """

    work: Path
    data: Path
    nodes: Any
    draw: random.Random

    def start(self) -> None:
        """Start the command, or start it again."""
        arguments = f"seconds={SECONDS / 2},replicas=3,unit_tokens={UNIT},log={self.log},address={self.nodes.address}"
        self._process = command(self.output, self.data, arguments)

    @property
    def output(self) -> Path:
        return self.work / f"killed-{self.finished}"

    @property
    def log(self) -> Path:
        return self.work / f"asked-{self.finished}"

    def asked(self) -> list[list[str]]:
        """Sample and process of each request that reached a replica."""
        return (
            [line.split() for line in self.log.read_text().splitlines()]
            if self.log.exists()
            else []
        )

    def stored(self) -> set[str]:
        """Samples whose answer is on disk."""
        answers = [
            answer
            for folder in self.output.rglob("*_unfinished")
            for answer in read_answers(folder)
        ]
        return {answer.reply.text for answer in answers if answer.reply.failed is None}

    def run_once(self, most: int, expected: dict[str, Any]) -> None:
        """Run the command until it has finished, with at most so many kills."""
        self.start()
        moments: list[tuple[set[str], int]] = []
        while True:
            self._wait(most)
            stored = self.stored()
            if self._process.poll() is None and self.kills.total() < most:
                moments.append((stored, len(self.asked())))
                self._kill()
                if not run_folders(self.output):
                    self.lost += len(stored - self.stored())
                    if self._process.poll() is not None:
                        self.start()
                    continue
            self._process.wait()
            manifest = read_manifest(result(self.output))
            if not any(facts.failed for facts in manifest.tasks.values()):
                break
            self.start()  # three replicas were killed while they answered the same unit
        asked = [sample for sample, _ in self.asked()]
        self.again += sum(len(on_disk & set(asked[position:])) for on_disk, position in moments)
        self.in_flight += len(asked) - len(set(asked))
        self.lost += REQUESTS - len(set(asked))
        self.differing += differing(expected, contents(self.output))
        self.finished += 1

    def _wait(self, most: int) -> None:
        """Until a random moment, or the end of the command."""
        if self.kills.total() == most:
            self._process.wait()
            return
        if self.draw.random() < 0.75:  # while requests are answered
            before = len(self.asked())
            while len(self.asked()) == before and self._process.poll() is None:
                time.sleep(0.02)
        until = time.monotonic() + self.draw.uniform(0, 5)
        while time.monotonic() < until and self._process.poll() is None:
            time.sleep(0.02)

    def _kill(self) -> None:
        what = self.draw.choice(("replica", "node", "command"))
        replicas = [int(process) for _, process in self.asked()[-10:]]
        if what == "replica" and replicas:
            with contextlib.suppress(ProcessLookupError):  # killed before, and not replaced yet
                os.kill(self.draw.choice(replicas), signal.SIGKILL)
                self.kills[what] += 1
        elif what == "node":
            nodes = sorted(self.nodes.worker_nodes, key=lambda node: str(node.unique_id))
            self.nodes.remove_node(self.draw.choice(nodes), allow_graceful=False)
            self.nodes.add_node(**NODE)
            self.kills[what] += 1
        elif what == "command":
            self._process.kill()
            self._process.wait()
            self.kills[what] += 1


def kills(work: Path, count: int, seed: int) -> bool:
    """Print the outcome of ``count`` kills; whether nothing was lost, asked again, or different."""
    data = prepared(work / "kills", REQUESTS)
    seconds_of(work / "whole", data, "replicas=1")
    expected = contents(work / "whole")
    with cluster(3) as nodes:
        case = Kills(work, data, nodes, random.Random(seed))
        while case.kills.total() < count:
            case.run_once(count, expected)
    print(
        f"\n{count} kills, seed {seed}: {dict(case.kills)}; {case.finished} runs finished, "
        f"{REQUESTS} requests each"
    )
    print(f"lost: {case.lost}; on disk and asked again: {case.again}; in flight and asked again: "
    f"{case.in_flight}; "
          f"files that differ: {case.differing}")  # fmt: skip
    return case.flawless


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["scaling", "driver", "kills"])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--asking", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for work, arguments in ((run, options.command), (asking, options.asking)):
        if arguments is not None:
            work(Path(arguments[0]), arguments[1])
            return 0
    print(speed())
    with tempfile.TemporaryDirectory(prefix="medtasks-fleet-") as folder:
        if "scaling" in options.parts:
            scaling(Path(folder))
        if "driver" in options.parts:
            driver(Path(folder))
        return int(
            "kills" in options.parts and not kills(Path(folder), options.kills, options.seed)
        )


if __name__ == "__main__":
    sys.exit(main())
