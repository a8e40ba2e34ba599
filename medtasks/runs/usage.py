"""What a run used: time, tokens, memory. Never part of an identity, a hash or a comparison of scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    computed_field,
    model_serializer,
)
from pydantic_core import CoreSchema

from medtasks.runs.replies import Answer

Count = Annotated[int, Field(ge=0, le=10**15)]
Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class Usage(BaseModel, frozen=True):
    """What the answers to one task, or to all tasks of a run, took. A field that nothing reports is None and is not
    written; sums are over all parts of a resumed run and over all processes.

    Args:
        samples: answers that the model gave; a document has one per repeat, whatever its number of rounds.
        seconds: time in which requests were being answered, in the slowest process.
        process_seconds: the same, summed over processes.
        devices: devices that each process uses.
        time_to_first_answer: seconds from the first request to the first answer, which ends the first batch on
            back-ends that answer in batches; the least of all processes and parts. Loading the model does not count.
        prompt_tokens, output_tokens: tokens of prompts, with those of pictures, and of responses.
        vision_tokens: those of the prompt tokens that stand for pictures and frames.
        reused_tokens: prompt tokens whose keys and values were in a cache already, and were not computed again.
        media_seconds: time spent decoding and preprocessing media, summed over processes; it may overlap with the
            device's work.
        peak_device_memory: bytes allocated on the GPUs of a process, in the process with most.
        peak_rss: resident memory in bytes of a process that runs the model without a GPU, in the process with most.
    """

    samples: Count | None = None
    seconds: Amount | None = None
    process_seconds: Amount | None = None
    devices: Count | None = None
    time_to_first_answer: Amount | None = None
    prompt_tokens: Count | None = None
    output_tokens: Count | None = None
    vision_tokens: Count | None = None
    reused_tokens: Count | None = None
    media_seconds: Amount | None = None
    peak_device_memory: Count | None = None
    peak_rss: Count | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def samples_per_second(self) -> float | None:
        """Answers per second of ``seconds``."""
        return round(self.samples / self.seconds, 3) if self.samples and self.seconds else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def media_share(self) -> float | None:
        """``media_seconds`` as a share of ``process_seconds``."""
        if self.media_seconds is None or not self.process_seconds:
            return None
        return round(self.media_seconds / self.process_seconds, 4)

    @property
    def tokens(self) -> int | None:
        """Tokens of prompts and responses."""
        if self.prompt_tokens is None or self.output_tokens is None:
            return None
        return self.prompt_tokens + self.output_tokens

    @model_serializer(mode="wrap")
    def _without_absent(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None and value != {}}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler({key: value for key, value in core_schema.items() if key != "serialization"})
        handler.resolve_ref_schema(schema).pop("required", None)
        return schema

    def per_sample(self, amount: float | None) -> float | None:
        """``amount`` by answer of the model; None without either."""
        return amount / self.samples if amount is not None and self.samples else None


class RunUsage(Usage, frozen=True):
    """What a run used in all, and by task.

    Args:
        counters: the back-end's own counters, summed over processes, since the run was last started.
        tasks: by task; if several tasks are answered in one batch, each has the time of its share of the requests.
    """

    counters: dict[str, Count] = {}
    tasks: dict[str, Usage] = {}

    def of(self, tasks: Sequence[str]) -> Usage:
        """The usage of some of the run's tasks; of several, but not all, without a time to first answer."""
        if self.tasks and set(tasks) == set(self.tasks):
            return Usage(**{name: getattr(self, name) for name in Usage.model_fields})
        if not tasks or not set(tasks) <= set(self.tasks):
            return Usage()
        parts = [self.tasks[task] for task in dict.fromkeys(tasks)]
        if len(parts) == 1:
            return parts[0]
        largest = ("devices", "peak_device_memory", "peak_rss")
        summed = set(Usage.model_fields) - {*largest, "time_to_first_answer"}
        return Usage(
            **{name: _sum(getattr(part, name) for part in parts) for name in summed},
            **{name: _most(getattr(part, name) for part in parts) for name in largest},
        )


def run_usage(
    processes: Sequence[Sequence[Answer]],
    *,
    devices: int = 1,
    counters: dict[str, int] | None = None,
) -> RunUsage:
    """The usage of a run whose processes got these replies, in all parts of the run."""
    tasks = sorted({one.slot.task for process in processes for one in process})
    whole = usage_of(processes, devices)
    return RunUsage(
        **{name: getattr(whole, name) for name in Usage.model_fields},
        counters=counters or {},
        tasks={
            task: usage_of([[one for one in process if one.slot.task == task] for process in processes], devices)
            for task in tasks
        },
    )


def usage_of(processes: Sequence[Sequence[Answer]], devices: int = 1) -> Usage:
    """The usage behind these replies, by process.

    Counts of tokens are over replies that did not fail, and None unless each of these has one.
    """
    every = [one for process in processes for one in process]
    done = [one for one in every if one.reply.work is not None]
    replies = [one.reply for one in done if one.reply.failed is None]
    worked = {_repeat(one) for one in done}
    answered = {_repeat(one) for one in every if one.slot.outcome and one.reply.failed is None}
    if not done:
        return Usage()
    times = [sum(one.reply.work.seconds for one in process if one.reply.work is not None) for process in processes]
    works = [one.reply.work for one in done if one.reply.work is not None]
    ends = [reply.work.end for reply in replies if reply.work is not None]
    return Usage(
        samples=len(answered & worked),
        seconds=round(max(times), 3),
        process_seconds=round(sum(times), 3),
        devices=devices,
        time_to_first_answer=round(min(ends) - min(work.start for work in works), 3) if ends else None,
        prompt_tokens=_sum(reply.input_tokens for reply in replies),
        output_tokens=_sum(reply.output_tokens for reply in replies),
        vision_tokens=_sum(reply.vision_tokens for reply in replies),
        reused_tokens=_sum(reply.reused_tokens for reply in replies),
        media_seconds=_sum(reply.media_seconds for reply in replies),
        peak_device_memory=_most(work.device_memory for work in works),
        peak_rss=_most(work.rss for work in works),
    )


def _repeat(answer: Answer) -> tuple[str, int, int]:
    return answer.slot.task, answer.slot.doc_id, answer.slot.repeat


def _sum(numbers: Iterable[Any]) -> Any:
    """The sum; None if one is unknown, or there is none."""
    found = list(numbers)
    if not found or None in found:
        return None
    return round(sum(found), 3)


def _most(numbers: Iterable[int | None]) -> int | None:
    return max((number for number in numbers if number is not None), default=None)
