"""When an endpoint that fails is not asked any further."""

from __future__ import annotations

from medtasks.judge.endpoint import REDIRECTS
from medtasks.judge.reply import FailedAttempt

OUTAGE = 50  # requests
_OWN_FAULT = frozenset({400, 413, 415, 422})  # statuses about the request, not about the endpoint
_SHUT_OUT = REDIRECTS | {401, 403, 404}
"""Statuses of a wrong key, address or model: fatal if nothing was answered before."""


class OutageWatch:
    """Begins an outage once `OUTAGE` requests in a row failed because of the endpoint.

    These are requests that ended with a rate limit, a 5xx, a timeout or a connection. A redirect,
    401, 403 or 404 begins an outage at once if the endpoint never answered.
    """

    def __init__(self, *, has_answered: bool) -> None:
        self.reason: str | None = None  # why no further request is sent
        self._has_answered = has_answered
        self._failed_in_a_row = 0

    def note_answer(self) -> None:
        self._has_answered = True
        self._failed_in_a_row = 0

    def note_failure(self, attempt: FailedAttempt) -> None:
        """Note the last attempt at a request."""
        if attempt.status in _OWN_FAULT:
            self._failed_in_a_row = 0
        else:
            self._failed_in_a_row += 1
        if self.reason is not None:
            return
        if attempt.status in _SHUT_OUT and not self._has_answered:
            self.reason = f"outage: {attempt.reason}"
        elif self._failed_in_a_row >= OUTAGE:
            self.reason = (
                f"outage: {OUTAGE} requests in a row failed, the last with {attempt.reason}"
            )
