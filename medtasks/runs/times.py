"""The seconds of every request of a run: ``times/<task>.jsonl`` in its result directory.

None of it is ever part of an identity, a hash or a comparison of scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import Field, ValidationError

from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, read_lines
from medtasks.core.schema import Compact, first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.runs.replies import Answer, Moment, PacedRound, Positive, ReplyTiming, Seconds
from medtasks.runs.usage import Count

TIMES = "times"
"""The directory of the times in a result directory."""


class RequestTime(Compact):
    """The seconds of one request to the model, or of one round of a stage-wise question.

    The fields are those of `medtasks.runs.replies.ReplyTiming`, all but ``batch``, ``in_flight``
    and ``attempts`` None if they are unknown.

    Args:
        sample_id: the sample that was asked.
        repeat: the number of the request among several for the same sample, from 0.
        round: the number of the round, from 0; None if there is only one. Rounds of streams are
            samples of their own.
        output_tokens: tokens of the response; None if unknown.
        failed: whether there is no response.
        paced: when the round of a paced stream was due, sent and answered in the stream's own time;
            None in other runs. A missed round has no ``seconds``.
    """

    sample_id: str
    repeat: Annotated[int, Field(ge=0)] = 0
    round: Annotated[int, Field(ge=0)] | None = None
    seconds: Seconds | None = None
    sent: Moment | None = None
    queued: Seconds | None = None
    first_token: Seconds | None = None
    batch: Positive = 1
    in_flight: Positive = 1
    attempts: Positive = 1
    hardware: str | None = None
    output_tokens: Count | None = None
    failed: bool = False
    paced: PacedRound | None = None

    @property
    def order(self) -> tuple[str, int, int]:
        """The order of the lines of a file."""
        return self.sample_id, self.repeat, -1 if self.round is None else self.round

    @property
    def missed(self) -> bool:
        """Whether the request is a round of a paced stream that was not sent."""
        return not self.failed and self.paced is not None and self.paced.sent is None

    @property
    def is_batched(self) -> bool:
        """Whether the seconds are those of several requests that were answered together."""
        return self.batch > 1


Times: TypeAlias = "Mapping[str, Sequence[RequestTime]]"
"""The times of a run's requests by task, in the order of `RequestTime.order`."""
NO_TIMES: Times = MappingProxyType({})
"""The times of a run that has none."""


def request_times(
    answers: Iterable[Answer], sample_ids: Mapping[int, str] | Sequence[str]
) -> list[RequestTime]:
    """The times of the requests of one task, in all parts of a run.

    Of several replies to a request, the one that the run kept counts (`Reply.replaces`). Joint
    results of rounds are left out: their rounds were requests.

    Args:
        answers: the replies to the task's requests.
        sample_ids: the sample's id by document number.
    """
    final: dict[tuple[int, int, int | None], Answer] = {}
    with_rounds: set[tuple[int, int]] = set()
    for answer in answers:
        slot = answer.slot
        if slot.round is not None:
            with_rounds.add((slot.doc_id, slot.repeat))
        elif not slot.outcome:
            continue  # a round of a version that did not keep its number
        place = slot.doc_id, slot.repeat, slot.round
        earlier = final.get(place)
        if earlier is None or answer.reply.replaces(earlier.reply):
            final[place] = answer
    times: list[RequestTime] = []
    for (doc_id, repeat, number), answer in final.items():
        if number is None and (doc_id, repeat) in with_rounds:
            continue
        times.append(_request_time(answer, sample_ids[doc_id]))
    return sorted(times, key=lambda time: time.order)


_TIMING = tuple(field.name for field in fields(ReplyTiming))
"""The fields of a timing."""


def _request_time(answer: Answer, sample_id: str) -> RequestTime:
    """The time of one request."""
    reply = answer.reply
    timing: dict[str, Any] = {}
    if reply.timing is not None:
        timing = {name: getattr(reply.timing, name) for name in _TIMING}
    return RequestTime(
        sample_id=sample_id,
        repeat=answer.slot.repeat,
        round=answer.slot.round,
        output_tokens=reply.output_tokens,
        failed=reply.failed is not None,
        paced=reply.paced,
        **timing,
    )


def has_times(times: Times) -> bool:
    """Whether the seconds of any request are known."""
    return any(time.seconds is not None for task in times.values() for time in task)


def of_tasks(times: Times, tasks: Collection[str]) -> dict[str, Sequence[RequestTime]]:
    """The times of the requests of these tasks."""
    return {task: of_task for task, of_task in times.items() if task in tasks}


def write_times(folder: Path, times: Times) -> None:
    """Write the times of each task into the result directory ``folder``."""
    (folder / TIMES).mkdir(exist_ok=True)
    for task, of_task in sorted(times.items()):
        with (folder / TIMES / f"{task}.jsonl").open("w", encoding="utf-8") as stream:
            for time in of_task:
                line = time.model_dump(mode="json", exclude_defaults=True)
                stream.write(canonical_json(line) + "\n")


def read_times(folder: Path) -> dict[str, list[RequestTime]]:
    """The times in the result directory ``folder``, by task; empty if it has none.

    Raises:
        DataError: a file cannot be read; names file, line and field.
    """
    times: dict[str, list[RequestTime]] = {}
    for path in sorted((folder / TIMES).glob("*.jsonl")):
        times[path.stem] = list(_read_file(path))
    return times


class FoundTimes(NamedTuple):
    """The times in a result directory, or why they cannot be read: no score depends on them."""

    times: Times
    problem: str | None = None

    @classmethod
    def of(cls, folder: Path) -> FoundTimes:
        """The times in the result directory ``folder``; none if a file is damaged."""
        try:
            return cls(read_times(folder))
        except DataError as error:
            return cls(NO_TIMES, f"no latency: {error}")


def _read_file(path: Path) -> Iterator[RequestTime]:
    """The times in a file."""
    fix = f"restore it, or remove {TIMES}/, which no score needs"
    requests: set[tuple[str, int, int]] = set()
    with reading(path, fix):
        for number, line in enumerate(read_lines(path), start=1):
            place = f"{path}, line {number}"
            try:
                time = model_from_json(RequestTime, line)
            except ValidationError as error:
                raise DataError(f"{place}: {first_problem(error)}; {fix}.") from error
            if time.order in requests:
                problem = f"the request of sample {time.sample_id} is duplicated, expected once"
                raise DataError(f"{place}: {problem}; {fix}.")
            requests.add(time.order)
            yield time
