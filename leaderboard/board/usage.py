"""What runs used and cost, as tables show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from medtasks.catalog.spec import leaf_tasks
from medtasks.core.schema import Frozen
from medtasks.runs.usage import Usage

from ..schema.board import BoardRun
from ..verify.scored_run import ScoredRun
from .models import find

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(Frozen):
    """The price of a model's answers, in any currency.

    It is by million tokens, as for judges (reused tokens cost as much as others), or by the hours
    of the devices that it runs on while requests are being answered.
    """

    prompt_price: Amount | None = None
    completion_price: Amount | None = None
    device_hour_price: Amount | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Price:
        has_prompt, has_completion = (
            self.prompt_price is not None,
            self.completion_price is not None,
        )
        has_device = self.device_hour_price is not None
        if has_prompt != has_completion or has_prompt == has_device:
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
        # both are given
        prompt_price, completion_price = self.prompt_price or 0.0, self.completion_price or 0.0
        cost = usage.prompt_tokens * prompt_price + usage.output_tokens * completion_price
        return cost / 1_000_000


Prices = Mapping[str, Price]
"""A file of prices: by slug, name or glob of names, as in a file of models."""


def cost_of(prices: Prices, run: BoardRun, usage: Usage) -> float | None:
    """The cost of answers in a run; None without a price, or without what it is for."""
    price = find(prices, run.model, run.model_facts.get("name", run.model))
    return None if price is None else price.cost(usage)


def used_by(run: ScoredRun, prices: Prices, task: str | None = None) -> tuple[Usage, float | None]:
    """What a run used, in all or for a task or group, and what that cost."""
    tasks = list(run.public.protocols)
    if task is not None:
        leaves = leaf_tasks(task)
        tasks = [name for name in tasks if name in leaves]
    usage = run.public.usage.of(tasks)
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
    "cost", "Cost", "per 1,000 samples", lambda usage, cost: _scaled(usage.per_sample(cost), 1000)
)
SECONDS = Measure(
    "seconds", "Time", "s per sample", lambda usage, _: usage.per_sample(usage.seconds)
)
TOKENS = Measure("tokens", "Tokens", "per sample", lambda usage, _: usage.per_sample(usage.tokens))
MEASURES = (
    Measure("samples", "Samples", "", lambda usage, _: usage.samples),
    Measure("rate", "Samples", "per s", lambda usage, _: usage.samples_per_second),
    SECONDS,
    Measure("first", "Time to first answer", "s", lambda usage, _: usage.time_to_first_answer),
    TOKENS,
    Measure(
        "prompt",
        "Prompt tokens",
        "per sample",
        lambda usage, _: usage.per_sample(usage.prompt_tokens),
    ),
    Measure(
        "vision",
        "Vision tokens",
        "per sample",
        lambda usage, _: usage.per_sample(usage.vision_tokens),
    ),
    Measure(
        "output",
        "Output tokens",
        "per sample",
        lambda usage, _: usage.per_sample(usage.output_tokens),
    ),
    Measure(
        "reused",
        "Prompt tokens reused",
        "%",
        lambda usage, _: _share(usage.reused_tokens, usage.prompt_tokens),
    ),
    Measure("media", "Time on media", "%", lambda usage, _: _scaled(usage.media_share, 100)),
    Measure(
        "device",
        "Peak GPU memory",
        "GiB",
        lambda usage, _: _scaled(usage.peak_device_memory, 2**-30),
    ),
    Measure("rss", "Peak RSS", "GiB", lambda usage, _: _scaled(usage.peak_rss, 2**-30)),
    COST,
)
"""All columns, in the order of tables; those without any value are left out."""


def plotted(rows: Sequence[tuple[Usage, float | None]]) -> Measure | None:
    """The measure to plot scores against: of cost, time and tokens, the first that most rows have.

    None if no row has any of them.
    """
    best, most = None, 0
    for measure in (COST, SECONDS, TOKENS):
        count = sum(measure.value(usage, cost) is not None for usage, cost in rows)
        if count > most:
            best, most = measure, count
    return best


def measured(
    rows: Sequence[tuple[Usage, float | None]],
) -> list[tuple[Measure, list[float | None]]]:
    """The columns with a value in some row, and the values of all rows.

    A row is the usage and its cost.
    """
    columns = []
    for measure in MEASURES:
        values = [measure.value(usage, cost) for usage, cost in rows]
        if any(value is not None for value in values):
            columns.append((measure, values))
    return columns


def amount(value: float | None) -> str:
    """``value`` with three significant digits, or whole from 1,000; empty without one.

    >>> amount(0.00123456), amount(12345.6)
    ('0.00123', '12,346')
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
