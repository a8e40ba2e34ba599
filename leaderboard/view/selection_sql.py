"""The SQL that selects and orders the samples of a list, for DuckDB.

Parameters are lists of Parquet files: ``own`` those of the run, ``every`` those of all runs of the
task, ``other`` those of the run to compare with; and the values of the conditions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from medtasks.metrics.registry import unit_of

from .parquet import quoted

OUTCOMES = {"right": "right", "partly": "partly right", "wrong": "wrong", "none": "no score"}
"""Outcomes of a sample by one metric, as pages name them.

They are: the full score, at least half of it, less, no value.
"""
_FULL_SCORES = {"fraction": 1.0, "points": 100.0}
"""The best value of a metric by its unit; other units have none."""

_SELECT = """
with every as (
  select task, sample_id, {outcome} as outcome
  from read_parquet($every, union_by_name = true)
),
counted as (
  select task, sample_id, count_if(outcome = 'right') as right_runs,
    count_if(outcome != 'none') as scored_runs
  from every group by task, sample_id
),
own as (
  select *, {outcome} as outcome, {score} as score
  from read_parquet($own, filename = true, union_by_name = true)
)
select own.filename, task, sample_id, own.start, own.size, own.outcome, own.score,
  right_runs, scored_runs
from own join counted using (task, sample_id) {other}
where {where} order by {order}, sample_id, task
"""
_JOIN_OTHER = """
join (
  select task, sample_id, choice, {outcome} as outcome
  from read_parquet(list_concat($own, $other), filename = true, union_by_name = true)
  where list_contains($other, filename)
) as other using (task, sample_id)
"""

CONDITIONS: Mapping[str, str] = {
    "status": "own.status = $status",
    "outcome": "own.outcome = $outcome",
    "verdict": "list_contains(own.decided, $verdict)",
    "marked": "list_contains($marked, task || '/' || sample_id)",
    "words": "contains(own.words, $words)",
}
"""Conditions by the name of their parameter."""


class Disagreement(NamedTuple):
    """A way in which the outcomes of all runs of the task differ, and its condition."""

    label: str
    condition: str


DISAGREEMENTS: Mapping[str, Disagreement] = {
    "any": Disagreement("models disagree", "right_runs > 0 and right_runs < scored_runs"),
    "alone-wrong": Disagreement(
        "only this run is wrong",
        "own.outcome in ('wrong', 'partly') and scored_runs > 1 and right_runs = scored_runs - 1",
    ),
    "alone-right": Disagreement(
        "only this run is right",
        "own.outcome = 'right' and scored_runs > 1 and right_runs = 1",
    ),
}
DIFFERS_FROM_OTHER = "(other.outcome != own.outcome or other.choice != own.choice)"
"""The condition that the run ``other`` has another outcome, or another option."""
ORDERS: Mapping[str, str] = {
    "low": "own.score asc nulls last",
    "high": "own.score desc nulls last",
    "split": "least(right_runs, scored_runs - right_runs) desc",
}


def selecting(metric: str, conditions: Collection[str], order: str, *, joins_other: bool) -> str:
    """The statement that selects the samples of a list, in its order.

    Args:
        metric: the metric that decides outcomes; none if it is empty.
        conditions: conditions that all samples meet.
        order: one of `ORDERS`; by default, samples are in the order of their ids.
        joins_other: whether conditions are about the run ``other``.
    """
    outcome = outcome_of(metric)
    return _SELECT.format(
        outcome=outcome,
        score=quoted(f"score_{metric}") if metric else "null::double",
        other=_JOIN_OTHER.format(outcome=outcome) if joins_other else "",
        where=" and ".join(conditions) or "true",
        order=ORDERS.get(order, "sample_id"),
    )


def has_key(breakdown: str, parameter: str) -> str:
    """The condition that a sample has the key ``parameter`` in a breakdown."""
    return f"list_contains(own.{quoted(f'group_{breakdown}')}, ${parameter})"


def outcome_of(metric: str) -> str:
    """The outcome of a sample by ``metric``, as an expression."""
    full = _FULL_SCORES.get(unit_of(metric)) if metric else None
    if full is None:
        return "'none'"
    score = quoted(f"score_{metric}")
    return (
        f"case when {score} is null then 'none' "
        f"when {score} >= {full * (1 - 1e-9)} then 'right' "
        f"when {score} >= {full / 2} then 'partly' "
        "else 'wrong' end"
    )
