"""From questions to verdicts.

Stored verdicts are not asked for again, invalid ones get one repair, and nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from medtasks.catalog.judge_prompt import judge_prompt
from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.core.errors import DataError, UsageError
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.store import VerdictStore
from medtasks.judge.user_message import ImageSource
from medtasks.judge.verdict_request import VerdictRequest, verdict_key
from medtasks.runs.verdict import Cause, Verdict

T = TypeVar("T")

Progress = Callable[[int, int, Spent, "str | None"], None]
"""Called with the number of questions that are done and of all, with what this call has spent, and
why the judge is not answering (or None).
"""

OPEN_PER_SLOT = 3
"""Open questions per request in flight: some are rendered, some wait before a retry."""
TICK = 1.0  # seconds between reports


@dataclass(frozen=True)
class Question:
    """One response to judge, with a unique ``name``.

    ``document`` is the sample as rubrics see it (with ``target``).
    """

    name: str
    document: Mapping[str, Any]
    response: str
    images: tuple[ImageSource, ...] = ()


async def judge_questions(
    questions: Sequence[Question],
    rubric: Rubric,
    client: JudgeClient,
    store: VerdictStore,
    progress: Progress | None = None,
    *,
    again: bool = False,
) -> dict[str, Verdict]:
    """The verdict on every question under ``rubric``, by name in the order of the questions.

    Each answer is stored before anything else happens. An invalid answer gets one repair request at
    once. A question that cannot be judged (refused, cut off, still invalid, failed, out of budget,
    images missing, or a document that does not fit the rubric) is unjudged, with its reason. Stored
    verdicts are not asked for again; with ``again``, questions are whose stored answer is not a
    verdict. Questions with the same prompt and images are asked once. ``progress`` is called as
    questions are done and once a second.

    Raises:
        UsageError: a question's name is duplicated, or the API key is malformed.
        DataError: as :class:`VerdictStore`.
        MedtasksError: the rubric's template cannot be rendered.
    """
    _require_unique_names(questions)
    judging = _Judging(questions, rubric, client, store, progress, again=again)
    async with client:
        ticking = asyncio.ensure_future(judging.report_regularly())
        try:
            # a batch API has more slots than most runs have questions
            workers = min(len(questions), OPEN_PER_SLOT * client.settings.in_flight)
            await all_or_none([judging.work() for _ in range(workers)])
        finally:
            ticking.cancel()
    return {question.name: judging.done[question.name] for question in questions}


def _require_unique_names(questions: Sequence[Question]) -> None:
    """Refuse two questions of the same name."""
    counts = Counter(question.name for question in questions)
    for name, count in counts.items():
        if count > 1:
            raise UsageError(f"question {name!r} is duplicated; judge each response once")


class _Judging:
    """The state that the concurrent workers of `judge_questions` share; arguments are theirs."""

    def __init__(
        self,
        questions: Sequence[Question],
        rubric: Rubric,
        client: JudgeClient,
        store: VerdictStore,
        progress: Progress | None,
        *,
        again: bool,
    ) -> None:
        self.done: dict[str, Verdict] = {}
        self._total = len(questions)
        self._waiting = iter(questions)
        self._rubric = rubric
        self._rubric_hash = rubric_hash(rubric)
        self._client = client
        self._store = store
        self._again = again
        self._progress = progress
        self._spent_before = replace(client.spent)
        self._verdicts: dict[str, Verdict] = {}
        """By verdict key."""
        self._names_awaiting: dict[str, list[str]] = {}
        """The questions that await a verdict that was asked for, by its key."""

    def report(self) -> None:
        """Call ``progress``, if there is one, with the present state."""
        if self._progress is not None:
            spent = self._client.spent.since(self._spent_before)
            self._progress(len(self.done), self._total, spent, self._client.waiting_for)

    async def report_regularly(self) -> None:
        """Report progress once a second, until the task is cancelled."""
        while True:
            await asyncio.sleep(TICK)
            self.report()

    async def work(self) -> None:
        """Judge waiting questions one at a time, until there are none."""
        for question in self._waiting:
            await asyncio.sleep(0)  # thousands of stored verdicts must not delay arriving answers
            await self._judge(question)

    async def _judge(self, question: Question) -> None:
        """Judge a question, unless its verdict is there or another worker is asking for it."""
        try:
            prompt = judge_prompt(self._rubric, question.document, question.response)
        except DataError as error:
            self._finish([question.name], Verdict(unjudged=str(error), cause=Cause.DOCUMENT))
            return
        images = self._images_shown(question)
        image_keys = [image.key for image in images]
        key = verdict_key(self._client.settings, self._rubric_hash, prompt, image_keys)
        if key in self._verdicts:
            self._finish([question.name], self._verdicts[key])
        elif key in self._names_awaiting:
            self._names_awaiting[key].append(question.name)
        else:
            self._names_awaiting[key] = [question.name]
            request = VerdictRequest(
                key, prompt, images, question.document, self._rubric, self._client, self._store
            )
            verdict = await request.verdict(again=self._again)
            self._verdicts[key] = verdict
            self._finish(self._names_awaiting.pop(key), verdict)

    def _images_shown(self, question: Question) -> tuple[ImageSource, ...]:
        """The question's images, if both rubric and judge are for images."""
        if self._rubric.media and self._client.settings.images:
            return question.images
        return ()

    def _finish(self, names: Sequence[str], verdict: Verdict) -> None:
        """Note the verdict on the questions with these names, and report progress."""
        for name in names:
            self.done[name] = verdict
        self.report()


async def all_or_none(work: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """The results of all coroutines.

    The first error cancels the others, and is raised once they have ended.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
