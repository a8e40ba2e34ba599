"""The complete sample line (design, section 3): from it everything can be rescored without a model."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from medtasks.benchmarks.base import FAILED, SampleView, Value
from medtasks.errors import DataError
from medtasks.files import canonical_json
from medtasks.schema import first_problem

Limits: TypeAlias = "tuple[tuple[float, ...], tuple[float, ...]]"
"""Worst and best sufficient statistics that are still possible; equal where nothing is open."""


class Repeat(BaseModel):
    """One of several responses to the same question: what was extracted, and the statistics of each metric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    filtered: str
    status: str
    statistics: dict[str, tuple[float, ...]]


class JudgeEntry(BaseModel):
    """What one judge said of one response: scores and reasons by aspect, or why there is no verdict.

    ``key`` finds it in the verdict store; tokens are those of the answer, and of the repair where one was asked for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str | None
    scores: dict[str, int] | None = None
    reasons: dict[str, str] = {}
    unjudged: str | None = None
    repaired: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


class JudgedResponse(BaseModel):
    """What a panel said of one response under one rubric.

    ``text`` is the hash of the judged text; ``judges`` is empty where the response is no question to a judge.
    ``open`` says of every aspect that is not decided why.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    judges: dict[str, JudgeEntry] = {}
    open: dict[str, str] = {}


class JudgedScore(BaseModel):
    """One metric that verdicts give, of one sample: its limits, with those of each repeat and of each part.

    ``judge`` is the hash of the panel that was asked; None where none was.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rubric: str
    judge: str | None
    limits: Limits
    repeats: tuple[Limits, ...] = ()
    parts: dict[str, Limits] = {}

    def value(self) -> Value:
        """As scoring sees it."""
        low, high = self.limits
        open_ = low != high
        # a part of an undecided sample is as undecided: else the parts would not add up to the whole
        parts = {
            name: Value(low=one[0], high=one[1], judge=self.judge)
            if open_
            else Value(statistics=one[0], judge=self.judge)
            for name, one in self.parts.items()
        }
        if open_:
            return Value(low=low, high=high, judge=self.judge, parts=parts)
        return Value(statistics=low, repeats=tuple(one[0] for one in self.repeats), judge=self.judge, parts=parts)


class Sample(BaseModel):
    """One answered question.

    ``scores`` holds the sample's own value per metric (None where a metric has none per sample, or was not
    computed), ``statistics`` the sufficient statistics that corpus scores are made of, ``pending`` the metrics that
    await a judge. The scores of a streaming item belong to its rounds together and are made of their documents.
    Where the question was asked several times, ``repeats`` holds each response's part; ``filtered`` and ``status`` are
    those of the first. ``verdicts`` is what judges said, by rubric, for each response; ``judged`` the metrics made of
    it.

    Where the back-end gave no response, the status is ``failed``: ``failed`` holds the reason for each of
    ``responses`` (None where there is one), ``limits`` between which each metric's statistics would lie.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_id: str
    task: str
    cluster: str
    media: tuple[str, ...]
    prompt_hash: str
    prompt: str
    target: str
    responses: tuple[str, ...]
    failed: tuple[str | None, ...] = ()
    filtered: str
    status: str
    scores: dict[str, float | None]
    statistics: dict[str, tuple[float, ...]]
    limits: dict[str, Limits] = {}
    pending: tuple[str, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    verdicts: dict[str, tuple[JudgedResponse, ...]] = {}
    judged: dict[str, JudgedScore] = {}
    document: dict[str, Any]

    def view(self) -> SampleView:
        """The part of the sample that breakdowns look at."""
        plain: dict[str, Value] = {}
        if self.status != FAILED and not self.repeats:
            plain = {name: Value(row) for name, row in self.statistics.items() if name not in self.judged}
        return SampleView(
            self.sample_id,
            self.cluster,
            {**self.document, "target": self.target},
            self.filtered,
            self.status,
            {name: plain.get(name) or self._value(name) for name in self.scores},
            tuple(repeat.status for repeat in self.repeats[1:]),
        )

    @property
    def failure(self) -> str | None:
        """Why the (first failed) response is missing; None where all are there."""
        return next((reason for reason in self.failed if reason is not None), None)

    def _value(self, name: str) -> Value:
        if self.status == FAILED:
            value = self.judged[name].value() if name in self.judged else Value()
            low, high = self.limits.get(name, (value.low, value.high))
            open_parts = {key: replace(part, failed=part.statistics is None) for key, part in value.parts.items()}
            return replace(value, low=low, high=high, parts=open_parts, failed=value.statistics is None)
        if name in self.judged:
            return self.judged[name].value()
        if name in self.statistics:
            parts = tuple(repeat.statistics[name] for repeat in self.repeats)
            return Value(statistics=self.statistics[name], repeats=parts)
        return Value()


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write one line per sample, sorted by sample id, with sorted keys: the same samples give the same bytes."""
    lines = [
        canonical_json(sample.model_dump(mode="json"))
        for sample in sorted(samples, key=lambda sample: sample.sample_id)
    ]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def read_samples(path: Path) -> list[Sample]:
    """Samples of a file that :func:`write_samples` wrote.

    Raises:
        DataError: the file cannot be read, or a line is not a sample; names file, line and field.
    """
    samples = []
    try:
        lines = path.read_bytes().split(b"\n")  # splitting text would split at separators within a response, too
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); restore it.") from error
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            samples.append(Sample.model_validate_json(line))
        except ValidationError as error:
            raise DataError(f"{path}, line {number}: {first_problem(error)}; restore it.") from error
    return samples


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Do not look for reference cycles: samples are millions of objects and hold none, and looking takes a quarter of
    the time of scoring them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def duplicate_ids(samples: Iterable[Sample]) -> list[str]:
    """Sample ids that occur more than once, sorted: a sharding that evaluates a document twice shows here."""
    counts = Counter(sample.sample_id for sample in samples)
    return sorted(name for name, count in counts.items() if count > 1)
