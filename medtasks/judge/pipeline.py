"""From questions to verdicts: stored ones are not asked again, invalid ones get one repair, nothing
is lost.
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
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from medtasks.catalog.rubric import Rubric, judge_prompt, rubric_hash, verdict_schema
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.judge.client import JudgeClient, Spent, Unanswered
from medtasks.judge.endpoint import Messages
from medtasks.judge.json_in_text import Invalid
from medtasks.judge.reply import Ending, JudgeAnswer
from medtasks.judge.settings import JudgeSettings, judge_identity
from medtasks.judge.store import REPAIR, StoredVerdict, VerdictStore
from medtasks.judge.verdict_parsing import parse_verdict, repair_request
from medtasks.runs.verdict import Verdict

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

Progress = Callable[[int, int, Spent, "str | None"], None]
"""Called with questions done, all questions, what this call has spent, and why the judge is not
answering (or None).
"""

OPEN_PER_SLOT = (
    3  # open questions per request in flight: some are rendered, some wait before a retry
)
TICK = 1.0  # seconds between reports
JPEG_QUALITY = 95
_SORTED = json.JSONEncoder(sort_keys=True)


class Unusable(Enum):
    """Why a stored answer is not a verdict. The value begins `Verdict.unjudged`, before a colon and
    details."""

    REFUSED = "refused"
    CUT = "cut off at the token limit"
    INVALID = "invalid after one repair"

    @classmethod
    def of(cls, verdict: Verdict) -> Unusable | None:
        """Why the stored answer is not a verdict; None if it is one, or if there is none."""
        kind = (verdict.unjudged or "").partition(":")[0]
        return next((reason for reason in cls if reason.value == kind), None)


class ImageSource(NamedTuple):
    """An image for a judge: its hash, for the verdict's key, and what returns it in RGB, in another
    thread once per attempt.
    """

    key: str
    load: Callable[[], Image]


@dataclass(frozen=True)
class Question:
    """One response to judge; ``name`` is unique. ``document`` is the sample as rubrics see it (with
    ``target``).
    """

    name: str
    document: Mapping[str, Any]
    response: str
    images: tuple[ImageSource, ...] = ()


def verdict_key(
    settings: JudgeSettings, rubric: str, prompt: str, images: Sequence[str] = ()
) -> str:
    """SHA-256 over all that determines a verdict: the judge's identity, the rubric's hash, the
    prompt, the images.
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
    """The verdict on every question under ``rubric``, by name in their order; each answer is stored
    before anything else happens.

    An invalid answer gets one repair request at once. A question that cannot be judged (refused,
    cut off, still invalid, failed, out of budget, images missing, or a document that does not fit
    the rubric) is unjudged, with its reason. Stored verdicts are not asked for again; with
    ``again``, questions are whose stored answer is not a verdict. Questions with the same prompt
    and images are asked once. ``progress`` is called as questions are done and once a second.

    Raises:
        UsageError: a question's name is duplicated, or the API key is malformed.
        DataError: as :class:`VerdictStore`.
        MedtasksError: the rubric's template cannot be rendered.
    """
    for name, count in Counter(question.name for question in questions).items():
        if count > 1:
            raise UsageError(f"question {name!r} is duplicated; judge each response once")
    rubric_key, before, waiting = rubric_hash(rubric), replace(client.spent), iter(questions)
    done: dict[str, Verdict] = {}
    cases: dict[
        str, list[str] | Verdict
    ] = {}  # by key the verdict, or the names of the questions that await it

    def report() -> None:
        if progress is not None:
            progress(len(done), len(questions), client.spent.since(before), client.waiting_for)

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK)
            report()

    async def work() -> None:
        """Judge waiting questions, one at a time, unless another one has the verdict, or awaits
        it.
        """
        for question in waiting:
            await asyncio.sleep(0)  # thousands of stored verdicts must not delay arriving answers
            names = [question.name]
            try:
                prompt = judge_prompt(rubric, question.document, question.response)
            except DataError as error:
                verdict = Verdict(unjudged=str(error))
            else:
                images = question.images if rubric.media and client.settings.images else ()
                key = verdict_key(
                    client.settings, rubric_key, prompt, [image.key for image in images]
                )
                case = cases.setdefault(key, names)
                if isinstance(case, Verdict):
                    verdict = case
                elif case is names:
                    asked = _Case(key, prompt, images, question.document, rubric, client, store)
                    verdict = cases[key] = await asked.judged(again=again)
                else:
                    case.append(question.name)
                    continue
            done.update(dict.fromkeys(names, verdict))
            report()

    async with client:
        ticking = asyncio.ensure_future(tick())
        try:
            workers = min(
                len(questions), OPEN_PER_SLOT * client.settings.in_flight
            )  # a batch API has 30,000 slots
            await all_or_none([work() for _ in range(workers)])
        finally:
            ticking.cancel()
    return {question.name: done[question.name] for question in questions}


@dataclass
class _Case:
    """A prompt to the judge, and the stored answers to it and to its repair request, in this
    order."""

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
        scores, reasons, unjudged = None, {}, None
        try:
            reading = await self._reading(again=again)
        except Unanswered as failure:
            unjudged = str(failure)
        else:
            if isinstance(reading, Unusable):
                unjudged = self._unjudged(reading)
            else:
                scores, reasons = reading.scores, reading.reasons
        return Verdict(
            key=self.key,
            scores=scores,
            reasons=reasons,
            unjudged=unjudged,
            repaired=scores is not None and self.answers[-1].key != self.key,
            prompt_tokens=sum(answer.prompt_tokens for answer in self.answers),
            completion_tokens=sum(answer.completion_tokens for answer in self.answers),
        )

    async def _reading(self, *, again: bool) -> Verdict | Unusable:
        """The verdict in the stored answer, or in the judge's, asked once more if that is
        invalid."""
        if again and self.answers and not isinstance(self._latest(), Verdict):
            self.answers = []
        if not self.answers:
            await self._ask()
        reading = self._latest()
        if isinstance(reading, Invalid) and self.answers[-1].key == self.key:
            await self._ask_for_repair(reading)
            reading = self._latest()
        return Unusable.INVALID if isinstance(reading, Invalid) else reading

    def _latest(self) -> Verdict | Invalid | Unusable:
        """The reading of the latest answer, parsed again because the parser may have improved; a
        verdict stays what it was."""
        answer = self.answers[-1]
        if answer.parsed is not None:
            return parse_verdict(answer.parsed, self.rubric, self.document)
        return self._read(answer.answer, answer.ending)

    def _read(self, text: str, ending: Ending) -> Verdict | Invalid | Unusable:
        if ending is Ending.REFUSED:
            return Unusable.REFUSED
        was_cut = ending is Ending.CUT
        reading = parse_verdict(text, self.rubric, self.document, was_cut=was_cut)
        return Unusable.CUT if was_cut and isinstance(reading, Invalid) else reading

    async def _ask(self) -> None:
        answer = await self._answer(self.key)
        self.store.forget_repair(self.key)  # of an earlier answer
        self._keep(self.key, answer)

    async def _ask_for_repair(self, invalid: Invalid) -> None:
        key, previous = self.key + REPAIR, self.answers[-1].answer
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
        reading = self._read(answer.text, answer.ending)
        if isinstance(reading, Verdict):
            parsed = _as_json(reading)
        elif isinstance(reading, Invalid):
            reason = str(reading)
        else:
            reason = answer.ending.value
        tokens = answer.prompt_tokens, answer.completion_tokens
        row = StoredVerdict(key, self.prompt, answer.text, parsed, reason, *tokens)
        self.answers.append(row if self.store.put(row) else self.store.get(key)[0])

    def _unjudged(self, unusable: Unusable) -> str:
        """The reason that is stored with the response and counted by its kind."""
        kind: str = unusable.value
        if unusable is not Unusable.CUT:
            return kind
        limit = self.client.settings.token_limit
        fix = "set `max_tokens`" if limit is None else f"raise `{limit.field}` above {limit.most:,}"
        return f"{kind}: {fix} in the judge's settings"


def _as_json(verdict: Verdict) -> str:
    scores = verdict.scores or {}
    explained = {
        name: {"reason": reason, "score": scores[name]} for name, reason in verdict.reasons.items()
    }
    return json.dumps(scores | explained, sort_keys=True)


async def all_or_none(work: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """The results of all; the first error cancels the others, and is raised once they have
    ended.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def user_message(text: str, images: Sequence[ImageSource], side: int) -> dict[str, Any]:
    """The user's message: ``images`` as JPEG in their order, reduced to ``side`` pixels (Lanczos),
    then ``text``; without images ``text`` alone.
    """
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
        except (
            Exception
        ) as error:  # loaders read files, archives and videos, which fail in many ways
            raise MediaError(
                f"image {source.key[:16]} cannot be shown to the judge: {error or type(error).__name__}"
            ) from error
        url = f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": "user", "content": [*content, {"type": "text", "text": text}]}
