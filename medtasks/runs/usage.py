"""What a run used to get its replies: time, tokens and memory, in all and by task.

None of it is ever part of an identity, a hash or a comparison of scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, computed_field

from medtasks.runs.replies import Answer, Reply, Work

Number = TypeVar("Number", int, float)
Count = Annotated[int, Field(ge=0, le=10**15)]
_Count = Annotated[Count | None, Field(exclude_if=lambda value: value is None)]
_Amount = Annotated[
    Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None,
    Field(exclude_if=lambda value: value is None),
]


def _with_optional_fields(schema: dict[str, Any]) -> None:
    """Make every field of a JSON schema optional.

    Before version 2.14, pydantic requires computed fields even if they may be left out.
    """
    schema.pop("required", None)


class Usage(BaseModel, frozen=True):
    """Time, tokens and memory that the answers to one task, or to all tasks of a run, took. A field
    that nothing reports is None and is not written; sums are over all parts of a resumed run and
    over all processes.

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

    model_config = ConfigDict(json_schema_extra=_with_optional_fields)

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
        if not self.samples or not self.seconds:
            return None
        return round(self.samples / self.seconds, 3)

    @computed_field(exclude_if=lambda value: value is None)  # type: ignore[prop-decorator]
    @property
    def media_share(self) -> float | None:
        """``media_seconds`` as a share of ``process_seconds``."""
        if self.media_seconds is None or not self.process_seconds:
            return None
        return round(self.media_seconds / self.process_seconds, 4)

    @property
    def tokens(self) -> int | None:
        """Tokens of prompts and responses; None unless both are known."""
        if self.prompt_tokens is None or self.output_tokens is None:
            return None
        return self.prompt_tokens + self.output_tokens

    def per_sample(self, amount: float | None) -> float | None:
        """``amount`` by answer of the model; None without either."""
        if amount is None or not self.samples:
            return None
        return amount / self.samples


class RunUsage(Usage, frozen=True):
    """Time, tokens and memory that a run used, in all and by task.

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
        return _added(parts)


def _added(parts: Sequence[Usage]) -> Usage:
    """The usage of several tasks together, without a time to first answer."""
    return Usage(
        samples=_sum_if_known(part.samples for part in parts),
        seconds=_sum_if_known(part.seconds for part in parts),
        process_seconds=_sum_if_known(part.process_seconds for part in parts),
        devices=_largest(part.devices for part in parts),
        prompt_tokens=_sum_if_known(part.prompt_tokens for part in parts),
        output_tokens=_sum_if_known(part.output_tokens for part in parts),
        vision_tokens=_sum_if_known(part.vision_tokens for part in parts),
        reused_tokens=_sum_if_known(part.reused_tokens for part in parts),
        media_seconds=_sum_if_known(part.media_seconds for part in parts),
        peak_device_memory=_largest(part.peak_device_memory for part in parts),
        peak_rss=_largest(part.peak_rss for part in parts),
    )


def run_usage(
    processes: Sequence[Sequence[Answer]],
    *,
    devices: int = 1,
    counters: dict[str, int] | None = None,
) -> RunUsage:
    """The usage of a run whose processes got these replies, in all parts of the run."""
    tasks: set[str] = set()
    for answers in processes:
        tasks.update(answer.slot.task for answer in answers)
    by_task = {}
    for task in sorted(tasks):
        usage = usage_of([_answers_to(task, answers) for answers in processes], devices)
        if usage != Usage():
            by_task[task] = usage
    total = usage_of(processes, devices)
    return RunUsage(**dict(total), counters=counters or {}, tasks=by_task)


def _answers_to(task: str, answers: Sequence[Answer]) -> list[Answer]:
    """The replies to the requests of one task."""
    return [answer for answer in answers if answer.slot.task == task]


def usage_of(processes: Sequence[Sequence[Answer]], devices: int = 1) -> Usage:
    """The usage behind the replies of each process.

    Counts of tokens are over replies that did not fail, and None unless each of these has one.
    """
    measured = _Measured()
    for answers in processes:
        measured.add_process(answers)
    if not measured.works:
        return Usage()
    replies = measured.replies
    return Usage(
        samples=len(measured.answered & measured.worked),
        seconds=round(max(measured.seconds_of_processes), 3),
        process_seconds=round(sum(measured.seconds_of_processes), 3),
        devices=devices,
        time_to_first_answer=measured.time_to_first_answer,
        prompt_tokens=_sum_if_known(reply.input_tokens for reply in replies),
        output_tokens=_sum_if_known(reply.output_tokens for reply in replies),
        vision_tokens=_sum_if_known(reply.vision_tokens for reply in replies),
        reused_tokens=_sum_if_known(reply.reused_tokens for reply in replies),
        media_seconds=_sum_if_known(reply.media_seconds for reply in replies),
        peak_device_memory=_largest(work.device_memory for work in measured.works),
        peak_rss=_largest(work.rss for work in measured.works),
    )


@dataclass
class _Measured:
    """The work behind the replies of all processes.

    ``replies`` are those that were measured and did not fail. ``answered`` has the task, document
    and repeat of each outcome that did not fail, ``worked`` of each measured reply.
    """

    works: list[Work] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    seconds_of_processes: list[float] = field(default_factory=list)
    answered: set[tuple[str, int, int]] = field(default_factory=set)
    worked: set[tuple[str, int, int]] = field(default_factory=set)

    def add_process(self, answers: Sequence[Answer]) -> None:
        """Add the replies of one process."""
        seconds: list[float] = []
        for answer in answers:
            slot = answer.slot
            reply = answer.reply
            place = (slot.task, slot.doc_id, slot.repeat)
            if slot.outcome and reply.failed is None:
                self.answered.add(place)
            if reply.work is None:
                continue
            self.works.append(reply.work)
            self.worked.add(place)
            seconds.append(reply.work.seconds)
            if reply.failed is None:
                self.replies.append(reply)
        self.seconds_of_processes.append(sum(seconds))

    @property
    def time_to_first_answer(self) -> float | None:
        """Seconds from the first request to the first response; None if all requests failed."""
        ends = [reply.work.end for reply in self.replies if reply.work is not None]
        if not ends:
            return None
        return round(min(ends) - min(work.start for work in self.works), 3)


def _sum_if_known(numbers: Iterable[Number | None]) -> Number | None:
    """The sum; None if one is unknown, or there is none."""
    total: list[Number] = []
    for number in numbers:
        if number is None:
            return None
        total.append(number)
    return round(sum(total), 3) if total else None


def _largest(numbers: Iterable[int | None]) -> int | None:
    """The largest of the numbers that are known."""
    return max((number for number in numbers if number is not None), default=None)
