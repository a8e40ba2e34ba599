"""The harness's requests for our tasks: sent in batches, every reply stored as soon as it arrives."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medtasks.core.errors import MedtasksError
from medtasks.runs.replies import BLANK, NOT_ASKED, Reply, Slot, is_blank

from .backends import backend_name
from .sending import Sender

REPEAT = "medtasks_repeat"
"""Metadata key: the number of a request among several for the same document."""
_SMALLEST = 32
_ROUNDS_IN_FLIGHT = 8
_UNREACHED = 4
"""After this many requests in a row that did not reach the server, however often tried, the run ends."""
_REFUSALS = (401, 403, 404)
"""Status codes of a wrong key or model name. If that many requests get one of them before any other answer, the run
ends, too."""
_CONCURRENCY = ("num_concurrent", "num_cpus", "max_concurrency")
_FORWARD = "maybe_forward_with_tool"
_ROUNDS = "generate_until_multi_round"


def taken_from(task: Any) -> list[tuple[Slot, int]]:
    """The request for each document of ``task`` in this process, and its number of repeats; the harness's own requests
    are dropped."""
    instances, task._instances = task.instances, []
    return [(_slot(one), one.repeats) for one in instances if not is_padding(one)]


@dataclass
class Requests:
    """Replaces the evaluator's response cache, which sees every request before the model does.

    Args:
        sender: stores the replies.
        ours: our tasks; requests for others pass through.
        logged: whether the harness writes the responses to its log. If not, it gets empty texts instead, since it
            keeps them all in memory.
    """

    sender: Sender
    ours: Collection[str]
    logged: bool

    def execute(self, lm: Any, reqtype: str, requests: list[Any]) -> list[Any]:
        """Like ``ResponseCache.execute``: one response per request, in order; a failed one is a note in brackets."""
        kinds = [one.task_name in self.ours and (2 if is_padding(one) else 1) for one in requests]
        others, ours, padding = ([number for number, kind in enumerate(kinds) if kind == one] for one in (0, 1, 2))
        responses: dict[int, Any] = dict.fromkeys(padding, "")
        if others:
            passed = getattr(lm, reqtype)([requests[number] for number in others])
            responses.update(zip(others, passed, strict=True))
        if ours:
            chosen = _numbered([requests[number] for number in ours])
            by_us = reqtype == _ROUNDS and not getattr(lm, "answers_all_rounds", False)
            slots = self._in_rounds(lm, chosen) if by_us else self._ask(lm, chosen)
            responses.update(zip(ours, map(self._response, slots), strict=True))
        if padding and not hasattr(lm, "describe") and reqtype != _ROUNDS:  # model shards may have to step together
            with contextlib.suppress(Exception):
                getattr(lm, reqtype)([requests[number] for number in padding])
        return [responses[number] for number in range(len(requests))]

    def answers(self, asked: Iterable[tuple[Slot, int]]) -> list[tuple[int, str, tuple[Reply, ...]]]:
        """Number, prompt and replies of each document."""
        return [
            (slot.doc_id, slot.prompt, tuple(self._reply(replace(slot, repeat=number)) for number in range(repeats)))
            for slot, repeats in asked
        ]

    def _reply(self, slot: Slot) -> Reply:
        return self.sender.store.reply(slot) or Reply.failure(NOT_ASKED)

    def _response(self, slot: Slot) -> Any:
        """What the harness gets."""
        from lmms_eval.api.instance import GenerationResult, TokenCounts

        if not self.logged:
            return ""
        reply = self._reply(slot)
        text = reply.text if reply.failed is None else f"[no response: {reply.failed}]"
        return GenerationResult(text, TokenCounts(reply.input_tokens, reply.output_tokens))

    def _ask(self, lm: Any, requests: Sequence[Any], *, outcome: bool = True) -> list[Slot]:
        slots = [_slot(request, outcome=outcome) for request in requests]
        missing = [number for number, slot in enumerate(slots) if not self.sender.store.is_answered(slot)]
        if hasattr(lm, "describe"):  # ours
            self.sender.begin()
            for arrived in lm.stream([requests[number] for number in missing]) if missing else ():
                self.sender.keep([(slots[missing[place]], reply.checked()) for place, reply in arrived])
            return slots
        planned = [[missing[number] for number in batch] for batch in _batches(lm, [requests[one] for one in missing])]
        with _one_bar(lm, len(missing)) as advance, _kept_as_they_come(lm, requests, slots, self.sender):

            def call(batch: list[int]) -> list[Reply]:
                given = lm.generate_until([requests[number] for number in batch])
                advance(len(batch))
                return [reply_of(one) for one in given]

            self.sender.ask(slots, planned, call)
        return slots

    def _in_rounds(self, lm: Any, requests: Sequence[Any]) -> list[Slot]:
        """Ask multi-round requests: each round of all requests together, so that they are batched. The task determines
        the next round and the outcome."""
        slots = [_slot(request) for request in requests]
        missing = [number for number, slot in enumerate(slots) if not self.sender.store.is_answered(slot)]
        pending = {number: _first(lm, requests[number]) for number in missing}
        replies_so_far: dict[int, list[Reply]] = defaultdict(list)
        number = 0
        while pending:
            number += 1
            asked = self._ask(lm, list(pending.values()), outcome=False)
            shown: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
            for position, slot in zip(list(pending), asked, strict=True):
                reply, so_far = self._reply(slot), replies_so_far[position]
                so_far.append(reply)
                following = (
                    Reply.failure(f"round {number}: {reply.failed}")
                    if reply.failed is not None
                    else _following(lm, requests[position], so_far, number, shown[slot.task, slot.repeat])
                )
                if isinstance(following, Reply):
                    self.sender.keep([(slots[position], following)], asked=False)
                    del pending[position]
                else:
                    pending[position] = following
        return slots


def reply_of(given: Any) -> Reply:
    """Convert what a back-end of the harness returned for one request to a reply.

    A blank text is a response if the back-end counted a generated token; otherwise it may be an error that the back-end
    swallowed, and counts as failed.
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
    return Reply.failure(BLANK) if reply.failed is None and is_blank(text) and not reply.output_tokens else reply


def is_padding(request: Any) -> bool:
    """Whether a request only pads a process's share, so that its response is not used."""
    return bool((request.metadata or {}).get("__padding_only__", False))


def _numbered(requests: Sequence[Any]) -> list[Any]:
    """The requests, numbered if they repeat an earlier one."""
    seen: Counter[tuple[str, int]] = Counter()
    numbered = []
    for request in requests:
        key = (request.task_name, request.doc_id)
        repeat = seen[key]
        seen[key] += 1
        metadata = {**(request.metadata or {}), REPEAT: repeat}
        numbered.append(replace(request, metadata=metadata) if repeat else request)
    return numbered


def _repeat(request: Any) -> int:
    return int((request.metadata or {}).get(REPEAT, 0))


def _slot(request: Any, *, outcome: bool = True) -> Slot:
    prompt = request.args[0] if isinstance(request.args[0], str) else ""
    return Slot(request.task_name, int(request.doc_id), _repeat(request), prompt, outcome)


def _batches(lm: Any, requests: list[Any]) -> list[list[int]]:
    """Positions of the requests that are sent together.

    A back-end that returns each reply as it arrives gets all at once, one that keeps several
    requests in flight a multiple of their number, and any other its batch size, so that no more can be lost. The latter
    two get requests of one task, each document once: some apply the first request's task to a whole batch.
    """
    if hasattr(lm, _FORWARD):
        return [list(range(len(requests)))] if requests else []
    in_flight = max((size for name in _CONCURRENCY if isinstance(size := getattr(lm, name, None), int)), default=0)
    size = getattr(lm, "batch_size", None)
    step = max(_SMALLEST, _ROUNDS_IN_FLIGHT * in_flight) if in_flight else size if isinstance(size, int) else 1
    batches: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, request in enumerate(requests):
        batches[request.task_name, _repeat(request)].append(number)
    return [numbers[begin : begin + step] for numbers in batches.values() for begin in range(0, len(numbers), step)]


class _Ended(BaseException):
    """Ends the run with the error it holds; after any `Exception`, the back-end would send the request again."""


@contextlib.contextmanager
def _kept_as_they_come(lm: Any, requests: Sequence[Any], slots: Sequence[Slot], sender: Sender) -> Iterator[None]:
    """Store each reply of the harness's ``async_openai`` as soon as it arrives, not when all have arrived; end the run
    if no request reaches the server any more, or if it refuses every one."""
    if not hasattr(lm, _FORWARD):
        yield
        return
    from lmms_eval.api.instance import GenerationResult
    from openai import APIConnectionError, APIStatusError

    forward = getattr(lm, _FORWARD)
    slot_of = {id(request): slot for request, slot in zip(requests, slots, strict=True)}
    attempts: Counter[int] = Counter()  # by request, since the last response
    refused: set[int] = set()
    accepted = False

    def ended(problem: str, fix: str) -> MedtasksError:
        return MedtasksError(f"{backend_name(lm)}: {problem}, {sender.store.answered:,} have a response; {fix}.")

    async def keeping(request: Any, position: int) -> Any:
        nonlocal accepted
        try:
            text, place, counts = await forward(request, position)
        except APIConnectionError as error:
            attempts[position] += 1
            if sum(count >= lm.max_retries for count in attempts.values()) >= _UNREACHED:
                problem = (
                    f"{_UNREACHED} requests in a row did not reach the server at {lm.base_url} "
                    f"(max_retries={lm.max_retries}: {str(error).rstrip('.')})"
                )
                raise _Ended(ended(problem, "start the server again")) from error
            raise
        except Exception as error:
            attempts.clear()
            if isinstance(error, APIStatusError) and error.status_code in _REFUSALS:
                refused.add(position)
                if len(refused) >= _UNREACHED and not accepted:
                    body = error.body.get("message") if isinstance(error.body, Mapping) else None
                    text = " ".join(str(body or error.message).split())[:200].rstrip(".")
                    problem = (
                        f"the server at {lm.base_url} refused the first {_UNREACHED} requests "
                        f"(status {error.status_code}: {text})"
                    )
                    raise _Ended(ended(problem, "correct the model name or the key")) from error
            else:
                accepted = True
            raise
        attempts.clear()
        accepted = True
        reply = reply_of(GenerationResult(text, counts))
        if reply.failed is None and id(request) in slot_of:
            try:
                sender.keep([(slot_of[id(request)], reply)])
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


def _first(lm: Any, request: Any) -> Any:
    """The first round of a multi-round request, as an ordinary request."""
    if not lm.is_simple:
        return replace(request, request_type="generate_until", resps=[], token_counts=[])
    context, settings, to_visual, _, doc_id, task, split = request.args
    return _instance(request, (context, settings, to_visual, doc_id, task, split))


def _following(lm: Any, request: Any, replies: list[Reply], number: int, shown: dict[str, Any]) -> Any:
    """The request of round ``number``, given the replies so far; or the outcome, if that was the last round.

    ``shown``: what each document of the task shows in this round, because some back-ends pass all documents of a batch
    to one request's function.
    """

    def content(document: Any) -> Any:
        return shown[document["sample_id"]]

    texts = [reply.text for reply in replies]
    if lm.is_simple:
        _, settings, _, to_text, doc_id, task, split = request.args
        document = lm.task_dict[task][split][doc_id]
        visuals, text, done, outputs, _ = to_text(
            document, previous_output=texts, round_idx=number, previous_round_info=None
        )
        shown[document["sample_id"]] = visuals or []
        arguments = (text, settings, content, doc_id, task, split)
    else:
        context, to_messages, settings, doc_id, task, split = request.args
        document = lm.task_dict[task][split][doc_id]
        messages, done, outputs, _ = to_messages(document, round_idx=number, previous_output=texts)
        parts = [part for turn in messages or () for part in turn["content"] if part["type"] == "text"]
        text = "\n".join(part["text"] for part in parts)
        shown[document["sample_id"]] = messages
        arguments = (text or context, content, settings, doc_id, task, split)
    if done:
        return Reply(
            (outputs or texts)[-1],
            input_tokens=_total(reply.input_tokens for reply in replies),
            output_tokens=_total(reply.output_tokens for reply in replies),
            finish="length" if any(reply.finish == "length" for reply in replies) else replies[-1].finish,
        )
    return _instance(request, arguments)


def _total(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(filter(None, known))


def _instance(request: Any, arguments: tuple[Any, ...]) -> Any:
    from lmms_eval.api.instance import Instance

    return Instance(request_type="generate_until", arguments=arguments, idx=0, metadata=request.metadata)


@contextlib.contextmanager
def _one_bar(lm: Any, total: int) -> Iterator[Callable[[int], None]]:
    """One progress bar over all batches instead of one for each call of the back-end."""
    from tqdm import tqdm

    modules = [sys.modules[kind.__module__] for kind in type(lm).__mro__ if kind.__module__ in sys.modules]
    drawn = {module: module.tqdm for module in modules if getattr(module, "tqdm", None) is tqdm}
    for module in drawn:
        module.tqdm = functools.partial(tqdm, disable=True)  # type: ignore[attr-defined]
    try:
        with tqdm(total=total, desc="medtasks", unit="request", disable=lm.rank != 0 or not total) as bar:
            yield lambda done: bar.update(done) and None
    finally:
        for module, original in drawn.items():
            module.tqdm = original  # type: ignore[attr-defined]
