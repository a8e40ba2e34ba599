"""Replies of back-ends: a response, or the reason why there is none; and what a run used to get
them.

A request without a response is *failed*: it counts neither as right nor as wrong. Time, tokens and
memory are never part of an identity, a hash or a comparison of scores.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, computed_field

from medtasks.core.text import well_formed

BLANK = "blank response, with no sign that the model generated a token"
ALL_BLANK = "every response of the run is blank"
NOT_ASKED = "not asked: the run ended before"
LONGEST_REASON = 300

_FAILURE_TEXTS = (
    re.compile(r"\[LMMS_EVAL_REQUEST_FAILED(?P<reason>.*)", re.DOTALL),
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
    """When a reply was made: ``start`` and ``end`` of its batch, in seconds since the process sent
    its first request, and its share of the batch's ``seconds``; the peaks of memory are those of
    the process so far, in bytes.
    """

    start: float
    end: float
    seconds: float
    device_memory: int | None = None
    rss: int | None = None


Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Letter:
    """An option letter that the model generated, at character ``at`` of the response.

    ``options`` has the probabilities of all options at this token, normalised to 1; ``mass`` is
    what they have together of the probability of all tokens. A token with blanks or signs around
    the letter counts as the letter.
    """

    at: int
    letter: str
    options: dict[str, Share]
    mass: Share


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Probabilities of a response, in whole percents: finer ones would change with the composition
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
    response, or one of its rounds, was cut off at the token limit, else ``stop``. ``work`` is None
    unless a model was asked. Lone surrogates in ``text`` and ``failed`` become U+FFFD: no file
    could hold the reply otherwise.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", well_formed(self.text))
        if self.failed is not None:
            object.__setattr__(self, "failed", well_formed(self.failed))

    @classmethod
    def failure(cls, reason: str) -> Reply:
        """A reply without a response; the reason is put on one line."""
        return cls("", " ".join(reason.split())[:LONGEST_REASON] or "no reason given")

    def checked(self) -> Reply:
        """The reply, marked as failed if its text is a back-end's for a failed request."""
        reason = None if self.failed is not None else failure_in(self.text)
        if reason is None:
            return self
        return replace(Reply.failure(reason), input_tokens=self.input_tokens)


@dataclass(frozen=True, slots=True)
class Slot:
    """One request: a document of a task (by its number), the repeat, and the prompt.

    A task with several rounds has a slot for each; ``outcome`` marks the slot of their joint
    result.
    """

    task: str
    doc_id: int
    repeat: int
    prompt: str
    outcome: bool = True

    @property
    def key(self) -> bytes:
        """Identifies the request: a hash, since a store keeps the key of every request in
        memory.
        """
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
            return reason.replace("]", ":", 1) if pattern is _FAILURE_TEXTS[0] else reason
    return None


def is_blank(text: str) -> bool:
    """Whether a response is empty or only white space."""
    return not text.strip()


# --- what a run used ---

Count = Annotated[int, Field(ge=0, le=10**15)]
_Count = Annotated[Count | None, Field(exclude_if=lambda value: value is None)]
_Amount = Annotated[
    Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None,
    Field(exclude_if=lambda value: value is None),
]


class Usage(BaseModel, frozen=True):
    """What the answers to one task, or to all tasks of a run, took. A field that nothing reports is
    None and is not written; sums are over all parts of a resumed run and over all processes.

    Args:
        samples: answers that the model gave; a document has one per repeat, whatever its number of
            rounds.
        seconds: time in which requests were being answered, in the slowest process.
        process_seconds: the same, summed over processes.
        devices: devices that each process uses.
        time_to_first_answer: seconds from the first request to the first answer, which ends the
            first batch on back-ends that answer in batches; the least of all processes and parts.
            Loading the model does not count.
        prompt_tokens, output_tokens: tokens of prompts, with those of pictures, and of responses.
        vision_tokens: those of the prompt tokens that stand for pictures and frames.
        reused_tokens: prompt tokens whose keys and values were in a cache already, and were not
            computed again.
        media_seconds: time spent decoding and preprocessing media, summed over processes; it may
            overlap with the device's work.
        peak_device_memory: bytes allocated on the GPUs of a process, in the process with most.
        peak_rss: resident memory in bytes of a process that runs the model without a GPU, in the
            process with most.
    """

    samples: _Count = None
    seconds: _Amount = None
    process_seconds: _Amount = None
    devices: _Count = None
    time_to_first_answer: _Amount = None
    prompt_tokens: _Count = None
    output_tokens: _Count = None
    vision_tokens: _Count = None
    reused_tokens: _Count = None
    media_seconds: _Amount = None
    peak_device_memory: _Count = None
    peak_rss: _Count = None

    @computed_field(exclude_if=lambda value: value is None)  # type: ignore[prop-decorator]
    @property
    def samples_per_second(self) -> float | None:
        """Answers per second of ``seconds``."""
        return round(self.samples / self.seconds, 3) if self.samples and self.seconds else None

    @computed_field(exclude_if=lambda value: value is None)  # type: ignore[prop-decorator]
    @property
    def media_share(self) -> float | None:
        """``media_seconds`` as a share of ``process_seconds``."""
        if self.media_seconds is None or not self.process_seconds:
            return None
        return round(self.media_seconds / self.process_seconds, 4)

    @property
    def tokens(self) -> int | None:
        if self.prompt_tokens is None or self.output_tokens is None:
            return None
        return self.prompt_tokens + self.output_tokens

    def per_sample(self, amount: float | None) -> float | None:
        """``amount`` by answer of the model; None without either."""
        return amount / self.samples if amount is not None and self.samples else None


class RunUsage(Usage, frozen=True):
    """What a run used in all, and by task.

    Args:
        counters: the back-end's own counters, summed over processes, since the run was last
            started.
        tasks: by task; if several tasks are answered in one batch, each has the time of its share
            of the requests.
    """

    counters: dict[str, Count] = Field(default_factory=dict, exclude_if=lambda value: not value)
    tasks: dict[str, Usage] = Field(default_factory=dict, exclude_if=lambda value: not value)

    def of(self, tasks: Sequence[str]) -> Usage:
        """The usage of some of the run's tasks; of several, but not all, without a time to first
        answer.
        """
        if self.tasks and set(tasks) == set(self.tasks):
            return Usage.model_validate(self.model_dump(include=set(Usage.model_fields)))
        if not tasks or not set(tasks) <= set(self.tasks):
            return Usage()
        parts = [self.tasks[task] for task in dict.fromkeys(tasks)]
        if len(parts) == 1:
            return parts[0]
        fields = {}
        for name in Usage.model_fields.keys() - {"time_to_first_answer"}:
            reduce = _most if name in ("devices", "peak_device_memory", "peak_rss") else _sum
            fields[name] = reduce(getattr(part, name) for part in parts)
        return Usage(**fields)


def run_usage(
    processes: Sequence[Sequence[Answer]],
    *,
    devices: int = 1,
    counters: dict[str, int] | None = None,
) -> RunUsage:
    """The usage of a run whose processes got these replies, in all parts of the run."""
    tasks: set[str] = set()
    for answers in processes:
        tasks |= {answer.slot.task for answer in answers}
    by_task = {}
    for task in sorted(tasks):
        of_task = []
        for answers in processes:
            of_task.append([answer for answer in answers if answer.slot.task == task])
        usage = usage_of(of_task, devices)
        if usage != Usage():
            by_task[task] = usage
    return RunUsage(**dict(usage_of(processes, devices)), counters=counters or {}, tasks=by_task)


def usage_of(processes: Sequence[Sequence[Answer]], devices: int = 1) -> Usage:
    """The usage behind the replies of each process.

    Counts of tokens are over replies that did not fail, and None unless each of these has one.
    """
    works: list[Work] = []
    seconds_of_processes: list[float] = []
    worked: set[tuple[str, int, int]] = set()
    answered: set[tuple[str, int, int]] = set()
    replies: list[Reply] = []
    ends: list[float] = []
    for answers in processes:
        seconds: list[float] = []
        for answer in answers:
            slot, reply = answer.slot, answer.reply
            place = (slot.task, slot.doc_id, slot.repeat)
            if slot.outcome and reply.failed is None:
                answered.add(place)
            if reply.work is None:
                continue
            works.append(reply.work)
            worked.add(place)
            seconds.append(reply.work.seconds)
            if reply.failed is None:
                replies.append(reply)
                ends.append(reply.work.end)
        seconds_of_processes.append(sum(seconds))
    if not works:
        return Usage()
    first_answer = None
    if ends:
        first_answer = round(min(ends) - min(work.start for work in works), 3)
    return Usage(
        samples=len(answered & worked),
        seconds=round(max(seconds_of_processes), 3),
        process_seconds=round(sum(seconds_of_processes), 3),
        devices=devices,
        time_to_first_answer=first_answer,
        prompt_tokens=_sum(reply.input_tokens for reply in replies),
        output_tokens=_sum(reply.output_tokens for reply in replies),
        vision_tokens=_sum(reply.vision_tokens for reply in replies),
        reused_tokens=_sum(reply.reused_tokens for reply in replies),
        media_seconds=_sum(reply.media_seconds for reply in replies),
        peak_device_memory=_most(work.device_memory for work in works),
        peak_rss=_most(work.rss for work in works),
    )


def _sum(numbers: Iterable[Any]) -> Any:
    """The sum; None if one is unknown, or there is none."""
    known = list(numbers)
    return round(sum(known), 3) if known and None not in known else None


def _most(numbers: Iterable[int | None]) -> int | None:
    return max((number for number in numbers if number is not None), default=None)
