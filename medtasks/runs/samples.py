"""The complete sample line (design, section 3), from which everything can be rescored without a
model.
"""

from __future__ import annotations

import os
import shutil
import weakref
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, NamedTuple, TypeAlias

from pydantic import Field, ValidationError

from medtasks.catalog.items import SampleView, Value
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, read_lines
from medtasks.core.schema import Compact, first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.metrics.confidence import REASONS
from medtasks.runs.replies import Probabilities, Reply, Share
from medtasks.runs.verdict import Verdict

UNKNOWN_PROMPT = "unknown"
"""In place of a prompt's hash: the response was made elsewhere."""

Limits: TypeAlias = "tuple[tuple[float, ...], tuple[float, ...]]"
"""Worst and best sufficient statistics that are still possible; equal if nothing is open."""

Reason: TypeAlias = Annotated[str, Field(pattern=f"^({'|'.join(REASONS)})$")]
"""Why an answer has no confidence."""


class Outcome(NamedTuple):
    """What became of a sample: its status, why its response is missing, how it was read, and
    whether it is too long to be scored whole.
    """

    status: str
    failure: str | None = None
    reading: str = ""
    scored_in_part: bool = False


class Repeat(Compact):
    """One of several responses to the same question: the filtered response, and the statistics of
    each metric.
    """

    filtered: str
    status: str
    statistics: dict[str, tuple[float, ...]]


class JudgedResponse(Compact):
    """A panel's verdicts on one response under one rubric, none if judges are not asked about it;
    ``text`` is the hash of the judged text, ``open`` gives the reason for each undecided aspect.
    """

    text: str
    judges: dict[str, Verdict] = Field(default_factory=dict)
    open: dict[str, str] = Field(default_factory=dict)


class JudgedScore(Compact):
    """One metric of one sample, computed from verdicts: its limits, with those of each repeat and
    of each part; ``judge`` is the hash of the panel that was asked.
    """

    rubric: str
    judge: str | None
    limits: Limits
    repeats: tuple[Limits, ...] = ()
    parts: dict[str, Limits] = Field(default_factory=dict)

    @cached_property
    def value(self) -> Value:
        (low, high), judge = self.limits, self.judge
        if (
            low != high
        ):  # parts of an undecided sample are undecided too, or they would not add up to the whole
            parts = {name: Value(None, *one, judge=judge) for name, one in self.parts.items()}
            return Value(None, low, high, judge=judge, parts=parts)
        parts = {name: Value(one[0], judge=judge) for name, one in self.parts.items()}
        return Value(low, repeats=tuple(one[0] for one in self.repeats), judge=judge, parts=parts)


class Sample(Compact):
    """One answered question.

    ``scores`` has the sample's own value per metric (None if the metric has none per sample, or was
    not computed), ``statistics`` the sufficient statistics for corpus scores, ``pending`` the
    metrics that await a judge. If the question was repeated, ``repeats`` has each response's part;
    ``filtered`` and ``status`` are those of the first. ``reading`` is how an option was named, by
    ``letter`` or by ``text``, or ``named`` where no option was read but the response contains the
    text of just one. ``scored_in_part`` is whether a response is so long that only its beginning
    and its end were scored. ``verdicts`` has the judges' verdicts on each response, by rubric;
    ``judged`` the metrics computed from them. ``probabilities`` are those of each response, empty
    if the back-end reports none. ``confidence`` is only in stripped samples, whose response was
    removed: the confidence of the answer, or the reason why it has none.

    If a response is missing, the status is ``failed``: ``failed`` has the reason for each of
    ``responses`` (None for those that are there), ``limits`` the range in which each metric's
    statistics would be.
    """

    sample_id: str
    task: str
    cluster: str
    media: tuple[str, ...]
    prompt_hash: str
    prompt: str
    target: str
    responses: tuple[str, ...]
    failed: tuple[str | None, ...] = ()
    probabilities: tuple[Probabilities | None, ...] = Field(
        default=(), exclude_if=lambda value: not value
    )
    confidence: Share | Reason | None = Field(default=None, exclude_if=lambda value: value is None)
    filtered: str
    reading: str = Field(default="", exclude_if=lambda value: not value)
    scored_in_part: bool = Field(default=False, exclude_if=lambda value: not value)
    status: str
    scores: dict[str, float | None]
    statistics: dict[str, tuple[float, ...]]
    limits: dict[str, Limits] = Field(default_factory=dict)  # faster than {}, which pydantic copies
    pending: tuple[str, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    verdicts: dict[str, tuple[JudgedResponse, ...]] = Field(default_factory=dict)
    judged: dict[str, JudgedScore] = Field(default_factory=dict)
    document: dict[str, Any]

    @classmethod
    def answered(
        cls,
        task: str,
        document: Mapping[str, Any],
        replies: Sequence[Reply],
        prompt: str = "",
        prompt_hash: str = "",
    ) -> Sample:
        """A document, which includes sample id, cluster, media and target, and the replies to it,
        one per repeat, before they are scored (`medtasks.scoring.scored_samples.scored_samples`).

        With `UNKNOWN_PROMPT` as the hash, ours is not stored: it may not be what was asked.
        """
        own = {name: document[name] for name in ("sample_id", "cluster", "media", "target")}
        others = {name: value for name, value in document.items() if name not in own}
        unscored: dict[str, Any] = {"filtered": "", "status": "", "scores": {}, "statistics": {}}
        given = {
            "task": task,
            "prompt": "" if prompt_hash == UNKNOWN_PROMPT else prompt,
            "prompt_hash": prompt_hash,
            **reply_fields(replies),
        }
        return cls(**own, **given, **unscored, document=others)

    @property
    def replies(self) -> list[Reply]:
        """The replies, marked as failed if their text is one that a back-end returns for a failed
        request.
        """
        failed = self.failed or (None,) * len(self.responses)
        probabilities = self.probabilities or (None,) * len(self.responses)
        given = zip(self.responses, failed, probabilities, strict=True)
        return [Reply(text, reason, probabilities=sure).checked() for text, reason, sure in given]

    def view(self) -> SampleView:
        """The sample as scoring and breakdowns see it."""
        values, judged, statistics, repeats = {}, self.judged, self.statistics, self.repeats
        for name in self.scores:
            value = Value()
            if name in judged:
                value = judged[name].value
            elif name in statistics and self.status != FAILED:
                several = tuple(one.statistics[name] for one in repeats) if repeats else ()
                value = Value(statistics[name], repeats=several)
            if self.status == FAILED:
                low, high = self.limits.get(name, (value.low, value.high))
                parts = {
                    key: part._replace(failed=part.statistics is None)
                    for key, part in value.parts.items()
                }
                value = value._replace(
                    low=low, high=high, parts=parts, failed=value.statistics is None
                )
            values[name] = value
        return SampleView(
            self.sample_id,
            self.cluster,
            {**self.document, "target": self.target},
            self.filtered,
            self.status,
            values,
            tuple(repeat.status for repeat in self.repeats[1:]),
            self.task,
        )

    def whole_document(self) -> dict[str, Any]:
        """The document as it was passed to the harness."""
        own = {
            "sample_id": self.sample_id,
            "cluster": self.cluster,
            "media": list(self.media),
            "target": self.target,
        }
        return {**self.document, **own}

    @property
    def failure(self) -> str | None:
        """Why the first failed response is missing; None if none failed."""
        return next((reason for reason in self.failed if reason is not None), None)

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.status, self.failure, self.reading, self.scored_in_part)


def reply_fields(replies: Sequence[Reply]) -> dict[str, Any]:
    failed = tuple(reply.failed for reply in replies)
    probabilities = tuple(reply.probabilities for reply in replies)
    return {
        "responses": tuple(reply.text for reply in replies),
        "failed": () if all(one is None for one in failed) else failed,
        "probabilities": () if all(one is None for one in probabilities) else probabilities,
    }


class SampleLines(Sequence[Sample]):
    """Samples as the lines of their file, sorted by sample id; each is parsed when it is read.

    They are in a file without a name in ``directory``, by default the system's for temporary files.
    """

    def __init__(self, samples: Iterable[Sample], directory: Path | None = None) -> None:
        self._file: IO[bytes] = TemporaryFile(dir=directory)  # noqa: SIM115 - kept
        weakref.finalize(self, self._file.close)
        self._begins = array("q")
        self.extend(samples)

    def extend(self, samples: Iterable[Sample]) -> None:
        """Append samples that come after all others."""
        self._file.seek(0, os.SEEK_END)
        for sample in sorted(samples, key=lambda sample: sample.sample_id):
            self._begins.append(self._file.tell())
            self._file.write(canonical_json(sample.model_dump(mode="json")).encode() + b"\n")

    def __getitem__(self, place: Any) -> Any:
        self._file.seek(self._begins[place])
        return Sample.model_validate_json(self._file.readline())

    def __len__(self) -> int:
        return len(self._begins)

    def write(self, path: Path) -> None:
        self._file.seek(0)
        with path.open("wb") as stream:
            shutil.copyfileobj(self._file, stream)


@dataclass(frozen=True)
class SampleFile:
    """The samples of a file that `SampleLines` wrote; each iteration reads it anew, one sample at a
    time.
    """

    path: Path

    def __iter__(self) -> Iterator[Sample]:
        return (sample for *_, sample in sample_lines(self.path))

    @property
    def confident(self) -> bool:
        """Whether a sample may have probabilities or a confidence: the fields are there, in it or
        in its document.
        """
        with reading(self.path, "restore it"):
            return any(
                b'"probabilities":' in line or b'"confidence":' in line
                for line in read_lines(self.path)
            )


def sample_lines(path: Path) -> Iterator[tuple[int, int, Sample]]:
    """The samples of a file that `SampleLines` wrote, each with where its line begins and how long
    it is.
    """
    begin = 0
    with reading(path, "restore it"):
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                try:
                    yield begin, len(line), model_from_json(Sample, line)
                except ValidationError as error:
                    problem = f"{path}, line {number}: {first_problem(error)}; restore it."
                    raise DataError(problem) from error
            begin += len(line)


def lacks_texts(samples: Sequence[Sample]) -> bool:
    """Whether these samples have neither prompts nor responses."""
    return bool(samples) and all(not sample.prompt and not sample.responses for sample in samples)
