"""Replies of back-ends: a response, or the reason why there is none.

A request without a response is *failed*: it counts neither as right nor as wrong.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from medtasks.core.text import well_formed

BLANK = "blank response, with no sign that the model generated a token"
ALL_BLANK = "every response of the run is blank"
NOT_ASKED = "not asked: the run ended before"
LONGEST_REASON = 300
FAILED = "[ERROR] "
"""Begins a text that is the reason why a request failed; see :func:`failure_in`."""

_FAILED_AFTER_RETRIES = re.compile(r"\[LMMS_EVAL_REQUEST_FAILED(?P<reason>.*)", re.DOTALL)
_FAILURE_TEXTS = (
    _FAILED_AFTER_RETRIES,
    re.compile(r"\[(?P<reason>LMMS_EVAL_BUDGET_EXCEEDED)\]"),
    re.compile(r"\[GENERATION_FAILED\](?P<reason>.*)", re.DOTALL),
    re.compile(r"\[(?P<reason>SAFETY_BLOCKED:.*)\]", re.DOTALL),
    re.compile(r"\[ERROR\](?P<reason>.*)", re.DOTALL),
    re.compile(r"Error: (?P<reason>can only concatenate str \(not \"NoneType\"\) to str)"),
    re.compile(r"(?P<reason>Failed to obtain answer via API\.)"),
)
"""Texts that lmms-eval's back-ends and VLMEvalKit (the last one) return for requests that failed,
were blocked or produced no content.
"""


@dataclass(frozen=True, slots=True)
class Work:
    """The work behind a reply: ``start`` and ``end`` of its batch, in seconds since the process
    sent its first request, and its share of the batch's ``seconds``; the peaks of memory are those
    of the process so far, in bytes.
    """

    start: float
    end: float
    seconds: float
    device_memory: int | None = None
    rss: int | None = None


Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Moment = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[int, Field(ge=1, le=10**9)]


@dataclass(frozen=True, slots=True)
class ReplyTiming:
    """The seconds of one reply, as a user of the model would wait for it.

    Args:
        seconds: from the moment the request was sent to the model until its whole answer was there,
            with all attempts and the time between them. If several requests are answered together
            (``batch``), it is the time of all of them.
        sent: when it was sent, in seconds since this part of the run sent its first request.
        queued: seconds for which the request waited for other requests of the run before; they are
            not part of ``seconds``. None if unknown.
        first_token: seconds from ``sent`` to the first generated token; None if unknown.
        batch: the number of requests that were answered together.
        in_flight: the number of requests that the model worked on when this one was sent, itself
            included.
        attempts: how often the request was sent.
        hardware: the devices that answered; None if unknown.
    """

    seconds: Seconds
    sent: Moment = 0.0
    queued: Seconds | None = None
    first_token: Seconds | None = None
    batch: Positive = 1
    in_flight: Positive = 1
    attempts: Positive = 1
    hardware: str | None = None


@dataclass(frozen=True, slots=True)
class PacedRound:
    """When a round of a paced stream was due, sent and answered, in seconds since its first round
    was due.

    A *missed* round was never sent (``sent`` and ``answered`` are None): a later round was due,
    too, when the model had answered the one before. ``attempt`` counts from 1 how often the stream
    was started: a stream that was interrupted, or of which a request failed, starts again from its
    first round.
    """

    attempt: int
    due: Moment
    sent: Moment | None = None
    answered: Moment | None = None


Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Letter:
    """An option letter that the model generated, at character ``at`` of the response.

    ``options`` has the probabilities of all options at this token, normalised to 1; ``mass`` is
    their sum before that. A token with blanks or signs around the letter counts as the letter.
    """

    at: int
    letter: str
    options: dict[str, Share]
    mass: Share


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Probabilities of a response, rounded to 1 %: finer values would change with the composition
    of a batch.

    They are those of the model before temperature, top-p and top-k. ``answer`` is the geometric
    mean over the tokens of the response, without the one that ends it; ``letters`` are in the order
    of the response.
    """

    answer: Share | None = None
    letters: tuple[Letter, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a back-end; what it does not report is None.

    ``failed`` is the reason why there is no response, else None. ``finish`` is ``length`` if the
    response, or one of its rounds, was cut off at the token limit, else ``stop``. ``work`` and
    ``timing`` are None unless a model was asked, ``paced`` unless streams were sent in real time.
    Lone surrogates in ``text`` and ``failed`` become U+FFFD: no file could hold the reply
    otherwise.
    """

    text: str
    failed: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish: str | None = None
    vision_tokens: int | None = None
    reused_tokens: int | None = None
    media_seconds: float | None = field(default=None, compare=False)
    probabilities: Probabilities | None = None
    work: Work | None = None
    timing: ReplyTiming | None = field(default=None, compare=False)
    paced: PacedRound | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", well_formed(self.text))
        if self.failed is not None:
            object.__setattr__(self, "failed", well_formed(self.failed))

    @classmethod
    def failure(cls, reason: str) -> Reply:
        """A reply without a response; the reason is put on one line."""
        return cls("", " ".join(reason.split())[:LONGEST_REASON] or "no reason given")

    @property
    def missed(self) -> bool:
        """Whether the request was never sent: a paced round that the model missed."""
        return self.failed is None and self.paced is not None and self.paced.sent is None

    @property
    def attempt(self) -> int:
        """The attempt at a paced stream that the reply belongs to; 0 for other replies."""
        return 0 if self.paced is None else self.paced.attempt

    def replaces(self, before: Reply) -> bool:
        """Whether this later reply to a request replaces the one ``before``.

        A response is never replaced by a failure, unless a paced stream was started again: only the
        last attempt counts.
        """
        if before.failed is not None or self.failed is None:
            return True
        return self.attempt > before.attempt

    def checked(self) -> Reply:
        """The reply, marked as failed if its text is a back-end's for a failed request."""
        if self.failed is not None:
            return self
        reason = failure_in(self.text)
        if reason is None:
            return self
        return replace(Reply.failure(reason), input_tokens=self.input_tokens)


@dataclass(frozen=True, slots=True)
class Slot:
    """One request: a document of a task (by its number), the repeat, and the prompt.

    A task with several rounds has a slot for each, with the number of the ``round`` from 0;
    ``outcome`` marks the slot of their joint result.
    """

    task: str
    doc_id: int
    repeat: int
    prompt: str
    outcome: bool = True
    round: int | None = field(default=None, compare=False)

    @property
    def key(self) -> bytes:
        """A hash that identifies the request; a store keeps those of all requests in memory."""
        fields = repr((self.task, self.doc_id, self.repeat, self.prompt, self.outcome))
        return hashlib.blake2b(fields.encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Answer:
    """A request and its reply."""

    slot: Slot
    reply: Reply


def failure_in(text: str) -> str | None:
    """The reason in a back-end's failure text; None for any other text.

    >>> failure_in("[LMMS_EVAL_REQUEST_FAILED after 5 retries] Connection error."), failure_in("B")
    ('after 5 retries: Connection error.', None)
    """
    stripped = text.strip()
    if not stripped.startswith(("[", "Error: ", "Failed ")):  # quicker than the patterns
        return None
    for pattern in _FAILURE_TEXTS:
        match = pattern.fullmatch(stripped)
        if match:
            reason: str = match["reason"].strip()
            if pattern is _FAILED_AFTER_RETRIES:
                reason = reason.replace("]", ":", 1)
            return reason
    return None


def is_blank(text: str) -> bool:
    """Whether a response is empty or only white space."""
    return not text.strip()
