"""The harness's requests for our tasks: sent in batches, each reply stored when it arrives."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from medtasks.runs.replies import NOT_ASKED, Answer, Reply, Slot
from medtasks.runs.unfinished import AnswerStore

from .arrivals import arrive_one_by_one, kept_on_arrival
from .batches import batches_of
from .endpoints import ask_endpoint, is_endpoint
from .isolation import isolated
from .memory import PeakMemory
from .pacing import Clock, StreamPlayer, WallClock, duration_text, streams_of
from .request_slots import is_padding, shares_of, slot_of
from .responses import reply_of, response_of
from .rounds import Dialogue
from .stream_times import StreamRounds
from .work_clock import WorkClock

_ROUNDS = "generate_until_multi_round"


class DocumentReplies(NamedTuple):
    """The prompt of a document (by its number), and the replies to it, one per repeat."""

    doc_id: int
    prompt: str
    replies: tuple[Reply, ...]


@dataclass
class Requests:
    """Replaces the evaluator's response cache, which sees every request before the model does.

    A request that has a response in ``store`` is not sent again. Requests for other tasks than
    ``ours`` pass through. Responses that are not ``logged`` reach the harness as empty texts, since
    it keeps them all in memory. The requests for the tasks in ``paced`` are rounds of streams that
    are sent when they are due by ``clock``.
    """

    store: AnswerStore
    memory: Callable[[], PeakMemory] | None
    ours: Collection[str]
    logged: bool
    paced: Mapping[str, StreamRounds] = field(default_factory=dict)
    clock: Clock = field(default_factory=WallClock)

    def __post_init__(self) -> None:
        self._work_clock = WorkClock(self.memory)
        # tasks of which a failure was printed
        self._reported: set[str] = set()
        # the replies to a request whose reply is not saved yet; None while all are saved at once
        self._held: dict[Slot, Reply] | None = None

    def execute(self, lm: Any, reqtype: str, requests: list[Any]) -> list[Any]:
        """Like ``ResponseCache.execute``: one response per request, in order.

        A failed one is a note in brackets.
        """
        shares = shares_of(requests, self.ours, self.paced)
        responses: dict[int, Any] = dict.fromkeys(shares.padding, "")
        if shares.foreign:
            answers = getattr(lm, reqtype)(list(shares.foreign.values()))
            responses.update(zip(shares.foreign, answers, strict=True))
        if shares.ours:
            ours = list(shares.ours.values())
            if reqtype == _ROUNDS and not getattr(lm, "answers_all_rounds", False):
                slots = self._ask_in_rounds(lm, ours)
            else:
                slots = self._ask(lm, ours)
            for number, slot in zip(shares.ours, slots, strict=True):
                responses[number] = self._response(slot)
        if shares.paced:
            slots = self._ask_when_due(lm, list(shares.paced.values()))
            for number, slot in zip(shares.paced, slots, strict=True):
                responses[number] = self._response(slot)
        if shares.padding and reqtype != _ROUNDS and _may_step_together(lm):
            with contextlib.suppress(Exception):
                getattr(lm, reqtype)(list(shares.padding.values()))
        return [responses[number] for number in range(len(requests))]

    def answers(self, task: Any) -> list[DocumentReplies]:
        """The replies to each document of ``task`` in this process.

        The task loses the harness's requests, so that they can be freed.
        """
        instances, task._instances = task.instances, []
        answers: list[DocumentReplies] = []
        for instance in instances:
            if is_padding(instance):
                continue
            slot = slot_of(instance)
            slots = [replace(slot, repeat=number) for number in range(instance.repeats)]
            replies = tuple(self._reply(repeat_slot) for repeat_slot in slots)
            answers.append(DocumentReplies(slot.doc_id, slot.prompt, replies))
        return answers

    def _reply(self, slot: Slot) -> Reply:
        """The reply in the store; a failure if the request was not sent."""
        return self.store.reply(slot) or Reply.failure(NOT_ASKED)

    def _response(self, slot: Slot) -> Any:
        """The harness's response to the request, empty if responses are not logged."""
        if not self.logged:
            return ""
        return response_of(self._reply(slot))

    def _ask(self, lm: Any, requests: Sequence[Any], *, outcome: bool = True) -> list[Slot]:
        """Send the requests without a response; return the slots of all."""
        slots = [slot_of(request, outcome=outcome) for request in requests]
        missing: dict[Slot, Any] = {}
        for slot, request in zip(slots, requests, strict=True):
            if not self._is_kept(slot):
                missing[slot] = request
        self._work_clock.start(lm)
        if missing and hasattr(lm, "describe"):
            missing_slots = list(missing)
            for arrived in lm.stream(list(missing.values())):
                self._keep([(missing_slots[place], reply) for place, reply in arrived])
        elif missing and is_endpoint(lm):
            self._ask_endpoint(lm, missing)
        elif missing:
            self._ask_in_batches(lm, missing)
        return slots

    def _ask_in_batches(self, lm: Any, missing: Mapping[Slot, Any]) -> None:
        """Send requests to a back-end of the harness, several together."""
        bar = self._progress_bar(lm, len(missing))
        slot_by_id = {id(request): slot for slot, request in missing.items()}
        keep = partial(self._keep_arrived, slot_by_id, bar)
        answer = partial(_replies_to, lm, missing)
        done = 0
        with bar, self._watched(lm, keep):
            for answered in isolated(batches_of(lm, list(missing)), answer):
                self._keep(answered)
                done += len(answered)
                bar.update(max(done - bar.n, 0))  # without replies that were counted on arrival

    def _watched(
        self, lm: Any, keep: Callable[[Any, Reply], None]
    ) -> contextlib.AbstractContextManager[None]:
        """A block in which ``keep`` is called with each reply that arrives before its batch is
        complete.
        """
        if arrive_one_by_one(lm):
            return kept_on_arrival(lm, keep, lambda: self.store.answered)
        return contextlib.nullcontext()

    def _ask_endpoint(self, lm: Any, missing: Mapping[Slot, Any]) -> None:
        """Send requests to an endpoint, each by itself."""
        bar = self._progress_bar(lm, len(missing))

        def keep(slot: Slot, reply: Reply) -> None:
            bar.update(self._keep([(slot, reply)]))

        with bar:
            ask_endpoint(lm, missing, keep, lambda: self.store.answered)

    def _progress_bar(self, lm: Any, total: int) -> Any:
        """The progress of ``total`` requests, shown by the first process, except of paced rounds,
        which have a bar of their own.
        """
        from tqdm import tqdm

        is_hidden = lm.rank != 0 or self._held is not None
        return tqdm(total=total, desc="medtasks", unit="request", disable=is_hidden)

    def _keep_arrived(
        self, slot_by_id: Mapping[int, Slot], bar: Any, request: Any, reply: Reply
    ) -> None:
        """Save a reply that arrived before its batch was complete, and count it on ``bar``."""
        slot = slot_by_id.get(id(request))
        if slot is not None:
            bar.update(self._keep([(slot, reply)]))

    def _ask_in_rounds(self, lm: Any, requests: Sequence[Any]) -> list[Slot]:
        """Send multi-round requests: each round of all requests together, as a batch."""
        slots = [slot_of(request) for request in requests]
        pending: dict[Slot, Dialogue] = {}
        for slot, request in zip(slots, requests, strict=True):
            if not self.store.is_answered(slot):
                pending[slot] = Dialogue.begin(request)
        while pending:
            upcoming = [dialogue.upcoming for dialogue in pending.values()]
            round_slots = self._ask(lm, upcoming, outcome=False)
            contents: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
            for (slot, dialogue), round_slot in zip([*pending.items()], round_slots, strict=True):
                contents_of_round = contents[slot.task, slot.repeat]
                outcome = dialogue.after(self._reply(round_slot), lm, contents_of_round)
                if outcome is not None:
                    self._keep([(slot, outcome)], asked=False)
                    del pending[slot]
        return slots

    def _ask_when_due(self, lm: Any, requests: Sequence[Any]) -> list[Slot]:
        """Send rounds of streams in real time, except those of streams that are finished."""
        from tqdm import tqdm

        slots = [slot_of(request) for request in requests]
        streams = streams_of(list(zip(slots, requests, strict=True)), self.paced)
        player = StreamPlayer(self.store, partial(self._ask_alone, lm), self.clock)
        unfinished = [rounds for rounds in streams if not player.is_finished(rounds)]
        rounds_left = sum(len(rounds) for rounds in unfinished)
        if unfinished:
            print(f"medtasks: {duration_text(unfinished)}", file=sys.stderr, flush=True)
        with tqdm(total=rounds_left, desc="medtasks", unit="round", disable=lm.rank != 0) as bar:
            player.play_streams(unfinished, bar.update)
        return slots

    def _ask_alone(self, lm: Any, request: Any) -> Reply:
        """Send one request whatever was saved before; its reply is not saved."""
        self._held = {}
        try:
            [slot] = self._ask(lm, [request])
            return self._held[slot]
        finally:
            self._held = None

    def _is_kept(self, slot: Slot) -> bool:
        """Whether there is a response that makes another one unnecessary."""
        if self._held is not None:
            return slot in self._held
        return self.store.is_answered(slot)

    def _keep(self, answers: Sequence[tuple[Slot, Reply]], *, asked: bool = True) -> int:
        """Save replies; return how many are new.

        The back-end just returned them, unless it was not ``asked`` for them: the outcome of rounds
        is not its own.
        """
        new = [(slot, reply) for slot, reply in answers if not self._is_kept(slot)]
        if asked:
            replies = self._work_clock.measured([reply for _, reply in new])
            new = [(slot, reply) for (slot, _), reply in zip(new, replies, strict=True)]
        if self._held is not None:
            self._held.update(new)
        else:
            self.store.add(Answer(slot, reply) for slot, reply in new)
        for slot, reply in new:
            if reply.failed is not None:
                self._report_failure(slot.task, reply.failed)
        return len(new)

    def _report_failure(self, task: str, reason: str) -> None:
        """Print the first failure of each task."""
        if task in self._reported:
            return
        self._reported.add(task)
        print(
            f"medtasks: {task}: a request failed ({reason}) and counts as not answered; run "
            "the same command again to resend it",
            file=sys.stderr,
            flush=True,
        )


def _may_step_together(lm: Any) -> bool:
    """Whether a back-end may have a shard of the model in each process.

    One that calls a server has none, and would pay for requests whose answers are not used.
    """
    calls_server = is_endpoint(lm) or arrive_one_by_one(lm)
    return not calls_server and not hasattr(lm, "describe")


def _replies_to(lm: Any, requests: Mapping[Slot, Any], batch: Sequence[Slot]) -> list[Reply]:
    """The replies of a back-end of the harness to the requests with these slots, in order."""
    responses = lm.generate_until([requests[slot] for slot in batch])
    return [reply_of(response) for response in responses]
