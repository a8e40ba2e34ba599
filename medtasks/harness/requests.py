"""The harness's requests for our tasks: sent in batches, every reply stored as soon as it arrives,
a failing request without effect on the others.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.runs.replies import BLANK, NOT_ASKED, Answer, Reply, Slot, Work, is_blank
from medtasks.runs.unfinished import AnswerStore

from .backends import backend_name

REPEAT = (
    "medtasks_repeat"  # metadata key: the number of a request among several for the same document
)
GIVE_UP = 64  # consecutive failures after which the task's remaining requests are not sent
NOT_SENT = f"not asked: the {GIVE_UP} requests before it failed"
_SMALLEST = 32
_ROUNDS_IN_FLIGHT = 8
_UNREACHED = 4  # requests in a row that did not reach the server, after which the run ends
_REFUSALS = (
    401,
    403,
    404,
)  # wrong key or model name: as many before any other answer end the run, too
_CONCURRENCY = ("num_concurrent", "num_cpus", "max_concurrency")
_FORWARD = "maybe_forward_with_tool"
_ROUNDS = "generate_until_multi_round"

Memory = tuple[int | None, int | None]
"""Peak bytes of this process so far, on its GPUs and resident; None if that is not where its model
is.
"""


@dataclass
class Requests:
    """Replaces the evaluator's response cache, which sees every request before the model does: what
    has a response in ``store`` is not asked again. Requests for other tasks than ``ours`` pass
    through. Responses that are not ``logged`` reach the harness as empty texts, since it keeps them
    all in memory.
    """

    store: AnswerStore
    memory: Callable[[], Memory] | None
    ours: Collection[str]
    logged: bool

    def __post_init__(self) -> None:
        self._began = self._since = 0.0
        self._reported: set[str] = set()

    def execute(self, lm: Any, reqtype: str, requests: list[Any]) -> list[Any]:
        """Like ``ResponseCache.execute``: one response per request, in order; a failed one is a
        note in brackets.
        """
        ours, others, padding = dict[int, Any](), dict[int, Any](), dict[int, Any]()
        seen = Counter[tuple[str, int]]()
        for number, request in enumerate(requests):
            if request.task_name not in self.ours:
                others[number] = request
            elif is_padding(request):
                padding[number] = request
            else:
                document = request.task_name, request.doc_id
                ours[number] = replace(
                    request, metadata={**(request.metadata or {}), REPEAT: seen[document]}
                )
                seen[document] += 1
        responses: dict[int, Any] = dict.fromkeys(padding, "")
        if others:
            responses.update(zip(others, getattr(lm, reqtype)(list(others.values())), strict=True))
        if ours:
            by_us = reqtype == _ROUNDS and not getattr(lm, "answers_all_rounds", False)
            slots = (self._in_rounds if by_us else self._ask)(lm, list(ours.values()))
            responses.update(zip(ours, map(self._response, slots), strict=True))
        if (
            padding and not hasattr(lm, "describe") and reqtype != _ROUNDS
        ):  # model shards may have to step together
            with contextlib.suppress(Exception):
                getattr(lm, reqtype)(list(padding.values()))
        return [responses[number] for number in range(len(requests))]

    def answers(self, task: Any) -> list[tuple[int, str, tuple[Reply, ...]]]:
        """Number, prompt and replies of each document of ``task`` in this process, without the
        harness's requests.
        """
        instances, task._instances = task.instances, []
        asked = [(_slot(one), range(one.repeats)) for one in instances if not is_padding(one)]
        return [
            (
                slot.doc_id,
                slot.prompt,
                tuple(self._reply(replace(slot, repeat=number)) for number in repeats),
            )
            for slot, repeats in asked
        ]

    def _reply(self, slot: Slot) -> Reply:
        return self.store.reply(slot) or Reply.failure(NOT_ASKED)

    def _response(self, slot: Slot) -> Any:
        from lmms_eval.api.instance import GenerationResult, TokenCounts

        if not self.logged:
            return ""
        reply = self._reply(slot)
        text = reply.text if reply.failed is None else f"[no response: {reply.failed}]"
        return GenerationResult(text, TokenCounts(reply.input_tokens, reply.output_tokens))

    def _ask(self, lm: Any, requests: Sequence[Any], *, outcome: bool = True) -> list[Slot]:
        slots = [_slot(request, outcome=outcome) for request in requests]
        missing = {
            slot: request
            for slot, request in zip(slots, requests, strict=True)
            if not self.store.is_answered(slot)
        }
        self._since = time.monotonic()
        self._began = self._began or self._since
        if missing and hasattr(lm, "describe"):
            asked = list(missing)
            for arrived in lm.stream(list(missing.values())):
                self._keep([(asked[place], reply) for place, reply in arrived])
        elif missing:
            self._ask_foreign(lm, missing)
        return slots

    def _ask_foreign(self, lm: Any, missing: Mapping[Slot, Any]) -> None:
        """Ask a back-end of the harness."""
        from tqdm import tqdm

        def answer(batch: Sequence[Slot]) -> list[Reply]:
            return [
                reply_of(given) for given in lm.generate_until([missing[slot] for slot in batch])
            ]

        bar = tqdm(total=len(missing), desc="medtasks", unit="request", disable=lm.rank != 0)
        done = 0
        with bar, self._kept_as_they_come(lm, missing, bar.update):
            for answered in isolated(_batches(lm, list(missing)), answer):
                self._keep(answered)
                done += len(answered)
                bar.update(max(done - bar.n, 0))  # without replies that were counted as they came

    def _in_rounds(self, lm: Any, requests: Sequence[Any]) -> list[Slot]:
        """Ask multi-round requests: each round of all requests together, so that they are batched.
        The task determines the next round and the outcome.
        """
        outcomes = {_slot(request): request for request in requests}
        pending = {
            slot: replace(
                request,
                request_type="generate_until",
                arguments=(*request.args[:3], *request.args[-3:]),
            )
            for slot, request in outcomes.items()
            if not self.store.is_answered(slot)
        }
        replies: dict[Slot, list[Reply]] = defaultdict(list)
        number = 0
        while pending:
            number += 1
            asked = self._ask(lm, list(pending.values()), outcome=False)
            shown: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
            for slot, of_round in zip(list(pending), asked, strict=True):
                reply = self._reply(of_round)
                replies[slot].append(reply)
                following: Any = Reply.failure(f"round {number}: {reply.failed}")
                if reply.failed is None:
                    following = _following(
                        lm, outcomes[slot], replies[slot], shown[slot.task, slot.repeat]
                    )
                if isinstance(following, Reply):
                    self._keep([(slot, following)], asked=False)
                    del pending[slot]
                else:
                    pending[slot] = following
        return list(outcomes)

    def _keep(self, answers: Sequence[tuple[Slot, Reply]], *, asked: bool = True) -> int:
        """Save replies that the back-end just returned, or that it was not ``asked`` for (the
        outcome of rounds). Returns how many are new.
        """
        fresh = [(slot, reply) for slot, reply in answers if not self.store.is_answered(slot)]
        if asked and self.memory is not None:
            since, self._since = self._since, time.monotonic()
            share = (self._since - since) / max(
                len(fresh), 1
            )  # of the time since the last replies were saved
            start, end = since - self._began, self._since - self._began
            work = Work(round(start, 6), round(end, 6), round(share, 6), *self.memory())
            fresh = [(slot, replace(reply, work=work)) for slot, reply in fresh]
        self.store.add(Answer(slot, reply) for slot, reply in fresh)
        for slot, reply in fresh:
            if reply.failed is not None and slot.task not in self._reported:
                self._reported.add(slot.task)
                print(
                    f"medtasks: {slot.task}: a request failed ({reply.failed}) and counts as not answered; run "
                    "the same command again to resend it",
                    file=sys.stderr,
                    flush=True,
                )
        return len(fresh)

    @contextlib.contextmanager
    def _kept_as_they_come(
        self, lm: Any, missing: Mapping[Slot, Any], count: Callable[[int], object]
    ) -> Iterator[None]:
        """Store each reply of the harness's ``async_openai`` as soon as it arrives, not when all
        have arrived, and pass how many have to ``count``; end the run if no request reaches the
        server any more, or if it refuses every one.
        """
        if not hasattr(lm, _FORWARD):
            yield
            return
        from lmms_eval.api.instance import GenerationResult
        from openai import APIConnectionError, APIStatusError

        forward = getattr(lm, _FORWARD)
        slot_of = {id(request): slot for slot, request in missing.items()}
        attempts: Counter[int] = Counter()  # by request, since the last response
        refused: set[int] = set()
        accepted = False

        def ended(problem: str, fix: str) -> _Ended:
            answered = f"{self.store.answered:,} have a response"
            return _Ended(MedtasksError(f"{backend_name(lm)}: {problem}, {answered}; {fix}."))

        async def keeping(request: Any, position: int) -> Any:
            nonlocal accepted
            try:
                text, place, counts = await forward(request, position)
            except APIConnectionError as error:
                attempts[position] += 1
                if sum(count >= lm.max_retries for count in attempts.values()) < _UNREACHED:
                    raise
                problem = (
                    f"{_UNREACHED} requests in a row did not reach the server at {lm.base_url} "
                    f"(max_retries={lm.max_retries}: {str(error).rstrip('.')})"
                )
                raise ended(problem, "start the server again") from error
            except APIStatusError as error:
                attempts.clear()
                accepted = accepted or error.status_code not in _REFUSALS
                refused.add(position)
                if accepted or len(refused) < _UNREACHED:
                    raise
                body = error.body.get("message") if isinstance(error.body, Mapping) else None
                message = " ".join(str(body or error.message).split())[:200].rstrip(".")
                problem = (
                    f"the server at {lm.base_url} refused the first {_UNREACHED} requests "
                    f"(status {error.status_code}: {message})"
                )
                raise ended(problem, "correct the model name or the key") from error
            attempts.clear()
            accepted = True
            reply = reply_of(GenerationResult(text, counts))
            if reply.failed is None and id(request) in slot_of:
                try:
                    count(self._keep([(slot_of[id(request)], reply)]))
                except OSError as error:
                    raise _Ended(error) from error
            return text, place, counts

        setattr(lm, _FORWARD, keeping)
        try:
            yield
        except _Ended as end:
            raise end.args[0] from None
        finally:
            delattr(lm, _FORWARD)  # restores the method of the class


class _Ended(BaseException):
    """Ends the run with the error it holds; after any `Exception`, the back-end would send the
    request again.
    """


def isolated(
    batches: Iterable[Sequence[Any]], answer: Callable[[Any], Sequence[Reply]]
) -> Iterator[list[tuple[Any, Reply]]]:
    """Yield the requests (each of a ``task``) of every batch, or of a part of it, with their
    replies. A batch for which ``answer`` raises is halved until the failing requests are alone;
    after `GIVE_UP` failures in a row a task's further requests are not sent. A :class:`UsageError`
    ends the run.
    """
    failures = Counter[str]()
    for batch in batches:
        parts = [batch]
        while parts:
            part = parts.pop()
            given_up = [request for request in part if failures[request.task] >= GIVE_UP]
            if given_up:
                yield [(request, Reply.failure(NOT_SENT)) for request in given_up]
                part = [request for request in part if failures[request.task] < GIVE_UP]
            if not part:
                continue
            reason = ""
            try:
                replies = [reply.checked() for reply in answer(part)]
                if len(replies) != len(part):
                    raise ValueError(
                        f"the back-end returned {len(replies)} responses to {len(part)} requests"
                    )
            except UsageError:
                raise
            except Exception as error:  # models and third-party back-ends may raise anything
                reason = first_line(error)
            # outside the `except` block: the exception's frames would keep images and tensors alive
            if reason and len(part) > 1:
                parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                continue
            if reason:
                replies = [Reply.failure(reason)]
            answered = list(zip(part, replies, strict=True))
            for request, reply in answered:
                failures[request.task] = 0 if reply.failed is None else failures[request.task] + 1
            yield answered


def memory_of(lm: Any) -> Callable[[], Memory] | None:
    """Measures the memory of the process, if the model of ``lm`` is in it; None if no model
    answers.
    """
    import torch

    held = vars(lm).get("_model", vars(lm).get("model"))
    inside = getattr(lm, "holds_model", isinstance(held, torch.nn.Module))

    def measured() -> Memory:
        if inside and torch.cuda.is_available() and torch.cuda.is_initialized():
            return sum(
                torch.cuda.max_memory_allocated(number)
                for number in range(torch.cuda.device_count())
            ), None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return None, (peak if sys.platform == "darwin" else peak * 1024) if inside else None

    return measured if getattr(lm, "runs_model", True) else None


def reply_of(given: Any) -> Reply:
    """What a back-end of the harness returned for one request, as a reply. A blank text is a
    response if the back-end counted a generated token; otherwise it may hide an error, and counts
    as failed.
    """
    from lmms_eval.api.instance import unwrap_generation_output

    if given is None:
        return Reply.failure("the back-end returned nothing")
    text, counts = unwrap_generation_output(given)
    text = text if isinstance(text, str) else text[-1] if text else ""
    if text is None:
        return Reply.failure("the response has no content")
    tokens = {name: getattr(counts, name, None) for name in ("input_tokens", "output_tokens")}
    reply = Reply(text, **tokens).checked()
    return (
        Reply.failure(BLANK)
        if reply.failed is None and is_blank(text) and not reply.output_tokens
        else reply
    )


def is_padding(request: Any) -> bool:
    """Whether a request only pads a process's share, so that its response is not used."""
    return bool((request.metadata or {}).get("__padding_only__", False))


def _slot(request: Any, *, outcome: bool = True) -> Slot:
    prompt = request.args[0] if isinstance(request.args[0], str) else ""
    repeat = int((request.metadata or {}).get(REPEAT, 0))
    return Slot(request.task_name, int(request.doc_id), repeat, prompt, outcome)


def _batches(lm: Any, slots: Sequence[Slot]) -> list[Sequence[Slot]]:
    """The requests that are sent together, and of which no more can be lost at once."""
    if hasattr(lm, _FORWARD):  # replies arrive one by one
        return [slots]
    in_flight = max(
        (size for name in _CONCURRENCY if isinstance(size := getattr(lm, name, None), int)),
        default=0,
    )
    size = getattr(lm, "batch_size", None)
    step = (
        max(_SMALLEST, _ROUNDS_IN_FLIGHT * in_flight)
        if in_flight
        else size
        if isinstance(size, int)
        else 1
    )
    alike: dict[tuple[str, int], list[Slot]] = defaultdict(list)
    for slot in slots:  # some back-ends apply the first request's task to a whole batch
        alike[slot.task, slot.repeat].append(slot)
    return [
        some[begin : begin + step] for some in alike.values() for begin in range(0, len(some), step)
    ]


def _following(lm: Any, request: Any, replies: list[Reply], shown: dict[str, Any]) -> Any:
    """The request of the next round, given the replies so far, or the outcome. ``shown`` has what
    each document shows in this round, because some back-ends pass all documents of a batch to one
    request's function.
    """
    texts, number = [reply.text for reply in replies], len(replies)
    context, *functions, doc_id, task, split = request.args
    document = lm.task_dict[task][split][doc_id]
    if lm.is_simple:
        settings, _, to_text = functions
        given = {"previous_output": texts, "round_idx": number, "previous_round_info": None}
        visuals, text, done, outputs, _ = to_text(document, **given)
        shown[document["sample_id"]] = visuals or []
    else:
        to_messages, settings = functions
        messages, done, outputs, _ = to_messages(document, round_idx=number, previous_output=texts)
        parts = [
            part for turn in messages or () for part in turn["content"] if part["type"] == "text"
        ]
        text = "\n".join(part["text"] for part in parts) or context
        shown[document["sample_id"]] = messages
    if done:
        counts = {
            name: [getattr(reply, name) for reply in replies]
            for name in ("input_tokens", "output_tokens")
        }
        return Reply(
            (outputs or texts)[-1],
            **{name: None if None in known else sum(known) for name, known in counts.items()},
            finish="length"
            if any(reply.finish == "length" for reply in replies)
            else replies[-1].finish,
        )

    def content(document: Any) -> Any:
        return shown[document["sample_id"]]

    arguments = (text, settings, content) if lm.is_simple else (text, content, settings)
    return replace(
        request, request_type="generate_until", arguments=(*arguments, doc_id, task, split)
    )
