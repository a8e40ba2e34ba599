"""Judging during inference: a thread judges answers in batches and fills the verdict store."""

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
from medtasks.judge.settings import Budget
from medtasks.judge.store import VerdictStore
from medtasks.results.judged import is_asked
from medtasks.results.judging import shown_images
from medtasks.results.panel import problems
from medtasks.rubrics.rubric import load_rubric
from medtasks.rubrics.scales import Rubric
from medtasks.spec import load_spec, load_specs

BATCH = 256  # questions

_Answer = tuple[str, Mapping[str, Any], str]
"""Task, document, and the model's answer."""


class LiveJudging:
    """Asks judges about answers as they arrive, so that the verdicts are stored by the time the run is scored.

    Scoring asks for missing verdicts, so nothing is lost if this stops early: on an error, or if a batch gets no
    verdict at all. It is disabled if a judge has a budget, because each process would spend it again.

    Args:
        config: the panel.
        share: number of processes that share its concurrency.
    """

    def __init__(self, config: JudgeConfig, share: int = 1) -> None:
        self._config = config
        self._share = max(1, share)
        self._answers: queue.SimpleQueue[_Answer | None] = queue.SimpleQueue()
        self._rubrics: dict[str, tuple[Rubric, ...]] = {}
        self._thread: threading.Thread | None = None
        self._deadline = float("inf")
        self._stopped = any(one.budget != Budget() for one in config.judges.values())
        self.reason: str | None = None
        """Why it stopped early, if it did."""

    def take(self, task: str, document: Mapping[str, Any], text: str) -> None:
        """Queue a response for judging."""
        if self._stopped or not self._rubrics_of(task):
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="medtasks-judge", daemon=True)
            self._thread.start()
        self._answers.put((task, document, text))

    def finish(self, timeout: float) -> None:
        """Wait until all answers are judged, or for ``timeout`` seconds plus the batch in progress."""
        if self._thread is None:
            return
        self._deadline = time.monotonic() + timeout
        self._answers.put(None)
        self._thread.join()
        self._thread = None

    def _rubrics_of(self, task: str) -> tuple[Rubric, ...]:
        """The rubrics a task is judged under: those in the configuration, by default its first."""
        if task not in self._rubrics:
            known = load_specs()  # the harness may run tasks that are not ours
            own = known[task].metadata.rubrics if task in known else ()
            names = [name for name in self._config.rubrics if name in own] if self._config.rubrics else own[:1]
            self._rubrics[task] = tuple(load_rubric(name) for name in names)
        return self._rubrics[task]

    def _work(self) -> None:
        try:
            asyncio.run(self._judge())
        except MedtasksError as error:
            self.reason = str(error)
        except Exception as error:  # the answers are judged later anyway
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
                # This blocks the event loop, which has nothing else to do. Waiting in one of the loop's threads would
                # keep the interpreter from exiting when inference fails.
                batch, more = self._batch()
                for rubric, questions in self._questions(batch).values():
                    if time.monotonic() >= self._deadline:
                        return
                    asking = (adjudicate(questions, rubric, client, store) for client in clients.values())
                    asked = dict(zip(clients, await asyncio.gather(*asking), strict=True))
                    if not any(one.verdicts for one in asked.values()):
                        reasons = [reason for one in asked.values() for reason in one.unjudged.values()]
                        self.reason = " ".join(problems(asked, self._config.judges, store) or reasons[:1])
                        return

    def _batch(self) -> tuple[list[_Answer], bool]:
        """The waiting answers, at least one unless the queue has ended; and whether more may come."""
        batch: list[_Answer] = []
        while not batch or (len(batch) < BATCH and not self._answers.empty()):
            answer = self._answers.get()
            if answer is None:
                return batch, False
            batch.append(answer)
        return batch, True

    def _questions(self, batch: list[_Answer]) -> dict[str, tuple[Rubric, list[Question]]]:
        """The batch's questions by rubric, exactly as scoring will ask them."""
        questions: dict[str, tuple[Rubric, list[Question]]] = {}
        number = itertools.count()
        for task, document, response in batch:
            spec = load_spec(task)
            (filtered,) = filter_class(spec.filters[-1])().apply([[response]], [document])
            text = filtered if isinstance(filtered, str) else filtered[0]
            for rubric in self._rubrics_of(task):
                if is_asked(spec, rubric.name, document, text):
                    seen = rubric.media and any(one.images for one in self._config.judges.values())
                    images = shown_images(spec.metadata.benchmark, document) if seen else ()
                    question = Question(f"{document['sample_id']}/{next(number)}", document, text, images)
                    questions.setdefault(rubric.name, (rubric, []))[1].append(question)
        return questions
