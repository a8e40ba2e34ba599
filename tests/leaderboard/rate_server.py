"""Results with a judge's verdicts, a running `medtasks rate`, and what a rater reads of it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from invented_runs import MODELS, write_runs
from medtasks.leaderboard.rate.opening import answers_to_rate, questions_to_rate
from medtasks.leaderboard.rate.options import RatingOptions
from medtasks.leaderboard.rate.server import serve
from medtasks.leaderboard.rate.session import RatingSession
from view_server import Answered

RUBRIC = "kvasir_aspects"
TASKS = ("kvasir_vqa_x1_level1", "kvasir_vqa_x1_level3")
RATED_MODELS = MODELS[1:4:2]


def write_judged_runs(root: Path) -> dict[str, Path]:
    """Two models' runs with the verdicts of the stub judge."""
    return write_runs(root, RATED_MODELS, TASKS)


def options(results: Path, rater: str = "ann", **more: Any) -> RatingOptions:
    return RatingOptions(
        **{"rubric": RUBRIC, "rater": rater, "folder": results / "ratings", **more}
    )


@dataclass(frozen=True)
class RateServer:
    """A server at ``address``, which ends in its token and a slash; ``reported`` are the errors that
    it printed.
    """

    address: str
    session: RatingSession
    reported: list[str]

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def ask(self, path: str, form: dict[str, str] | None = None, **headers: str) -> Answered:
        """The answer for ``path`` below the token; ``form`` is sent from our own page, unless the
        headers say otherwise.
        """
        connection = http.client.HTTPConnection(self.host, timeout=120)
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        body = None
        if form is not None:
            body = urlencode(form)
            told = {"Origin": f"http://{self.host}", **told}
            told = {"Content-Type": "application/x-www-form-urlencoded", **told}
        try:
            target = urlsplit(self.address).path + path
            connection.request("GET" if form is None else "POST", target, body, told)
            answer = connection.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def rate(self, position: int, **form: str) -> Answered:
        """Rate an answer; without scores, every aspect gets 1."""
        if not any(name.startswith("aspect") for name in form) and "do" not in form:
            for number in range(len(self.session.asked(position).aspects)):
                form[f"aspect-{number}"] = "1"
        names = {name.replace("aspect_", "aspect-"): value for name, value in form.items()}
        return self.ask(f"rating?answer={position}", {"do": "save", **names})


@contextmanager
def rating(
    paths: Sequence[Path], asked: RatingOptions, questions: Path | None = None
) -> Iterator[RateServer]:
    """A server of a rater's session, in a thread of this process."""
    opened = (
        answers_to_rate(paths, asked)
        if questions is None
        else questions_to_rate(paths, questions, asked)
    )
    with opened as session:
        addresses, reported = queue.Queue[str](), list[str]()
        loop = asyncio.new_event_loop()
        task = loop.create_task(serve(session, 0, addresses.put, reported.append))

        def run() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield RateServer(addresses.get(timeout=300), session, reported)
        finally:
            loop.call_soon_threadsafe(task.cancel)
            thread.join()


@contextmanager
def rating_process(results: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and its address; it is killed in the end."""
    command = [sys.executable, "-m", "medtasks", "rate", str(results), "--no-browser", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("http://"):
                yield process, line.split()[0]
                return
        raise AssertionError(f"no address was printed; exit code {process.wait()}")
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
