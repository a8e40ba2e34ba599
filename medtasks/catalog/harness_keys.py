"""The blocks of a task file whose keys lmms-eval defines: generation, metrics, filters, templates.

docs/yaml-reference.md explains the keys.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from medtasks.catalog.key_types import (
    ABSENT,
    Amount,
    AnyText,
    Count,
    FromZero,
    Function,
    Name,
    NameOrFunction,
    TaskKeys,
    refuse_if,
)


class Generation(TaskKeys, extra="allow"):
    """``generation_kwargs``: the settings that most back-ends support; others give a warning."""

    max_new_tokens: Count = ABSENT
    temperature: Amount = ABSENT
    do_sample: bool = ABSENT
    until: list[AnyText] = ABSENT
    top_p: Annotated[float, Field(gt=0, le=1)] = ABSENT
    top_k: FromZero = ABSENT
    min_p: Amount = ABSENT
    num_beams: Count = ABSENT
    repetition_penalty: Amount = ABSENT
    seed: int = ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> Generation:
        """Refuse a temperature without sampling, and sampling at temperature 0."""
        message = (
            f"temperature is {self.temperature or 0:g}, but it is ignored without `do_sample: true`"
        )
        ignored = bool(self.temperature) and not self.do_sample
        refuse_if(ignored, "temperature", message, "set do_sample: true, or temperature: 0")
        message = "do_sample is true at temperature 0"
        fix = "set a temperature above 0, or do_sample: false"
        refuse_if(self.do_sample and self.temperature == 0, "do_sample", message, fix)
        return self


class MetricEntry(TaskKeys):
    """One entry of ``metric_list``."""

    metric: Name
    aggregation: Function
    higher_is_better: bool


class FilterStep(TaskKeys):
    """One filter; it takes no arguments (option letters come from ``Benchmark.options``)."""

    function: NameOrFunction


class Pipeline(TaskKeys):
    """The one entry of ``filter_list``; results are kept under its name."""

    name: Literal["medtasks"]
    filter: Annotated[tuple[FilterStep, ...], Field(strict=False, min_length=1)]


class Templates(TaskKeys, extra="allow"):
    """``lmms_eval_specific_kwargs``; a benchmark may add keys of its own."""

    template: Name
    stage1_template: Name = ABSENT
    system_template: Name = ABSENT

    @model_validator(mode="after")
    def _without_contradictions(self) -> Templates:
        """Refuse a system prompt for a task with two stages."""
        both = self.stage1_template is not None and self.system_template is not None
        message = "system_template is set, but a task with stage1_template has no system prompt"
        refuse_if(both, "system_template", message, "remove one")
        return self
