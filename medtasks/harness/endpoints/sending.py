"""Requests to an endpoint: several in flight, each kept as soon as it is answered."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import replace
from typing import Any

from medtasks.core.errors import UsageError, first_line
from medtasks.core.text import counted
from medtasks.runs.replies import Reply, Slot

from ..isolation import GIVE_UP, NOT_SENT
from .clients import asking_copy, provide_client, reader_of
from .exchange import Exchange, RequestEnded, Traffic
from .server_watch import ServerWatch

_IN_FLIGHT = 8
"""Requests in flight if the back-end has no argument for it (``claude``)."""
_ATTEMPTS = 5
"""Attempts at a request if the back-end has no argument for it (``claude``)."""


def ask_endpoint(
    lm: Any,
    requests: Mapping[Slot, Any],
    keep: Callable[[Slot, Reply], None],
    answered: Callable[[], int],
) -> None:
    """Call ``keep`` with each request and its reply as soon as it arrives.

    After `GIVE_UP` failures in a row a task's further requests are not sent. If the run ends early,
    as by Ctrl-C, no request is repeated any more, but the answers to those in flight are awaited
    and kept: they are paid for.

    Args:
        lm: a back-end of which :func:`~.clients.is_endpoint` is true.
        requests: the harness's requests by slot.
        keep: stores a reply.
        answered: the number of responses so far, for messages.

    Raises:
        MedtasksError: no request reaches the endpoint any more, or it refuses every one.
        UsageError: a prompt cannot be made.
    """
    provide_client(lm)
    sender = _Sender(lm, keep, answered)
    with ThreadPoolExecutor(sender.size) as executor:
        try:
            sender.send_all(executor, requests)
        except OSError:  # of `keep`: nothing can be kept any more
            sender.traffic.end()
            raise
        except BaseException:
            sender.traffic.end()
            sender.keep_answers_in_flight()
            raise


class _Sender:
    """Sends the requests of one call, and keeps their replies in this thread."""

    def __init__(
        self, lm: Any, keep: Callable[[Slot, Reply], None], answered: Callable[[], int]
    ) -> None:
        attempts = int(getattr(lm, "max_retries", _ATTEMPTS))
        self.traffic = Traffic(attempts, float(getattr(lm, "retry_backoff_s", 1.0)))
        self.size = int(getattr(lm, "num_concurrent", _IN_FLIGHT))
        self._lm = lm
        self._read = reader_of(lm)
        self._keep = keep
        self._answered = answered
        self._watch = ServerWatch(lm)
        # in a row, by task
        self._failures = Counter[str]()
        self._in_flight: dict[Future[Exchange], Slot] = {}

    def send_all(self, executor: ThreadPoolExecutor, requests: Mapping[Slot, Any]) -> None:
        """Send the requests in their order, and keep every reply."""
        waiting = iter(requests.items())
        self._fill(executor, waiting)
        while self._in_flight:
            done, _ = wait(self._in_flight, return_when=FIRST_COMPLETED)
            for future in done:
                slot = self._in_flight.pop(future)
                self._take(slot, future.result())
            self._fill(executor, waiting)

    def _fill(self, executor: ThreadPoolExecutor, waiting: Iterator[tuple[Slot, Any]]) -> None:
        """Send further requests until enough are in flight."""
        while len(self._in_flight) < self.size:
            slot, request = next(waiting, (None, None))
            if slot is None:
                return
            if self._failures[slot.task] >= GIVE_UP:
                self._keep(slot, Reply.failure(NOT_SENT))
            else:
                self._in_flight[executor.submit(self._ask, request)] = slot

    def _ask(self, request: Any) -> Exchange:
        """Send one request, in a thread of its own."""
        exchange = Exchange(self.traffic, self._read)
        asker = asking_copy(self._lm, request, exchange)
        # some back-ends write into the settings, which requests share
        arguments = [dict(part) if isinstance(part, dict) else part for part in request.args]
        own_request = replace(request, arguments=tuple(arguments))
        try:
            asker.generate_until([own_request])
        except RequestEnded:
            pass
        except UsageError:
            raise
        except Exception as error:  # before the request was sent, or after it was answered
            if exchange.reply is None:
                exchange.reply = Reply.failure(first_line(error))
        return exchange

    def _take(self, slot: Slot, exchange: Exchange) -> None:
        """Keep a reply, and end the run if the endpoint is lost."""
        reply = exchange.reply or Reply.failure("the back-end sent no request")
        self._keep(slot, reply)
        if reply.failed is None:
            self._failures[slot.task] = 0
        else:
            self._failures[slot.task] += 1
        if exchange.failure is None:
            self._watch.note_response()
        else:
            self._watch.note_failure(exchange.failure, self._answered())

    def keep_answers_in_flight(self) -> None:
        """Wait for the requests in flight, and keep each that is answered, as soon as it is.

        Further interrupts do not end the wait: the process could not exit before its threads end.
        """
        waiting = set(self._in_flight)
        if waiting:
            requests = counted(len(waiting), "request")
            note = f"medtasks: waiting for {requests} in flight, to keep the answers"
            print(note, file=sys.stderr, flush=True)
        while waiting:
            try:
                for future in as_completed(waiting):
                    self._keep_answer(future)
                    waiting.discard(future)
            except KeyboardInterrupt:
                continue

    def _keep_answer(self, future: Future[Exchange]) -> None:
        """Keep the reply to a request that has ended, if it is an answer."""
        if future.exception() is not None:
            return
        reply = future.result().reply
        if reply is not None and reply.failed is None:
            self._keep(self._in_flight[future], reply)
