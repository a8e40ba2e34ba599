"""The command of one back-end that is killed, and the requests that reached its model or server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kill_outcome import Outcome
from logging_server import append_keys


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

        answers: list[Any] = []
        for folder in output.rglob("*_unfinished"):
            answers += read_answers(folder)
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

    from medtasks.harness.request_slots import REPEAT

    kind = MODEL_REGISTRY_V2.get_model_class(model)
    is_ours = hasattr(kind, "answer")
    name = "answer" if is_ours else "generate_until"
    original = getattr(kind, name)

    def key(request: Any) -> str:
        if is_ours:
            return _key(request.task, request.doc_id, request.repeat, request.prompt)
        repeat = (request.metadata or {}).get(REPEAT, 0)
        return _key(request.task_name, request.doc_id, repeat, request.args[0])

    def logged(self: Any, requests: list[Any]) -> Any:
        append_keys(log, [key(request) for request in requests])
        return original(self, requests)

    setattr(kind, name, logged)
