"""From questions to verdicts.

Stored verdicts are not asked for again, invalid ones get one repair, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from medtasks.catalog.judge_prompt import judge_prompt, verdict_schema
from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.judge.client import JudgeClient, Spent, Unanswered
from medtasks.judge.endpoint import Messages
from medtasks.judge.json_in_text import Invalid
from medtasks.judge.reply import Ending, JudgeAnswer
from medtasks.judge.settings import JudgeSettings, judge_identity
from medtasks.judge.store import REPAIR, StoredVerdict, VerdictStore
from medtasks.judge.verdict_parsing import parse_verdict, repair_request
from medtasks.runs.verdict import Cause, Verdict

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

Progress = Callable[[int, int, Spent, "str | None"], None]
"""Called with the number of questions that are done and of all, with what this call has spent, and
why the judge is not answering (or None).
"""

OPEN_PER_SLOT = 3
"""Open questions per request in flight: some are rendered, some wait before a retry."""
TICK = 1.0  # seconds between reports
JPEG_QUALITY = 95
_SORTED = json.JSONEncoder(sort_keys=True)


class ImageSource(NamedTuple):
    """An image for a judge.

    ``key`` is its hash, for the verdict's key. ``load`` returns it in RGB; it is called in another
    thread, once per attempt.
    """

    key: str
    load: Callable[[], Image]


@dataclass(frozen=True)
class Question:
    """One response to judge, with a unique ``name``.

    ``document`` is the sample as rubrics see it (with ``target``).
    """

    name: str
    document: Mapping[str, Any]
    response: str
    images: tuple[ImageSource, ...] = ()


def verdict_key(
    settings: JudgeSettings, rubric: str, prompt: str, images: Sequence[str] = ()
) -> str:
    """SHA-256 over all that determines a verdict.

    That is the judge's identity, the rubric's hash, the prompt and the images.
    """
    parts = {**judge_identity(settings, images=bool(images)), "rubric": rubric, "prompt": prompt}
    if images:
        parts["image_keys"] = list(images)
    return hashlib.sha256(_SORTED.encode(parts).encode()).hexdigest()


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
            # a batch API has 30,000 slots
            workers = min(len(questions), OPEN_PER_SLOT * client.settings.in_flight)
            await all_or_none([judging.work() for _ in range(workers)])
        finally:
            ticking.cancel()
    return {question.name: judging.done[question.name] for question in questions}


def _require_unique_names(questions: Sequence[Question]) -> None:
    counts = Counter(question.name for question in questions)
    for name, count in counts.items():
        if count > 1:
            raise UsageError(f"question {name!r} is duplicated; judge each response once")


class _Judging:
    """The state that the concurrent workers of `judge_questions` share."""

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
        if self._progress is not None:
            spent = self._client.spent.since(self._spent_before)
            self._progress(len(self.done), self._total, spent, self._client.waiting_for)

    async def report_regularly(self) -> None:
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
        shows_images = self._rubric.media and self._client.settings.images
        images = question.images if shows_images else ()
        image_keys = [image.key for image in images]
        key = verdict_key(self._client.settings, self._rubric_hash, prompt, image_keys)
        if key in self._verdicts:
            self._finish([question.name], self._verdicts[key])
        elif key in self._names_awaiting:
            self._names_awaiting[key].append(question.name)
        else:
            self._names_awaiting[key] = [question.name]
            case = _Case(
                key, prompt, images, question.document, self._rubric, self._client, self._store
            )
            verdict = await case.judged(again=self._again)
            self._verdicts[key] = verdict
            self._finish(self._names_awaiting.pop(key), verdict)

    def _finish(self, names: Sequence[str], verdict: Verdict) -> None:
        for name in names:
            self.done[name] = verdict
        self.report()


@dataclass
class _Case:
    """A prompt to the judge, and the stored answers to it and to its repair request, in order."""

    key: str
    prompt: str
    images: Sequence[ImageSource]
    document: Mapping[str, Any]
    rubric: Rubric
    client: JudgeClient
    store: VerdictStore
    answers: list[StoredVerdict] = field(init=False)

    def __post_init__(self) -> None:
        self.answers = self.store.get(self.key)

    async def judged(self, *, again: bool) -> Verdict:
        """The verdict on all questions with this key, or why there is none."""
        try:
            reading = await self._reading(again=again)
        except Unanswered as failure:
            return self._without_verdict(failure.cause, str(failure))
        if isinstance(reading, Cause):
            return self._without_verdict(reading, self._reason_for(reading))
        prompt_tokens, completion_tokens = self._tokens()
        return Verdict(
            key=self.key,
            scores=reading.scores,
            reasons=reading.reasons,
            repaired=self.answers[-1].key != self.key,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )

    def _without_verdict(self, cause: Cause, reason: str) -> Verdict:
        prompt_tokens, completion_tokens = self._tokens()
        return Verdict(
            key=self.key,
            unjudged=reason,
            cause=cause,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )

    def _tokens(self) -> tuple[int, int]:
        """The tokens of the stored answers: of their prompts, and of their completions."""
        prompt_tokens = sum(answer.prompt_tokens for answer in self.answers)
        completion_tokens = sum(answer.completion_tokens for answer in self.answers)
        return prompt_tokens, completion_tokens

    async def _reading(self, *, again: bool) -> Verdict | Cause:
        """The verdict in the stored answer or in the judge's, or why that is not a verdict.

        An invalid answer is asked about once more.
        """
        if again and self.answers and not isinstance(self._latest(), Verdict):
            self.answers = []
        if not self.answers:
            await self._ask()
        reading = self._latest()
        if isinstance(reading, Invalid) and self.answers[-1].key == self.key:
            await self._ask_for_repair(reading)
            reading = self._latest()
        return Cause.INVALID if isinstance(reading, Invalid) else reading

    def _latest(self) -> Verdict | Invalid | Cause:
        """The reading of the latest answer.

        It is parsed again because the parser may have improved; a verdict stays what it was.
        """
        answer = self.answers[-1]
        if answer.parsed is not None:
            return parse_verdict(answer.parsed, self.rubric, self.document)
        return self._parsed(answer.answer, answer.ending)

    def _parsed(self, text: str, ending: Ending) -> Verdict | Invalid | Cause:
        if ending is Ending.REFUSED:
            return Cause.REFUSED
        was_cut = ending is Ending.CUT
        reading = parse_verdict(text, self.rubric, self.document, was_cut=was_cut)
        if was_cut and isinstance(reading, Invalid):
            return Cause.CUT
        return reading

    async def _ask(self) -> None:
        answer = await self._answer(self.key)
        self.store.forget_repair(self.key)  # of an earlier answer
        self._keep(self.key, answer)

    async def _ask_for_repair(self, invalid: Invalid) -> None:
        key = self.key + REPAIR
        previous = self.answers[-1].answer
        repair = repair_request(previous, invalid, verdict_schema(self.rubric, self.document))
        answer = await self._answer(
            key, {"role": "assistant", "content": previous}, {"role": "user", "content": repair}
        )
        self._keep(key, answer)

    async def _answer(self, key: str, *more: dict[str, Any]) -> JudgeAnswer:
        """The judge's answer to the prompt, and to ``more`` messages after it."""

        def messages() -> Messages:
            return user_message(self.prompt, self.images, self.client.settings.image_side), *more

        schema = verdict_schema(self.rubric, self.document)
        # images are read when the request is sent; text alone needs no thread
        return await self.client.answer(key, messages if self.images else messages(), schema)

    def _keep(self, key: str, answer: JudgeAnswer) -> None:
        """Store an answer; a verdict that another process stored earlier stays."""
        parsed = reason = None
        reading = self._parsed(answer.text, answer.ending)
        if isinstance(reading, Verdict):
            parsed = _as_json(reading)
        elif isinstance(reading, Invalid):
            reason = str(reading)
        else:
            reason = answer.ending.value
        tokens = answer.prompt_tokens, answer.completion_tokens
        row = StoredVerdict(key, self.prompt, answer.text, parsed, reason, *tokens)
        was_stored = self.store.put(row)
        self.answers.append(row if was_stored else self.store.get(key)[0])

    def _reason_for(self, cause: Cause) -> str:
        """The reason that is stored with the response and counted by its kind."""
        kind: str = cause.value
        if cause is not Cause.CUT:
            return kind
        limit = self.client.settings.token_limit
        fix = "set `max_tokens`"
        if limit is not None:
            fix = f"raise `{limit.field}` above {limit.most:,}"
        return f"{kind}: {fix} in the judge's settings"


def _as_json(verdict: Verdict) -> str:
    aspects: dict[str, Any] = dict(verdict.scores or {})
    for name, reason in verdict.reasons.items():
        aspects[name] = {"reason": reason, "score": aspects[name]}
    return json.dumps(aspects, sort_keys=True)


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


def user_message(text: str, images: Sequence[ImageSource], side: int) -> dict[str, Any]:
    """The user's message: ``images`` in their order, then ``text``; without images the text alone.

    Images are JPEG, reduced to ``side`` pixels (Lanczos).
    """
    if not images:
        return {"role": "user", "content": text}
    content: list[dict[str, Any]] = []
    for source in images:
        data = base64.b64encode(_jpeg(source, side)).decode("ascii")
        content.append(
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
        )
    content.append({"type": "text", "text": text})
    return {"role": "user", "content": content}


def _jpeg(source: ImageSource, side: int) -> bytes:
    from PIL.Image import Resampling

    stream = io.BytesIO()
    try:
        image = source.load().copy()  # the loader's may be shared
        image.thumbnail((side, side), Resampling.LANCZOS, reducing_gap=None)
        image.save(stream, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    except Exception as error:  # loaders read files, archives and videos, which fail in many ways
        why = error or type(error).__name__
        raise MediaError(f"image {source.key[:16]} cannot be shown to the judge: {why}") from error
    return stream.getvalue()
