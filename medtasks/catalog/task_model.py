"""The schema of task and group files, used by runs and by ``medtasks validate``.

Keys are those of lmms-eval's task and group configuration, and our ``metadata``;
docs/yaml-reference.md explains them.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from medtasks.core.schema import expects, shown


class FunctionName(str):
    """The dotted name after ``!function``."""

    __slots__ = ()


_ABSENT: Any = None
"""Default of an optional key; an explicit null is refused."""


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    names = [getattr(value, "metric", None) or getattr(value, "name", value) for value in values]
    for number, name in enumerate(names):
        if name in names[:number]:
            context = {"name": shown(name), "at": number}
            raise PydanticCustomError("MT114", "{name} is duplicated, expected once", context)
    return values


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, FunctionName)


def _is_name(value: Any) -> bool:
    return _is_text(value) and bool(value.strip())


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _answers(value: Any) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not _are_names(texts):
        words = 'an answer in quotes such as "yes", or a list of them'
        raise PydanticCustomError("expected", "{words}", {"words": words})
    return tuple(texts)


Name = Annotated[str, expects("a non-empty string", _is_name)]
Answers = Annotated[tuple[str, ...], PlainValidator(_answers)]
NameOrNames = Annotated[
    Any, expects("a string or a list of strings", lambda one: _is_name(one) or _are_names(one))
]
Names = Annotated[tuple[Name, ...], Field(strict=False), AfterValidator(_distinct)]
AnyText = Annotated[str, expects("a string", _is_text)]
Function = Annotated[
    FunctionName,
    expects("`!function` with a dotted name", lambda one: isinstance(one, FunctionName)),
]
NameOrFunction = Annotated[
    str, expects("a string or `!function`", lambda one: isinstance(one, str) and one.strip())
]
Tags = Annotated[
    Any, expects("none, a string or a list", lambda one: _is_name(one) or isinstance(one, list))
]
Count = Annotated[int, Field(ge=1)]
FromZero = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _refuse(wrong: object, at: str, message: str, fix: str) -> None:
    """If ``wrong``, refuse a model whose settings contradict each other; ``at`` is the key to
    name.
    """
    if wrong:
        raise PydanticCustomError("MT113", "{words}", {"words": f"{message}; {fix}", "at": at})


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


ORDER_METRICS = ("circular_accuracy", "rotation_consistency", "letter_preference")
"""Scores that every task with ``metadata.options`` has (`medtasks.metrics.variants`)."""

PROMPT_METRICS = ("worst_prompt", "best_prompt", "prompt_spread", "prompt_agreement")
"""Scores that every task with ``metadata.prompts`` has (`medtasks.metrics.variants`)."""

MOST_PROMPTS = 10
VARIANTS = "medtasks.benchmarks.variants"
"""The module whose attribute ``TASK`` is the rows of a task that asks each question several
times.
"""


def prompt_metric(number: int) -> str:
    """The score under one prompt, numbered from 1."""
    return f"prompt_{number}"


def prompt_metrics(prompts: int) -> tuple[str, ...]:
    """All scores of a task with so many prompts, in display order; none without prompts."""
    each = map(prompt_metric, range(1, prompts + 1))
    return (*PROMPT_METRICS, *each) if prompts else ()


class OptionOrder(_Keys):
    """``metadata.options``: every question is asked with its options in several orders, which are
    circular shifts.
    """

    order: Literal["circular"]
    rotations: Annotated[
        Any,
        expects(
            "`all`, or a whole number of at least 2",
            lambda one: one == "all" or (type(one) is int and one > 1),
        ),
    ] = "all"
    seed: int = 0


class Confidence(_Keys):
    """``metadata.confidence``: whether the answers' confidences fit how often ``correct`` says they
    are right.

    ``of`` is the probability of the option letter, the mean of those of the response's tokens, or
    what it says.
    """

    of: Literal["option", "answer", "stated"]
    correct: Name = "accuracy"


HALF_GAP = "half-smallest-gap"
"""The default tolerance that follows from a stream's rounds."""


class Timing(_Keys):
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


class ErrorKind(_Keys):
    """One entry of ``metadata.errors``: a rate of errors among the questions in which they could
    occur.
    """

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
        for key in ("gold", "answer"):
            wrong = bool(getattr(self, key)) == bool(getattr(self, f"{key}_other_than"))
            message = f"error {self.name} has both or neither of {key} and {key}_other_than"
            _refuse(wrong, key, message, "write one of them")
        message = (
            f"error {self.name} has harms and higher_is_better, but a correct answer harms nobody"
        )
        _refuse(self.harms and self.higher_is_better, "harms", message, "remove one")
        return self


class Metadata(_Keys):
    """The ``metadata`` block."""

    version: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    benchmark: Name
    title: Name
    breakdowns: Names = ()
    pooled: Names = ()
    learned: Names = ()
    rubrics: Names = ()
    compare_with: Name = _ABSENT
    options: OptionOrder = _ABSENT
    prompts: Annotated[Names, Field(min_length=2, max_length=MOST_PROMPTS)] = ()
    confidence: Confidence = _ABSENT
    timing: Timing = _ABSENT
    errors: Annotated[tuple[ErrorKind, ...], Field(strict=False), AfterValidator(_distinct)] = ()

    @property
    def varied(self) -> Literal["options", "prompts"] | None:
        """The key that asks each question several times, if one is set."""
        return "options" if self.options is not None else "prompts" if self.prompts else None


class Generation(_Keys, extra="allow"):
    """``generation_kwargs``: the settings that most back-ends support; others are allowed, with a
    warning.
    """

    max_new_tokens: Count = _ABSENT
    temperature: Amount = _ABSENT
    do_sample: bool = _ABSENT
    until: list[AnyText] = _ABSENT
    top_p: Annotated[float, Field(gt=0, le=1)] = _ABSENT
    top_k: FromZero = _ABSENT
    min_p: Amount = _ABSENT
    num_beams: Count = _ABSENT
    repetition_penalty: Amount = _ABSENT
    seed: int = _ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> Generation:
        message = (
            f"temperature is {self.temperature or 0:g}, but it is ignored without `do_sample: true`"
        )
        ignored = bool(self.temperature) and not self.do_sample
        _refuse(ignored, "temperature", message, "set do_sample: true, or temperature: 0")
        message, fix = (
            "do_sample is true at temperature 0",
            "set a temperature above 0, or do_sample: false",
        )
        _refuse(self.do_sample and self.temperature == 0, "do_sample", message, fix)
        return self


class MetricEntry(_Keys):
    """One entry of ``metric_list``."""

    metric: Name
    aggregation: Function
    higher_is_better: bool


class Step(_Keys):
    """One filter; it takes no arguments (option letters come from ``Benchmark.options``)."""

    function: NameOrFunction


class Pipeline(_Keys):
    """The one entry of ``filter_list``; results are kept under its name."""

    name: Literal["medtasks"]
    filter: Annotated[tuple[Step, ...], Field(strict=False, min_length=1)]


class Templates(_Keys, extra="allow"):
    """``lmms_eval_specific_kwargs``; a benchmark may add keys of its own."""

    template: Name
    stage1_template: Name = _ABSENT
    system_template: Name = _ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> Templates:
        both = self.stage1_template is not None and self.system_template is not None
        message = "system_template is set, but a task with stage1_template has no system prompt"
        _refuse(both, "system_template", message, "remove one")
        return self


class TaskFile(_Keys):
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
        tuple[MetricEntry, ...], Field(strict=False, min_length=1), AfterValidator(_distinct)
    ]
    filter_list: Annotated[tuple[Pipeline, ...], Field(strict=False, min_length=1, max_length=1)]
    lmms_eval_specific_kwargs: Templates
    metadata: Metadata
    repeats: Count = 1
    cluster_key: Name = _ABSENT
    score_key: Name = _ABSENT
    reasoning_tags: Tags = _ABSENT
    task_alias: Name = _ABSENT
    tag: NameOrNames = _ABSENT
    dataset_kwargs: dict[str, Any] = _ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> TaskFile:
        metadata, settings, repeated = (
            self.metadata,
            self.lmms_eval_specific_kwargs,
            self.repeats > 1,
        )
        message = f"repeats is {self.repeats} without sampling, so every answer would be the same"
        fix = "set do_sample: true and a temperature, or repeats: 1"
        _refuse(repeated and not self.generation_kwargs.do_sample, "repeats", message, fix)
        varied, prompts = metadata.varied, metadata.prompts
        if varied is not None:
            message = f"metadata.{varied} is set, but not the task whose questions are asked"
            _refuse(
                metadata.compare_with is None,
                "metadata",
                message,
                "name it as metadata.compare_with",
            )
            rows = f"{VARIANTS}.{self.task}"
            message = f"process_docs is {self.process_docs}, but metadata.{varied} is set"
            _refuse(
                self.process_docs != rows,
                "process_docs",
                message,
                f"write process_docs: !function {rows}",
            )
            for key, given in (
                ("repeats", repeated),
                ("metadata.rubrics", metadata.rubrics),
                ("metadata.prompts", varied != "prompts" and prompts),
                ("metadata.errors", metadata.errors),
                (
                    "lmms_eval_specific_kwargs.stage1_template",
                    prompts and settings.stage1_template is not None,
                ),
            ):
                message = f"{key} is set, but metadata.{varied} asks each question several times, in one stage, unjudged"
                _refuse(given, key.partition(".")[0], message, f"remove it, or metadata.{varied}")
        if prompts:
            message = f"the template is {settings.template}, but the first of metadata.prompts is {prompts[0]}"
            _refuse(
                settings.template != prompts[0],
                "metadata",
                message,
                "begin metadata.prompts with the template",
            )
        for key, given in (("repeats", repeated), (f"metadata.{varied}", varied is not None)):
            message = (
                f"{key} is set, but confidences are compared for questions that are asked once"
            )
            wrong = metadata.confidence is not None and bool(given)
            _refuse(wrong, key.partition(".")[0], message, "remove it, or metadata.confidence")
        return self


class GroupFile(_Keys):
    """A group."""

    group: Name
    task: Annotated[Names, Field(min_length=1)]
    metadata: Metadata
    group_alias: Name = _ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> GroupFile:
        for key in ("options", "prompts", "confidence", "timing", "errors"):
            message = f"metadata.{key} is set, but a group asks nothing itself"
            _refuse(getattr(self.metadata, key), "metadata", message, "set it in the group's tasks")
        return self
