"""From questions to verdicts: what is stored is not asked, what is invalid is asked once more, nothing is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medtasks.errors import DataError, UsageError
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.images import ImageSource, user_message
from medtasks.judge.judgement import INVALID, REFUSED, REPAIR, Adjudication, Judgement, Question, verdict_key
from medtasks.judge.request import Failure, JudgeRequest, Messages, Outcome
from medtasks.judge.rubric import Rubric, judge_prompt, rubric_hash, same_for_all, verdict_schema
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.judge.verdict import Invalid, Verdict, parse_verdict, repair_request

__all__ = ["Progress", "adjudicate"]

Progress = Callable[[int, int, Spent], None]

AT_ONCE = 4  # questions; prepared in one go, while the answers that arrive wait
LINGER = 0.005  # seconds that a verdict may wait for others, to be stored with them
PATIENCE = 10  # times that another process's transaction is let go first


async def adjudicate(
    questions: Iterable[Question],
    rubric: Rubric,
    client: JudgeClient,
    store: VerdictStore,
    progress: Progress | None = None,
) -> Adjudication:
    """Judge every question under ``rubric``; each answer is in the store within five milliseconds.

    Valid verdicts that arrive within that time are stored in one transaction, all other answers at once; where another
    process is storing, it goes first. So a killed process loses the requests in flight and those whose answer came in
    its last five milliseconds, or fifty beside other processes. Where this raises, what had arrived is stored.

    An answer that is no verdict gets one repair request, at once. What cannot be judged (refused, still invalid,
    failed, out of budget, without its images, or a document that the rubric is not for) is unjudged with its reason.
    A restart asks nothing again that was answered: failures alone are tried anew. Questions that give the same prompt
    and images are asked once. Prompts are rendered and the store is read a little ahead of the asking.

    Args:
        questions: each with a ``sample_id`` of its own.
        rubric, client, store: what is asked, who is asked, where it is kept.
        progress: called as samples are done, judged or not, with their number, the number of all and what this call
            spent so far.

    Raises:
        UsageError: a sample id comes twice, or as :meth:`JudgeClient.ask`.
        DataError: a verdict in the store is none under ``rubric``, or as :class:`VerdictStore`.
        MedtasksError: the rubric's template cannot be rendered.
    """
    return await _Run(questions, rubric, client, store, progress).judge()


@dataclass
class _Case:
    """What is put to the judge once, for all the samples that ask the same, and what was answered so far."""

    key: str
    prompt: str
    document: Mapping[str, Any]
    images: tuple[ImageSource, ...]
    samples: list[str]
    answers: list[StoredVerdict] = field(default_factory=list)


class _Run:
    """`adjudicate`, under way; ``done`` has all judgements so far."""

    def __init__(
        self,
        questions: Iterable[Question],
        rubric: Rubric,
        client: JudgeClient,
        store: VerdictStore,
        progress: Progress | None = None,
    ) -> None:
        self.done: dict[str, Judgement] = {}
        self._questions, self._rubric, self._client, self._store = list(questions), rubric, client, store
        names: set[str] = set()
        for question in self._questions:
            if question.sample_id in names:
                raise UsageError(f"adjudicate: sample id {question.sample_id!r} comes twice; judge each sample once")
            names.add(question.sample_id)
        self._rubric_hash = rubric_hash(rubric)
        self._open: dict[str, _Case] = {}
        self._closed: dict[str, Judgement] = {}
        self._progress, self._before = progress, replace(client.spent)
        self._arrived: list[tuple[_Case, StoredVerdict]] = []  # not yet in the store
        self._timer: asyncio.TimerHandle | None = None
        self._yielded = 0
        self._failure: Exception | None = None
        self._schema = verdict_schema(rubric, {}) if same_for_all(rubric) else None

    async def judge(self) -> Adjudication:
        try:
            spent = await self._client.ask(self.requests(), self.take)
        finally:
            self.settle()
        return Adjudication({question.sample_id: self.done[question.sample_id] for question in self._questions}, spent)

    async def requests(self) -> AsyncIterator[JudgeRequest]:
        """What the store does not settle, prepared as it is asked for."""
        for begin in range(0, len(self._questions), AT_ONCE):
            batch = self._questions[begin : begin + AT_ONCE]
            fresh = [case for one in batch if (case := self._new_case(one))]
            held = self._store.get([key for case in fresh for key in (case.key, case.key + REPAIR)])
            for case in fresh:
                request = self._resumed(case, held.get(case.key), held.get(case.key + REPAIR))
                if request is not None:
                    yield request
            await asyncio.sleep(0)  # thousands may be stored: the answers that arrive meanwhile must not wait for all

    def take(self, request: JudgeRequest, outcome: Outcome) -> JudgeRequest | None:
        """Store and settle one outcome; the repair request where it is no verdict."""
        if self._failure is not None:
            raise self._failure
        case = self._open[request.key.removesuffix(REPAIR)]
        if isinstance(outcome, Failure):
            self._close(case, None, outcome.reason)
            return None
        reading = None if outcome.refusal else parse_verdict(outcome.text, self._rubric, case.document)
        tokens = (outcome.prompt_tokens, outcome.completion_tokens)
        if isinstance(reading, Verdict):
            row = StoredVerdict(request.key, case.prompt, outcome.text, _as_json(reading), None, *tokens)
            self._arrived.append((case, row))
            if self._timer is None:
                self._linger()
            return self._weighed(case, row, reading)
        return self._weighed(case, *self._put(request.key, case.prompt, outcome.text, tokens, reading, case))

    def settle(self) -> None:
        """Store the verdicts that have arrived; where another process was first, its verdict counts.

        Raises:
            DataError, UsageError: as :class:`VerdictStore`, also where it failed since the last call of `take`.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        arrived, self._arrived = self._arrived, []
        self._stored(arrived, self._store.put_all(row for _, row in arrived))
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _linger(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LINGER, self._settle_in_time)

    def _settle_in_time(self) -> None:
        """Store what has arrived; while another process stores, the answers that come meanwhile must not wait."""
        arrived, self._timer = self._arrived, None
        rows = [row for _, row in arrived]
        try:
            written = self._store.put_now(rows) if self._yielded < PATIENCE else self._store.put_all(rows)
            if written is None:
                self._yielded += 1
                self._linger()
                return
            self._yielded, self._arrived = 0, []
            self._stored(arrived, written)
        except Exception as error:  # nobody waits for it here
            self._failure, self._arrived = error, []

    def _stored(self, arrived: Sequence[tuple[_Case, StoredVerdict]], written: Sequence[bool]) -> None:
        for (case, row), first in zip(arrived, written, strict=True):
            if not first:
                self._replace(case, *self._read(self._store.get([row.key])[row.key], case))

    def _new_case(self, question: Question) -> _Case | None:
        """The case that ``question`` opens, or None where it has none or joins another."""
        try:
            prompt = judge_prompt(self._rubric, question.document, question.response)
        except DataError as error:
            self._finish([question.sample_id], Judgement(None, None, str(error)))
            return None
        images = question.images if self._rubric.media and self._client.settings.images else ()
        key = verdict_key(self._client.settings, self._rubric_hash, prompt, [image.key for image in images])
        if key in self._closed:
            self._finish([question.sample_id], self._closed[key])
        elif key in self._open:
            self._open[key].samples.append(question.sample_id)
        else:
            self._open[key] = _Case(key, prompt, question.document, images, [question.sample_id])
            return self._open[key]
        return None

    def _resumed(self, case: _Case, first: StoredVerdict | None, second: StoredVerdict | None) -> JudgeRequest | None:
        """What is still to be asked where ``first`` and ``second``, the repair, are stored."""
        held = [one for one in (first, second) if one is not None]
        if not held:
            return self._request(case, case.key)
        case.answers = held[:-1]
        return self._weighed(case, *self._read(held[-1], case), stored=True)

    def _read(self, held: StoredVerdict, case: _Case) -> tuple[StoredVerdict, Verdict | Invalid | None]:
        """A stored answer, read again: the store is a file that anybody may write, and readings may improve."""
        if held.parsed is None and held.reason == REFUSED:
            return held, None
        reading: Verdict | Invalid | None = parse_verdict(held.answer, self._rubric, case.document)
        if held.parsed is None and isinstance(reading, Verdict):
            tokens = (held.prompt_tokens, held.completion_tokens)
            return self._put(held.key, held.prompt, held.answer, tokens, reading, case)
        if held.parsed is not None and (not isinstance(reading, Verdict) or _as_json(reading) != held.parsed):
            reading = parse_verdict(json.dumps(held.parsed), self._rubric, case.document)
            if not isinstance(reading, Verdict):
                raise DataError(
                    f"{self._store.path}: verdict {held.key[:16]} is none under rubric {self._rubric.name}; "
                    "export the store and move it away."
                )
        return held, reading

    def _put(
        self,
        key: str,
        prompt: str,
        answer: str,
        tokens: tuple[int, int],
        reading: Verdict | Invalid | None,
        case: _Case,
    ) -> tuple[StoredVerdict, Verdict | Invalid | None]:
        """Store an answer; it and its reading, or those of another process that had stored a verdict before."""
        parsed = _as_json(reading) if isinstance(reading, Verdict) else None
        reason = REFUSED if reading is None else reading.reason if isinstance(reading, Invalid) else None
        row = StoredVerdict(key, prompt, answer, parsed, reason, *tokens)
        written = self._store.put(
            key,
            prompt=prompt,
            answer=answer,
            parsed=parsed,
            reason=reason,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
        )
        return (row, reading) if written else self._read(self._store.get([key])[key], case)

    def _weighed(
        self, case: _Case, answer: StoredVerdict, reading: Verdict | Invalid | None, *, stored: bool = False
    ) -> JudgeRequest | None:
        """Close the case with its latest answer, or ask for the repair."""
        case.answers.append(answer)
        if isinstance(reading, Invalid) and not answer.key.endswith(REPAIR):
            asked = repair_request(answer.answer, reading, verdict_schema(self._rubric, case.document))
            said = {"role": "assistant", "content": answer.answer}
            return self._request(case, case.key + REPAIR, said, {"role": "user", "content": asked})
        verdict = reading if isinstance(reading, Verdict) else None
        self._close(case, verdict, None if verdict else INVALID if reading else REFUSED, stored=stored)
        return None

    def _request(self, case: _Case, key: str, *more: dict[str, Any]) -> JudgeRequest:
        def messages() -> Messages:
            return user_message(case.prompt, case.images, self._client.settings.image_side), *more

        # images are read when the request is sent; a text alone need not wait for a thread
        schema = self._schema or verdict_schema(self._rubric, case.document)
        return JudgeRequest(key, messages if case.images else messages(), schema)

    def _close(self, case: _Case, verdict: Verdict | None, reason: str | None, *, stored: bool = False) -> None:
        self._closed[case.key] = judgement = _judgement(case, verdict, reason, stored=stored)
        self._finish(self._open.pop(case.key).samples, judgement)

    def _replace(self, case: _Case, answer: StoredVerdict, reading: Verdict | Invalid | None) -> None:
        """Let a stored verdict take the place of a closed case's own."""
        assert isinstance(reading, Verdict)
        case.answers[-1] = answer
        self._closed[case.key] = judgement = _judgement(case, reading, None)
        self.done.update({name: judgement for name, one in self.done.items() if one.key == case.key})

    def _finish(self, samples: list[str], judgement: Judgement) -> None:
        self.done.update(dict.fromkeys(samples, judgement))
        if self._progress is not None:
            self._progress(len(self.done), len(self._questions), self._client.spent.since(self._before))


def _judgement(case: _Case, verdict: Verdict | None, reason: str | None, *, stored: bool = False) -> Judgement:
    return Judgement(
        case.key,
        verdict,
        reason,
        repaired=verdict is not None and case.answers[-1].key.endswith(REPAIR),
        stored=stored,
        prompt_tokens=sum(answer.prompt_tokens for answer in case.answers),
        completion_tokens=sum(answer.completion_tokens for answer in case.answers),
    )


def _as_json(verdict: Verdict) -> dict[str, Any]:
    return {name: {"reason": verdict.reasons.get(name, ""), "score": score} for name, score in verdict.scores.items()}
