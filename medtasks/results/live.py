"""Judging while inference goes on: a thread beside the model fills the verdict store, batch by batch of answers."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any

from medtasks.errors import MedtasksError
from medtasks.filters import filter_class
from medtasks.judge.adjudicate import adjudicate
from medtasks.judge.client import JudgeClient
from medtasks.judge.config import JudgeConfig, default_store
from medtasks.judge.judgement import Question
from medtasks.judge.rubric import Rubric, load_rubric
from medtasks.judge.settings import Budget
from medtasks.judge.store import VerdictStore
from medtasks.results.judge_problems import problems
from medtasks.results.judged import is_asked
from medtasks.results.judging import shown_images
from medtasks.spec import load_spec, load_specs

__all__ = ["LiveJudging"]

AT_ONCE = 256  # questions in one go


class LiveJudging:
    """Asks judges about answers as they come, so that the verdicts are there when the run is scored.

    It only fills the verdict store; scoring asks for what is missing. So nothing is lost when it stops early: on an
    error, or where the judge gives no verdict at all. A panel with a budget is not asked here, for each process would
    spend it anew.

    Args:
        config: the panel.
        share: among how many processes its concurrency is divided.
    """

    def __init__(self, config: JudgeConfig, share: int = 1) -> None:
        self._config = config
        self._share = max(1, share)
        self._answers: queue.SimpleQueue[tuple[str, Mapping[str, Any], str] | None] = queue.SimpleQueue()
        self._rubrics: dict[str, tuple[Rubric, ...]] = {}
        self._thread: threading.Thread | None = None
        self._deadline = float("inf")
        self._stopped = any(one.budget != Budget() for one in config.judges.values())
        self.reason: str | None = None
        """Why it stopped early."""

    def take(self, task: str, document: Mapping[str, Any], text: str) -> None:
        """Note an answer of the model; returns at once."""
        if self._stopped or not self._asked_of(task):
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="medtasks-judge", daemon=True)
            self._thread.start()
        self._answers.put((task, document, text))

    def finish(self, timeout: float) -> None:
        """Wait until every answer was judged, or ``timeout`` seconds; what is being asked under one rubric then, up to
        256 questions, is asked to the end."""
        if self._thread is None:
            return
        self._deadline = time.monotonic() + timeout
        self._answers.put(None)
        self._thread.join()
        self._thread = None

    def _asked_of(self, task: str) -> tuple[Rubric, ...]:
        """The rubrics that are judged of a task: those that were asked for, else its first."""
        if task not in self._rubrics:
            known = load_specs()  # the harness may ask the same back-end about tasks that are nobody's here
            own = known[task].metadata.rubrics if task in known else ()
            names = [name for name in self._config.rubrics if name in own] if self._config.rubrics else own[:1]
            self._rubrics[task] = tuple(load_rubric(name) for name in names)
        return self._rubrics[task]

    def _work(self) -> None:
        try:
            asyncio.run(self._judge())
        except MedtasksError as error:
            self.reason = str(error)
        except Exception as error:  # whatever it is, the answers are judged once all are there
            self.reason = f"{type(error).__name__}: {error}"
        finally:
            self._stopped = True

    async def _judge(self) -> None:
        clients = {
            name: JudgeClient(one.model_copy(update={"concurrency": max(1, one.concurrency // self._share)}))
            for name, one in self._config.judges.items()
        }
        with VerdictStore(self._config.store or default_store()) as store:
            more = True
            while more and time.monotonic() < self._deadline:
                # This holds up the loop, on which nothing else is under way; a thread of the loop's that waits here
                # would keep the interpreter from ending where inference fails.
                batch, more = self._batch()
                for rubric, questions in self._questions(batch):
                    if time.monotonic() >= self._deadline:
                        return
                    given = await asyncio.gather(
                        *(adjudicate(questions, rubric, client, store) for client in clients.values())
                    )
                    if not any(one.verdicts for one in given):
                        found = dict(zip(clients, given, strict=True))
                        reasons = [why for one in given for why in one.unjudged.values()]
                        self.reason = " ".join(problems(found, self._config.judges, store) or reasons[:1])
                        return

    def _questions(self, batch: list[tuple[str, Mapping[str, Any], str]]) -> list[tuple[Rubric, list[Question]]]:
        """The batch's questions by rubric, exactly as scoring will put them."""
        found: dict[str, tuple[Rubric, list[Question]]] = {}
        number = itertools.count()
        for task, document, said in batch:
            spec = load_spec(task)
            step = filter_class(spec.filters[-1])()
            (text,) = step.apply([[said]], [document])
            text = text if isinstance(text, str) else text[0]
            for rubric in self._asked_of(task):
                if is_asked(spec, rubric.name, document, text):
                    images = shown_images(spec.metadata.benchmark, document) if self._seen(rubric) else ()
                    question = Question(f"{document['sample_id']}/{next(number)}", document, text, images)
                    found.setdefault(rubric.name, (rubric, []))[1].append(question)
        return list(found.values())

    def _seen(self, rubric: Rubric) -> bool:
        return rubric.media and any(one.images for one in self._config.judges.values())

    def _batch(self) -> tuple[list[tuple[str, Mapping[str, Any], str]], bool]:
        """What is waiting, at least one answer unless that was all; and whether more may come."""
        found: list[tuple[str, Mapping[str, Any], str]] = []
        while not found or (len(found) < AT_ONCE and not self._answers.empty()):
            entry = self._answers.get()
            if entry is None:
                return found, False
            found.append(entry)
        return found, True
