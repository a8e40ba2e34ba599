"""A running `medtasks view`, results to show, and a run under way that a test drives answer by
answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from boards import HOSTILE
from invented_runs import Invented, answered, edit_json, write_run_of
from medtasks.leaderboard.view.results_view import View
from medtasks.leaderboard.view.server import serve

from medtasks.benchmarks.documents import task_documents
from medtasks.runs.replies import Answer, Reply, Slot
from medtasks.runs.unfinished import SUFFIX, AnswerStore, RunPlan


@dataclass(frozen=True)
class Answered:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Server:
    """A server at ``address``, which ends in its token and a slash."""

    address: str
    view: View

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    @property
    def token(self) -> str:
        return urlsplit(self.address).path.strip("/")

    def ask(
        self, path: str, method: str = "GET", whole: bool = False, body: bytes = b"", **headers: str
    ) -> Answered:
        """The answer for ``path`` below the token, or for the ``whole`` path as it is, which is
        sent unchanged.
        """
        connection = http.client.HTTPConnection(self.host, timeout=120)
        try:
            target = path if whole else f"/{self.token}/{path}"
            connection.putrequest(method, target, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


@contextmanager
def serving(paths: Sequence[Path]) -> Iterator[Server]:
    """A server of ``paths`` on a port of its own, in a thread of this process."""
    view, addresses = View(paths), queue.Queue[str]()
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve(view, 0, addresses.put))

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        address = addresses.get(timeout=300)
        view.wait()
        yield Server(address, view)
    finally:
        view.close()
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def write_hostile_run(root: Path, model: Invented, tasks: Sequence[str]) -> None:
    """A run whose model, and whose first sample of the first task, are hostile text wherever text
    of others can be.
    """
    folder = write_run_of(root, model, list(tasks))

    def hostile(sample: dict[str, Any]) -> None:
        sample.update(
            sample_id=f"{HOSTILE}/../x?&#%", responses=[HOSTILE], filtered=HOSTILE, cluster=HOSTILE
        )
        sample.update(prompt=HOSTILE, target=HOSTILE)
        sample["document"].update(question=HOSTILE, choices={"A": HOSTILE}, more=[HOSTILE])

    edit_json(folder / "samples" / f"{tasks[0]}.jsonl", hostile, line=0)
    edit_json(folder / "manifest.json", lambda told: told["model"].update(pretrained=HOSTILE))
    (folder.parent / f"{HOSTILE[:30].replace('/', '')}_medtasks").mkdir()


class RunUnderWay:
    """The directory of an unfinished run of ``groups``, to which a test adds the model's
    answers.
    """

    def __init__(self, root: Path, model: Invented, groups: Sequence[str]) -> None:
        self.manifest, self.samples = answered(model, groups)
        self.documents = {task: task_documents(task) for task in self.samples}
        self.folder = root / f"0123456789ab{SUFFIX}"
        self._store = AnswerStore(self.folder)
        numbers = {task: tuple(range(len(found))) for task, found in self.documents.items()}
        self._store.write_plan(RunPlan(manifest=self.manifest, documents=numbers))

    def answer(
        self, task: str, numbers: Sequence[int], text: str | None = None, failed: str | None = None
    ) -> None:
        """Add replies to documents: the model's own, ``text``, or the reason of a failure."""
        samples = {sample.sample_id: sample for sample in self.samples[task]}
        for number in numbers:
            sample = samples[self.documents[task][number]["sample_id"]]
            reply = (
                Reply(sample.responses[0] if text is None else text)
                if failed is None
                else Reply.failure(failed)
            )
            self._store.add([Answer(Slot(task, number, 0, sample.prompt), reply)])

    def stop(self) -> None:
        """As a run that was killed: nobody holds its directory, and the last reply is old."""
        self._store.close()
        before = time.time() - 3600
        for path in self.folder.iterdir():
            os.utime(path, (before, before))

    def finish(self) -> None:
        """Remove the directory, as a run does once its results are written."""
        self._store.remove()
