"""One prompt to a judge: asked, repaired once if the answer is invalid, and stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medtasks.catalog.judge_prompt import verdict_schema
from medtasks.catalog.rubric import Rubric
from medtasks.judge.client import JudgeClient, Unanswered
from medtasks.judge.endpoint import Messages
from medtasks.judge.json_in_text import Invalid
from medtasks.judge.reply import Ending, JudgeAnswer
from medtasks.judge.settings import JudgeSettings, judge_identity
from medtasks.judge.store import REPAIR, StoredVerdict, VerdictStore
from medtasks.judge.user_message import ImageSource, user_message
from medtasks.judge.verdict_parsing import parse_verdict, repair_request
from medtasks.runs.verdict import Cause, Verdict

_SORTED = json.JSONEncoder(sort_keys=True)


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


@dataclass
class VerdictRequest:
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

    async def verdict(self, *, again: bool) -> Verdict:
        """The verdict on all questions with this key, or why there is none.

        A stored answer is not asked for again, unless ``again`` is true and it is not a verdict.
        """
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
        """The empty verdict of a response that is unjudged for this reason."""
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
        """The verdict in an answer, or why it has none; a cut answer may still have one."""
        if ending is Ending.REFUSED:
            return Cause.REFUSED
        was_cut = ending is Ending.CUT
        reading = parse_verdict(text, self.rubric, self.document, was_cut=was_cut)
        if was_cut and isinstance(reading, Invalid):
            return Cause.CUT
        return reading

    async def _ask(self) -> None:
        """Ask for a verdict, and keep the answer."""
        answer = await self._answer(self.key)
        self.store.forget_repair(self.key)  # of an earlier answer
        self._keep(self.key, answer)

    async def _ask_for_repair(self, invalid: Invalid) -> None:
        """Ask once more, with the invalid answer and what is wrong with it, and keep the answer."""
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
    """The verdict as the judge's schema has it: each score, with its reason if there is one."""
    aspects: dict[str, Any] = dict(verdict.scores or {})
    for name, reason in verdict.reasons.items():
        aspects[name] = {"reason": reason, "score": aspects[name]}
    return json.dumps(aspects, sort_keys=True)
