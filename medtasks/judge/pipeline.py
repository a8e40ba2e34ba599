"""From questions to verdicts: stored ones are not asked again, invalid ones get one repair, nothing is lost."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from medtasks.catalog.rubric import Rubric, judge_prompt, rubric_hash, verdict_schema
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.judge.client import JudgeClient, Spent, Unanswered
from medtasks.judge.endpoint import Messages
from medtasks.judge.settings import JudgeSettings, judge_identity
from medtasks.judge.store import REPAIR, StoredVerdict, VerdictStore
from medtasks.judge.verdict import Invalid, Verdict, parse_verdict, repair_request

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

Progress = Callable[[int, int, Spent, "str | None"], None]
"""Called with questions done, all questions, what this call has spent, and why the judge is not answering (or None)."""

REFUSED = "refused"
INVALID = "invalid after one repair"
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
    """One response to judge; ``name`` is unique. ``document`` is the sample as rubrics see it (with ``target``)."""

    name: str
    document: Mapping[str, Any]
    response: str
    images: tuple[ImageSource, ...] = ()


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
) -> dict[str, Verdict]:
    """The verdict on every question under ``rubric``, by name in their order; each answer is stored before anything
    else happens.

    An invalid answer gets one repair request at once. A question that cannot be judged (refused, still invalid, failed,
    out of budget, images missing, or a document that does not fit the rubric) is unjudged, with its reason. Stored
    verdicts are not asked for again; questions with the same prompt and images are asked once. ``progress`` is called
    as questions are done and once a second.

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
    cases: dict[str, list[str] | Verdict] = {}  # by key the verdict, or the names of the questions that await it

    def report() -> None:
        if progress is not None:
            progress(len(done), len(questions), client.spent.since(before), client.waiting_for)

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK)
            report()

    async def work() -> None:
        """Judge waiting questions, one at a time, unless another one has the verdict, or awaits it."""
        for question in waiting:
            await asyncio.sleep(0)  # thousands of stored verdicts must not delay arriving answers
            names = [question.name]
            try:
                prompt = judge_prompt(rubric, question.document, question.response)
            except DataError as error:
                verdict = Verdict(unjudged=str(error))
            else:
                images = question.images if rubric.media and client.settings.images else ()
                key = verdict_key(client.settings, rubric_key, prompt, [image.key for image in images])
                case = cases.setdefault(key, names)
                if isinstance(case, Verdict):
                    verdict = case
                elif case is names:
                    verdict = cases[key] = await _judge(key, prompt, images, question.document, rubric, client, store)
                else:
                    case.append(question.name)
                    continue
            done.update(dict.fromkeys(names, verdict))
            report()

    async with client:
        ticking = asyncio.ensure_future(tick())
        try:
            workers = min(len(questions), OPEN_PER_SLOT * client.settings.in_flight)  # a batch API has 30,000 slots
            await all_or_none([work() for _ in range(workers)])
        finally:
            ticking.cancel()
    return {question.name: done[question.name] for question in questions}


async def _judge(
    key: str,
    prompt: str,
    images: Sequence[ImageSource],
    document: Mapping[str, Any],
    rubric: Rubric,
    client: JudgeClient,
    store: VerdictStore,
) -> Verdict:
    """The verdict on all questions with this key: of the stored answer, or of the judge, asked once more if invalid."""
    schema = verdict_schema(rubric, document)
    answers = store.get(key)

    async def ask(key: str, *more: dict[str, Any]) -> None:
        def messages() -> Messages:
            return user_message(prompt, images, client.settings.image_side), *more

        # images are read when the request is sent; text alone needs no thread
        answer = await client.answer(key, messages if images else messages(), schema)
        parsed, reason = None, REFUSED if answer.refusal else None
        if not answer.refusal:
            reading = parse_verdict(answer.text, rubric, document)
            if isinstance(reading, Invalid):
                reason = str(reading)
            else:
                scores = reading.scores or {}
                explained = {name: {"reason": why, "score": scores[name]} for name, why in reading.reasons.items()}
                parsed = json.dumps(scores | explained, sort_keys=True)
        row = StoredVerdict(key, prompt, answer.text, parsed, reason, answer.prompt_tokens, answer.completion_tokens)
        # another process may have stored a verdict earlier
        answers.append(row if store.put(row) else store.get(key)[0])

    def read() -> Verdict | Invalid | None:
        """The latest answer, parsed again because the parser may have improved; a verdict stays what it was."""
        stored = answers[-1]
        if stored.reason == REFUSED:
            return None
        return parse_verdict(stored.parsed or stored.answer, rubric, document)

    reading: Verdict | Invalid | None = None
    try:
        if not answers:
            await ask(key)
        reading, answer = read(), answers[-1]
        if isinstance(reading, Invalid) and answer.key == key:
            repair = repair_request(answer.answer, reading, schema)
            previous = {"role": "assistant", "content": answer.answer}
            await ask(key + REPAIR, previous, {"role": "user", "content": repair})
            reading = read()
        reason = REFUSED if reading is None else INVALID
    except Unanswered as failure:
        reason = str(failure)
    verdict = reading if isinstance(reading, Verdict) else Verdict(unjudged=reason)
    return Verdict(
        key=key,
        scores=verdict.scores,
        reasons=verdict.reasons,
        unjudged=verdict.unjudged,
        repaired=verdict.scores is not None and answers[-1].key != key,
        prompt_tokens=sum(answer.prompt_tokens for answer in answers),
        completion_tokens=sum(answer.completion_tokens for answer in answers),
    )


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
