"""What runs used and cost, as tables show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from medtasks.catalog.spec import leaf_tasks
from medtasks.core.schema import Frozen
from medtasks.runs.replies import Usage

from ..schema.board import BoardRun
from ..verify.scored_run import ScoredRun
from .models import find

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(Frozen):
    """The price of a model's answers, in any currency: by million tokens, as for judges (reused
    tokens cost as much as others), or by the hours of the devices that it runs on while requests
    are being answered.
    """

    prompt_price: Amount | None = None
    completion_price: Amount | None = None
    device_hour_price: Amount | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Price:
        by_tokens = (self.prompt_price is not None, self.completion_price is not None)
        if by_tokens not in ((True, True), (False, False)) or any(by_tokens) == (
            self.device_hour_price is not None
        ):
            raise ValueError("expected prompt_price and completion_price, or device_hour_price")
        return self

    def cost(self, usage: Usage) -> float | None:
        """The cost of all answers; None if what the price is for was not counted."""
        if self.device_hour_price is not None:
            if usage.process_seconds is None or not usage.devices:
                return None
            return usage.process_seconds * usage.devices / 3600 * self.device_hour_price
        if usage.prompt_tokens is None or usage.output_tokens is None:
            return None
        prompt, completion = (
            self.prompt_price or 0.0,
            self.completion_price or 0.0,
        )  # both are given
        return (usage.prompt_tokens * prompt + usage.output_tokens * completion) / 1_000_000


Prices = Mapping[str, Price]
"""A file of prices: by slug, name or glob of names, as in a file of models."""


def cost_of(prices: Prices, run: BoardRun, usage: Usage) -> float | None:
    """The cost of answers in a run with this usage; None without a price, or without what it is
    for.
    """
    price = find(prices, run.model, run.model_facts.get("name", run.model))
    return None if price is None else price.cost(usage)


def used_by(run: ScoredRun, prices: Prices, task: str | None = None) -> tuple[Usage, float | None]:
    """What a run used, in all or for a task or group, and what that cost."""
    wanted = None if task is None else leaf_tasks(task)
    usage = run.public.usage.of(
        [one for one in run.public.protocols if wanted is None or one in wanted]
    )
    return usage, cost_of(prices, run.public, usage)


class Measure(NamedTuple):
    """A column of a table of usage; ``value`` takes the usage and the cost of all answers."""

    key: str
    label: str
    unit: str
    value: Callable[[Usage, float | None], float | None]


def _share(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None


def _scaled(number: float | None, factor: float) -> float | None:
    return None if number is None else number * factor


COST = Measure(
    "cost", "Cost", "per 1,000 samples", lambda one, cost: _scaled(one.per_sample(cost), 1000)
)
SECONDS = Measure("seconds", "Time", "s per sample", lambda one, _: one.per_sample(one.seconds))
TOKENS = Measure("tokens", "Tokens", "per sample", lambda one, _: one.per_sample(one.tokens))
MEASURES = (
    Measure("samples", "Samples", "", lambda one, _: one.samples),
    Measure("rate", "Samples", "per s", lambda one, _: one.samples_per_second),
    SECONDS,
    Measure("first", "Time to first answer", "s", lambda one, _: one.time_to_first_answer),
    TOKENS,
    Measure(
        "prompt", "Prompt tokens", "per sample", lambda one, _: one.per_sample(one.prompt_tokens)
    ),
    Measure(
        "vision", "Vision tokens", "per sample", lambda one, _: one.per_sample(one.vision_tokens)
    ),
    Measure(
        "output", "Output tokens", "per sample", lambda one, _: one.per_sample(one.output_tokens)
    ),
    Measure(
        "reused",
        "Prompt tokens reused",
        "%",
        lambda one, _: _share(one.reused_tokens, one.prompt_tokens),
    ),
    Measure("media", "Time on media", "%", lambda one, _: _scaled(one.media_share, 100)),
    Measure(
        "device", "Peak GPU memory", "GiB", lambda one, _: _scaled(one.peak_device_memory, 2**-30)
    ),
    Measure("rss", "Peak RSS", "GiB", lambda one, _: _scaled(one.peak_rss, 2**-30)),
    COST,
)
"""All columns, in the order of tables; those without any value are left out."""


def plotted(rows: Sequence[tuple[Usage, float | None]]) -> Measure | None:
    """The measure to plot scores against: cost, time or tokens, the first of those that most rows
    have, if any.
    """
    counts = {
        one: sum(one.value(usage, cost) is not None for usage, cost in rows)
        for one in (COST, SECONDS, TOKENS)
    }
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else None


def measured(
    rows: Sequence[tuple[Usage, float | None]],
) -> list[tuple[Measure, list[float | None]]]:
    """The columns with a value in some row, and the values of all rows; a row is the usage and its
    cost.
    """
    found = [(one, [one.value(usage, cost) for usage, cost in rows]) for one in MEASURES]
    return [(one, values) for one, values in found if {*values} - {None}]


def amount(value: float | None) -> str:
    """``value`` with three significant digits, or as a whole number from 1,000; empty without
    one.
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
