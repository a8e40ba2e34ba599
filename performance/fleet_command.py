"""The command that `fleet.py` measures and kills: ``medtasks_ray`` on a local Ray cluster, with a
back-end that sleeps instead of computing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medtasks.adapters._base import MedtasksAdapter
from medtasks.adapters._requests import ChatRequest

from medtasks.runs.find import run_folders
from medtasks.runs.replies import Reply
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

    ray_cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    try:
        for _ in range(nodes):
            ray_cluster.add_node(**NODE)
        yield ray_cluster
    finally:
        ray_cluster.shutdown()


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
    settings = {"MEDTASKS_DATA": str(data), "MEDTASKS_CACHE": f"{data}/cache", **environment}
    with (output / "printed").open("w") as printed:
        return subprocess.Popen(
            [sys.executable, *launcher, __file__, how, str(output), arguments],
            env={**os.environ, **settings},
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
        run_tasks("medtasks_ray", f"engine=fleet_command.Sleeping,{arguments}", TASKS, output)


def asking(output: Path, arguments: str) -> None:
    """:func:`run`, until all answers are on disk; prints seconds and CPU seconds of this
    process.
    """
    from medtasks.harness.requests import Requests

    def ask(self: Requests, lm: Any, requests: Any) -> Any:
        began, cpu_before = time.monotonic(), time.process_time()
        original(self, lm, requests)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu_before
        print(json.dumps([seconds, cpu]), flush=True)
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


def seconds_of(
    output: Path, data: Path, arguments: str, launcher: tuple[str, ...] = (), **environment: str
) -> float:
    """Seconds that a run of :func:`command` took to answer."""
    command(output, data, arguments, launcher, **environment).wait()
    return float(read_manifest(result(output)).usage.seconds or 0)


def main() -> None:
    """Run the command that :func:`command` starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", nargs=2)
    parser.add_argument("--asking", nargs=2)
    options = parser.parse_args()
    for work, arguments in ((run, options.command), (asking, options.asking)):
        if arguments is not None:
            work(Path(arguments[0]), arguments[1])


if __name__ == "__main__":
    main()
