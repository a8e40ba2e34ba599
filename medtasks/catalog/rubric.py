"""Rubrics: on which scales a judge decides, what it sees, and how its scores are summed.

A rubric is a YAML file (aspects, scales with anchors, weights, aggregation) and a Jinja template
for the prompt (:mod:`medtasks.catalog.judge_prompt`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from medtasks.catalog.prompts import template_hash
from medtasks.core.files import short_hash
from medtasks.core.schema import Frozen

# raised when prompts or verdicts change for a reason outside the YAML and the template
FORMAT = 1
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,4})(?:\.0{1,4})?\s*")

# keys of a verdict and of its totals, not allowed as names of aspects
RESERVED = frozenset({"partial", "reason", "score", "strict", "total"})
# available to every template besides the sample's fields
PROVIDED = frozenset({"aspects", "form", "response"})


class Aspect(BaseModel, frozen=True, extra="forbid"):
    """One scale of whole numbers; ``anchors`` explains each score, ``guidance`` what is judged."""

    name: Annotated[str, Field(min_length=1)]
    minimum: int = 0
    maximum: int = 1
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    guidance: str = ""
    anchors: dict[int, str] = {}

    def __hash__(self) -> int:
        # without the anchors: a dict has no hash
        return hash((self.name, self.minimum, self.maximum, self.guidance))

    @model_validator(mode="after")
    def _whole_scale(self) -> Aspect:
        """Refuse a scale out of range, and anchors for only some of its scores."""
        if not 0 <= self.minimum < self.maximum <= 100:
            raise ValueError(
                f"the scale {self.minimum} to {self.maximum} must be increasing and within 0 to 100"
            )
        if self.anchors and sorted(self.anchors) != list(self.scale):
            expected = f"one for each of {[*self.scale]}"
            raise ValueError(f"anchors are given for {sorted(self.anchors)}, expected {expected}")
        return self

    @property
    def scale(self) -> range:
        return range(self.minimum, self.maximum + 1)

    @property
    def binary(self) -> bool:
        return (self.minimum, self.maximum) == (0, 1)

    def score_of(self, value: Any) -> int | None:
        """The score that a number or a text such as ``1.0`` states; None if it is off the scale."""
        if isinstance(value, str):
            number = _NUMBER.fullmatch(value)
            if number is None:
                return None
            value = int(number[1])
        if not isinstance(value, int | float):
            return None
        if isinstance(value, bool) and not self.binary:
            return None
        return int(value) if value in self.scale else None  # 2.0 is in a range of whole numbers


class CapStep(Frozen):
    """A capping score of ``at_most`` this limits the capped aspect's score to ``limit``."""

    at_most: int
    limit: int


class Cap(Frozen):
    """The score of ``by`` limits that of ``aspect``; the first step that applies decides."""

    aspect: str
    by: str
    steps: Annotated[tuple[CapStep, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _rising(self) -> Cap:
        """Refuse steps that are out of order, so that the first one that applies decides."""
        bounds = [step.at_most for step in self.steps]
        if bounds != sorted(set(bounds)):
            raise ValueError(f"the steps' `at_most` are {bounds}, expected increasing numbers")
        limits = [step.limit for step in self.steps]
        if limits != sorted(limits):
            raise ValueError(f"the steps' `limit` are {limits}, expected non-decreasing numbers")
        return self


class Rubric(Frozen):
    """The questions to a judge, and how its scores are counted.

    Attributes:
        sees: the only fields of a sample, besides the response, that may be in the prompt.
        media: whether vision judges are shown the images.
        aspects: the fixed aspects; or
        aspects_from: a field of the sample with a list of names of 0/1 aspects.
        texts_from: a field with the record's own text per aspect, as a mapping or its JSON, in
            place of our anchors.
        metrics: metric name to the value it averages: an aspect or ``total``; for a ``per_aspect``
            rubric ``strict``, ``partial``, ``aspects``, which weights every aspect of every sample
            equally, or ``occurrences``, which counts an aspect as often as the sample's list names
            it.
        benchmarks: those whose tasks may be judged with this rubric although they do not name it.
        tasks: single tasks for which the same holds.
    """

    name: str
    version: int
    title: str
    template: str
    sees: tuple[str, ...]
    media: bool = False
    aspects: tuple[Aspect, ...] = ()
    aspects_from: str | None = None
    texts_from: str | None = None
    reasons: bool
    aggregation: Literal["weighted_total", "mean_of_maximum", "per_aspect"]
    cap: Cap | None = None
    benchmarks: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    metrics: Annotated[dict[str, str], Field(min_length=1)]

    @property
    def best(self) -> float:
        """The best value of every metric: 100 for a weighted total, else 1."""
        return 100.0 if self.aggregation == "weighted_total" else 1.0

    @model_validator(mode="after")
    def _consistent(self) -> Rubric:
        """Refuse fields that contradict each other."""
        names = [aspect.name for aspect in self.aspects]
        self._check_aspects(names)
        self._check_metrics(names)
        if self.cap and not {self.cap.aspect, self.cap.by} <= set(names):
            raise ValueError(
                f"`cap` names {self.cap.aspect!r} and {self.cap.by!r}, expected two of {names}"
            )
        unseen = {self.aspects_from, self.texts_from} - {None, *self.sees}
        if unseen or PROVIDED & set(self.sees):
            raise ValueError(
                f"`sees` lacks {sorted(map(str, unseen))} or names one of {sorted(PROVIDED)}"
            )
        return self

    def _check_metrics(self, aspects: Sequence[str]) -> None:
        """Refuse metrics of values that the rubric's aggregation does not have."""
        values = {"total", *aspects}
        if self.aggregation == "per_aspect":
            values = {"aspects", "occurrences", "strict", "partial"}
        unknown_values = sorted(set(self.metrics.values()) - values)
        if unknown_values:
            raise ValueError(f"`metrics` use {unknown_values}, expected some of {sorted(values)}")

    def _check_aspects(self, names: Sequence[str]) -> None:
        """Refuse aspects without a source, with equal or reserved names, or all without weight."""
        if bool(names) == bool(self.aspects_from):
            raise ValueError("a rubric has either `aspects` or `aspects_from`")
        if len(set(names)) < len(names) or RESERVED & set(names):
            raise ValueError(
                f"aspects {names} must differ from each other and from {sorted(RESERVED)}"
            )
        if names and not any(aspect.weight for aspect in self.aspects):
            raise ValueError("no aspect has a weight above 0")


def rubric_hash(rubric: Rubric, template: str | None = None) -> str:
    """First 16 hex digits of the SHA-256 over everything that determines prompts, verdicts and
    totals.

    Covers the content of the YAML, except names of metrics, benchmarks and tasks, and the template
    with all it includes: ``template`` is the hash of that, by default of the template installed
    here.
    """
    content = rubric.model_dump(mode="json", exclude={"metrics", "benchmarks", "tasks"})
    template_content = template_hash(rubric.template) if template is None else template
    return short_hash(
        json.dumps([FORMAT, content, template_content], sort_keys=True, ensure_ascii=False)
    )
