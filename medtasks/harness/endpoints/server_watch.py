"""When a run ends because its endpoint cannot be reached, or refuses every request."""

from __future__ import annotations

from typing import Any

from medtasks.core.errors import MedtasksError

from ..presentation import backend_name
from .failures import Failure

_IN_A_ROW = 4
"""Requests that must fail in this way."""
_SHUT_OUT = (401, 403, 404)
"""Statuses for a wrong key or model name; they end a run only before the first answer."""


class ServerWatch:
    """Counts requests that ended without an answer, in the order of their ends."""

    def __init__(self, lm: Any) -> None:
        self._lm = lm
        self._unreached = 0
        self._shut_out = 0
        self._has_accepted = False

    def note_response(self) -> None:
        """Note that the endpoint answered, or blocked the answer."""
        self._unreached = 0
        self._has_accepted = True

    def note_failure(self, failure: Failure, answered: int) -> None:
        """Note the last attempt at a request that failed.

        Raises:
            MedtasksError: it is the last of several that the endpoint cannot answer; ``answered``
                requests have a response.
        """
        if failure.is_unreached:
            self._unreached += 1
            if self._unreached >= _IN_A_ROW:
                problem = f"{_IN_A_ROW} requests in a row did not reach the endpoint"
                raise self._end(problem, failure, answered, "run it again when it is reachable")
            return
        self._unreached = 0
        if failure.status not in _SHUT_OUT and not failure.has_wrong_key:
            self._has_accepted = True
        elif not self._has_accepted:
            self._shut_out += 1
            if self._shut_out >= _IN_A_ROW:
                problem = f"the endpoint refused the first {_IN_A_ROW} requests"
                raise self._end(problem, failure, answered, "correct the model name or the key")

    def _end(self, problem: str, failure: Failure, answered: int, fix: str) -> MedtasksError:
        """The end of the run because of a problem with the endpoint."""
        return MedtasksError(
            f"{backend_name(self._lm)}: {problem} ({failure.reason}), {answered:,} have a "
            f"response; {fix}."
        )
