"""The schema of task and group files, used by runs and by ``medtasks validate``.

Keys are those of lmms-eval's task and group configuration, and our ``metadata``;
docs/yaml-reference.md explains them.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from medtasks.catalog.harness_keys import Generation, MetricEntry, Pipeline, Templates
from medtasks.catalog.key_types import (
    ABSENT,
    Answers,
    Count,
    Function,
    Name,
    NameOrFunction,
    NameOrNames,
    Names,
    Tags,
    TaskKeys,
    distinct_names,
    refuse_if,
)
from medtasks.core.schema import expects

ORDER_METRICS = ("circular_accuracy", "rotation_consistency", "letter_preference")
"""Scores that every task with ``metadata.options`` has (`medtasks.metrics.variants`)."""

PROMPT_METRICS = ("worst_prompt", "best_prompt", "prompt_spread", "prompt_agreement")
"""Scores that every task with ``metadata.prompts`` has (`medtasks.metrics.variants`)."""

MOST_PROMPTS = 10
VARIANTS = "medtasks.benchmarks.variants"
"""The module with the rows of each task that asks every question several times, by its name."""


def prompt_metric(number: int) -> str:
    """The score under one prompt, numbered from 1."""
    return f"prompt_{number}"


def prompt_metrics(prompts: int) -> tuple[str, ...]:
    """All scores of a task with this number of prompts, in display order; none without prompts."""
    if not prompts:
        return ()
    single_prompts = [prompt_metric(number) for number in range(1, prompts + 1)]
    return (*PROMPT_METRICS, *single_prompts)


class OptionOrder(TaskKeys):
    """``metadata.options``: every question is asked with circular shifts of its options."""

    order: Literal["circular"]
    rotations: Annotated[
        Any,
        expects(
            "`all`, or a whole number of at least 2",
            lambda value: value == "all" or (type(value) is int and value > 1),
        ),
    ] = "all"
    seed: int = 0


class Confidence(TaskKeys):
    """``metadata.confidence``: how well the answers' confidences are calibrated.

    The confidence ``of`` an answer is the probability of the option letter (``option``), the mean
    probability of the response's tokens (``answer``), or what the response states (``stated``).
    ``correct`` is the metric that says which answers are right.
    """

    of: Literal["option", "answer", "stated"]
    correct: Name = "accuracy"


HALF_GAP = "half-smallest-gap"
"""The default tolerance that follows from a stream's rounds."""


class Timing(TaskKeys):
    """``metadata.timing``: how the time of a stream's first positive response is scored.

    Responsiveness is 1 within the tolerance δ and falls linearly, early and late alike, to 0 at
    ``scale`` times δ or the stream's length beyond it. ``default_tolerance`` is the δ of a record
    without one, in the stream's unit of time.
    """

    law: Literal["tolerance", "stream-length"] = "tolerance"
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    default_tolerance: Annotated[
        Any,
        expects(
            f"`{HALF_GAP}`, or a number of at least 0",
            lambda value: value == HALF_GAP or (type(value) in (int, float) and 0 <= value < inf),
        ),
    ] = HALF_GAP


class ErrorKind(TaskKeys):
    """One entry of ``metadata.errors``: the rate of an error among the questions that allow it."""

    name: Name
    label: Name
    gold: Answers = ()
    gold_other_than: Answers = ()
    answer: Answers = ()
    answer_other_than: Answers = ()
    harms: bool = False
    higher_is_better: bool = False

    @model_validator(mode="after")
    def _without_contradictions(self) -> ErrorKind:
        """Refuse texts that exclude each other, and a harmful outcome that is correct."""
        for key in ("gold", "answer"):
            wrong = bool(getattr(self, key)) == bool(getattr(self, f"{key}_other_than"))
            message = f"error {self.name} has both or neither of {key} and {key}_other_than"
            refuse_if(wrong, key, message, "write one of them")
        message = (
            f"error {self.name} has harms and higher_is_better, but a correct answer harms nobody"
        )
        refuse_if(self.harms and self.higher_is_better, "harms", message, "remove one")
        return self


class Metadata(TaskKeys):
    """The ``metadata`` block."""

    version: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    benchmark: Name
    title: Name
    breakdowns: Names = ()
    pooled: Names = ()
    learned: Names = ()
    rubrics: Names = ()
    compare_with: Name = ABSENT
    options: OptionOrder = ABSENT
    prompts: Annotated[Names, Field(min_length=2, max_length=MOST_PROMPTS)] = ()
    confidence: Confidence = ABSENT
    timing: Timing = ABSENT
    errors: Annotated[
        tuple[ErrorKind, ...], Field(strict=False), AfterValidator(distinct_names)
    ] = ()

    @property
    def varied(self) -> Literal["options", "prompts"] | None:
        """The key that asks each question several times, if one is set."""
        if self.options is not None:
            return "options"
        return "prompts" if self.prompts else None


class TaskFile(TaskKeys):
    """A task."""

    task: Name
    dataset_path: Name
    test_split: Name
    process_docs: Function
    # as strings these would be templates over all fields of a document, hidden ones included
    doc_to_visual: Function
    doc_to_text: Function
    doc_to_messages: Function
    doc_to_target: NameOrFunction
    process_results: Function
    output_type: Literal["generate_until", "generate_until_multi_round", "generate_until_agentic"]
    generation_kwargs: Generation
    metric_list: Annotated[
        tuple[MetricEntry, ...], Field(strict=False, min_length=1), AfterValidator(distinct_names)
    ]
    filter_list: Annotated[tuple[Pipeline, ...], Field(strict=False, min_length=1, max_length=1)]
    lmms_eval_specific_kwargs: Templates
    metadata: Metadata
    repeats: Count = 1
    cluster_key: Name = ABSENT
    score_key: Name = ABSENT
    reasoning_tags: Tags = ABSENT
    task_alias: Name = ABSENT
    tag: NameOrNames = ABSENT
    dataset_kwargs: dict[str, Any] = ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> TaskFile:
        """Refuse keys that contradict each other."""
        is_sampled = self.generation_kwargs.do_sample
        message = f"repeats is {self.repeats} without sampling, so every answer would be the same"
        fix = "set do_sample: true and a temperature, or repeats: 1"
        refuse_if(self.repeats > 1 and not is_sampled, "repeats", message, fix)
        if self.metadata.varied is not None:
            self._check_variants(self.metadata.varied)
        if self.metadata.prompts:
            self._check_first_prompt(self.metadata.prompts[0])
        if self.metadata.confidence is not None:
            self._check_confidence()
        return self

    def _check_first_prompt(self, prompt: str) -> None:
        """Refuse prompts of which the first is not the task's template."""
        template = self.lmms_eval_specific_kwargs.template
        message = f"the template is {template}, but the first of metadata.prompts is {prompt}"
        fix = "begin metadata.prompts with the template"
        refuse_if(template != prompt, "metadata", message, fix)

    def _check_variants(self, varied: str) -> None:
        """Refuse what contradicts asking each question several times."""
        metadata = self.metadata
        message = f"metadata.{varied} is set, but not the task whose questions are asked"
        fix = "name it as metadata.compare_with"
        refuse_if(metadata.compare_with is None, "metadata", message, fix)
        rows = f"{VARIANTS}.{self.task}"
        message = f"process_docs is {self.process_docs}, but metadata.{varied} is set"
        fix = f"write process_docs: !function {rows}"
        refuse_if(self.process_docs != rows, "process_docs", message, fix)
        has_stages = self.lmms_eval_specific_kwargs.stage1_template is not None
        excluded = {
            "repeats": self.repeats > 1,
            "metadata.rubrics": metadata.rubrics,
            "metadata.prompts": varied != "prompts" and metadata.prompts,
            "metadata.errors": metadata.errors,
            "lmms_eval_specific_kwargs.stage1_template": metadata.prompts and has_stages,
        }
        for key, is_set in excluded.items():
            message = (
                f"{key} is set, but metadata.{varied} asks each question several times, in one "
                "stage, unjudged"
            )
            fix = f"remove it, or metadata.{varied}"
            refuse_if(is_set, key.partition(".")[0], message, fix)

    def _check_confidence(self) -> None:
        """Refuse confidences where questions are asked more than once."""
        varied = self.metadata.varied
        excluded = {"repeats": self.repeats > 1, f"metadata.{varied}": varied is not None}
        for key, is_set in excluded.items():
            message = (
                f"{key} is set, but confidences are compared for questions that are asked once"
            )
            fix = "remove it, or metadata.confidence"
            refuse_if(is_set, key.partition(".")[0], message, fix)


class GroupFile(TaskKeys):
    """A group."""

    group: Name
    task: Annotated[Names, Field(min_length=1)]
    metadata: Metadata
    group_alias: Name = ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> GroupFile:
        """Refuse metadata that are about the questions of a task."""
        for key in ("options", "prompts", "confidence", "timing", "errors"):
            message = f"metadata.{key} is set, but a group asks nothing itself"
            refuse_if(
                getattr(self.metadata, key), "metadata", message, "set it in the group's tasks"
            )
        return self
