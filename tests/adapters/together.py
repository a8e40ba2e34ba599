"""An engine for ``medtasks_ray`` whose replicas wait for each other; Ray's processes import it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from medtasks.adapters._base import ChatRequest, MedtasksAdapter

from medtasks.runs.replies import Reply

LONGEST = 100
"""Seconds after which a replica that waits for others fails its request."""


class Together(MedtasksAdapter):
    """Answers with its process; all requests but that of ``m0`` wait until ``count`` processes are answering.

    Each process leaves an empty file in ``folder`` when it is made, and one when it answers.
    """

    def __init__(self, folder: str, count: int) -> None:
        super().__init__()
        self.join_replicas("cpu")
        self._folder, self._count = Path(folder), count
        (self._folder / f"made-{os.getpid()}").touch()

    def describe(self) -> dict[str, Any]:
        return {"model": "together"}

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        return [self._reply(request.sample_id) for request in requests]

    def _reply(self, sample_id: str) -> Reply:
        until = time.monotonic() + LONGEST
        if sample_id != "m0":
            (self._folder / f"answering-{os.getpid()}").touch()
            while len(list(self._folder.glob("answering-*"))) < self._count:
                if time.monotonic() > until:
                    raise TimeoutError("no other replica got work")
                time.sleep(0.05)
        return Reply(str(os.getpid()))
