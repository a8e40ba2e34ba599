"""From questions to verdicts: stored ones are not asked again, invalid ones get one repair, nothing is lost."""

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

from medtasks.catalog.rubric import Rubric, judge_prompt, rubric_hash, verdict_schema
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.judge.client import JudgeClient, Spent, Unanswered
from medtasks.judge.endpoint import Messages
from medtasks.judge.settings import JudgeSettings, judge_identity
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.judge.verdict import Invalid, Verdict, parse_verdict, repair_request

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

Progress = Callable[[int, int, Spent, "str | None"], None]
"""Called with questions done, all questions, what this call has spent, and why the judge is not answering (or None)."""

REFUSED = "refused"
INVALID = "invalid after one repair"
REPAIR = ":repair"  # suffix of the key of a repair request
OPEN_PER_SLOT = 3  # open questions per request in flight: some are rendered, some wait before a retry
TICK = 1.0  # seconds between reports
JPEG_QUALITY = 95
_SORTED = json.JSONEncoder(sort_keys=True)


class ImageSource(NamedTuple):
    """An image for a judge: its hash, for the verdict's key, and what returns it in RGB, in another thread once per
    attempt."""

    key: str
    load: Callable[[], Image]


@dataclass(frozen=True)
class Question:
    """One response to judge; ``name`` is unique. ``document`` is the sample as rubrics see it (with ``target``).
    ``unit`` is task and sample id, if this is the sample's first response: human annotations are about that one."""

    name: str
    document: Mapping[str, Any]
    response: str
    images: tuple[ImageSource, ...] = ()
    cluster: str = ""
    unit: tuple[str, str] | None = None


@dataclass
class Verdicts:
    """One judge's verdict on every question, by name in the order of the questions, and the tokens spent."""

    # not in the repr: asyncio.run computes one of its result, which is slow for thousands of verdicts
    by_question: dict[str, Verdict] = field(default_factory=dict, repr=False)
    spent: Spent = field(default_factory=Spent)

    @property
    def valid(self) -> dict[str, Verdict]:
        return {name: verdict for name, verdict in self.by_question.items() if verdict.scores is not None}

    @property
    def unjudged(self) -> dict[str, str]:
        return {name: one.unjudged for name, one in self.by_question.items() if one.unjudged is not None}

    @property
    def repaired(self) -> int:
        """Number of questions whose verdict needed a repair, now or before."""
        return sum(verdict.repaired for verdict in self.by_question.values())


def verdict_key(settings: JudgeSettings, rubric: str, prompt: str, images: Sequence[str] = ()) -> str:
    """SHA-256 over all that determines a verdict: the judge's identity, the rubric's hash, the prompt, the images."""
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
) -> Verdicts:
    """Judge every question under ``rubric``; each answer is stored before anything else happens.

    An invalid answer gets one repair request at once. A question that cannot be judged (refused, still invalid, failed,
    out of budget, images missing, or a document that does not fit the rubric) is unjudged, with its reason. Stored
    verdicts are not asked for again; questions with the same prompt and images are asked once. ``progress`` is called
    as questions are done and once a second.

    Raises:
        UsageError: a question's name is duplicated, or the API key is malformed.
        DataError: as :class:`VerdictStore`.
        MedtasksError: the rubric's template cannot be rendered.
    """
    run = _Run(questions, rubric, client, store, progress)
    async with client:
        ticking = asyncio.ensure_future(run.tick())
        try:
            workers = min(len(questions), OPEN_PER_SLOT * client.settings.in_flight)  # a batch API has 30,000 slots
            await all_or_none([run.work() for _ in range(workers)])
        finally:
            ticking.cancel()
    return Verdicts({question.name: run.done[question.name] for question in questions}, client.spent.since(run.before))


class _Case(NamedTuple):
    """One request to the judge, for all questions with the same prompt, and the answers so far."""

    key: str
    prompt: str
    document: Mapping[str, Any]
    images: tuple[ImageSource, ...]
    answers: list[StoredVerdict]


@dataclass
class _Run:
    """The state of `judge_questions`: ``cases`` has by key the verdict, or the names of the questions that await it."""

    questions: Sequence[Question]
    rubric: Rubric
    client: JudgeClient
    store: VerdictStore
    progress: Progress | None
    done: dict[str, Verdict] = field(default_factory=dict)
    cases: dict[str, list[str] | Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, count in Counter(question.name for question in self.questions).items():
            if count > 1:
                raise UsageError(f"question {name!r} is duplicated; judge each response once")
        self.rubric_hash = rubric_hash(self.rubric)
        self.before = replace(self.client.spent)
        self.waiting = iter(self.questions)

    async def work(self) -> None:
        """Judge waiting questions, one at a time, unless another one has the verdict, or awaits it."""
        for question in self.waiting:
            await asyncio.sleep(0)  # thousands of stored verdicts must not delay arriving answers
            try:
                prompt = judge_prompt(self.rubric, question.document, question.response)
            except DataError as error:
                self._finish([question.name], Verdict(unjudged=str(error)))
                continue
            images = question.images if self.rubric.media and self.client.settings.images else ()
            key = verdict_key(self.client.settings, self.rubric_hash, prompt, [image.key for image in images])
            names = self.cases.setdefault(key, [])
            if isinstance(names, Verdict):
                self._finish([question.name], names)
                continue
            names.append(question.name)
            if len(names) == 1:
                stored = self.store.get([key, key + REPAIR]).values()
                verdict = await self._judge(_Case(key, prompt, question.document, images, [*stored]))
                self.cases[key] = verdict
                self._finish(names, verdict)

    def _finish(self, names: list[str], verdict: Verdict) -> None:
        self.done.update(dict.fromkeys(names, verdict))
        self._report()

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._report()

    def _report(self) -> None:
        if self.progress is not None:
            spent = self.client.spent.since(self.before)
            self.progress(len(self.done), len(self.questions), spent, self.client.waiting_for)

    async def _judge(self, case: _Case) -> Verdict:
        verdict, reason = Verdict(), None
        try:
            reading = self._reading(case) if case.answers else await self._ask(case, case.key)
            answer = case.answers[-1]
            if isinstance(reading, Invalid) and not answer.key.endswith(REPAIR):
                repair = repair_request(answer.answer, reading, verdict_schema(self.rubric, case.document))
                previous = {"role": "assistant", "content": answer.answer}
                reading = await self._ask(case, case.key + REPAIR, previous, {"role": "user", "content": repair})
            if isinstance(reading, Verdict):
                verdict = reading
            else:
                reason = REFUSED if reading is None else INVALID
        except Unanswered as failure:
            reason = str(failure)
        return Verdict(
            key=case.key,
            scores=verdict.scores,
            reasons=verdict.reasons,
            unjudged=reason,
            repaired=reason is None and case.answers[-1].key.endswith(REPAIR),
            prompt_tokens=sum(answer.prompt_tokens for answer in case.answers),
            completion_tokens=sum(answer.completion_tokens for answer in case.answers),
        )

    async def _ask(self, case: _Case, key: str, *more: dict[str, Any]) -> Verdict | Invalid | None:
        """Ask, parse the answer and store it; None is a refusal."""

        def messages() -> Messages:
            return user_message(case.prompt, case.images, self.client.settings.image_side), *more

        # images are read when the request is sent; text alone needs no thread
        schema = verdict_schema(self.rubric, case.document)
        answer = await self.client.answer(key, messages if case.images else messages(), schema)
        reading = None if answer.refusal else parse_verdict(answer.text, self.rubric, case.document)
        parsed = _as_json(reading) if isinstance(reading, Verdict) else None
        reason = REFUSED if reading is None else str(reading) if isinstance(reading, Invalid) else None
        tokens = answer.prompt_tokens, answer.completion_tokens
        row = StoredVerdict(key, case.prompt, answer.text, parsed, reason, *tokens)
        if not self.store.put(row):  # another process stored a verdict earlier
            row = self.store.get([key])[key]
        case.answers.append(row)
        return self._reading(case)

    def _reading(self, case: _Case) -> Verdict | Invalid | None:
        """The latest stored answer, parsed again because the parser may have improved; a verdict stays what it was."""
        stored = case.answers[-1]
        if stored.reason == REFUSED:
            return None
        reading = parse_verdict(stored.answer, self.rubric, case.document)
        if stored.parsed is None or (isinstance(reading, Verdict) and _as_json(reading) == stored.parsed):
            return reading
        return parse_verdict(json.dumps(stored.parsed), self.rubric, case.document)


def _as_json(verdict: Verdict) -> dict[str, Any]:
    scores = verdict.scores or {}
    return {name: {"reason": verdict.reasons.get(name, ""), "score": score} for name, score in scores.items()}


async def all_or_none(work: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """The results of all; the first error cancels the others, and is raised once they have ended."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def user_message(text: str, images: Sequence[ImageSource], side: int) -> dict[str, Any]:
    """The user's message: ``images`` as JPEG in their order, reduced to ``side`` pixels (Lanczos), then ``text``;
    without images ``text`` alone."""
    if not images:
        return {"role": "user", "content": text}
    from PIL.Image import Resampling

    content: list[dict[str, Any]] = []
    for source in images:
        stream = io.BytesIO()
        try:
            image = source.load().copy()  # the loader's may be shared
            image.thumbnail((side, side), Resampling.LANCZOS, reducing_gap=None)
            image.save(stream, "JPEG", quality=JPEG_QUALITY, subsampling=0)
        except Exception as error:  # loaders read files, archives and videos, which fail in many ways
            raise MediaError(
                f"image {source.key[:16]} cannot be shown to the judge: {error or type(error).__name__}"
            ) from error
        url = f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": "user", "content": [*content, {"type": "text", "text": text}]}
