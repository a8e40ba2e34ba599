"""How the order of models depends on the prompt."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from medtasks.runs.signature import changed_signature

from ..schema.model_findings import OrderChange, PromptOrder
from ..schema.model_rankings import Ranking
from ..schema.score_tables import BoardColumn, BoardTable, Cell
from .cells import FilledCell
from .floors import NO_FLOORS
from .tables import made_table

_PROMPT = re.compile(r"prompt_([0-9]+)")
_NOTE = "With 95 % intervals of the ranks; 1 is the best."

Ranks = Mapping[int, Mapping[str, int]]
"""The ranks of models under each prompt, by its number."""


@dataclass(frozen=True)
class PromptSection:
    """What a benchmark's board shows of the prompts of one task."""

    tables: list[BoardTable] = field(default_factory=list)
    order: PromptOrder | None = None


def prompt_section(
    columns: Sequence[BoardColumn], ranking_of: Callable[[BoardColumn], Ranking | None]
) -> PromptSection:
    """The ranks of models under each prompt of the first task with several, and how they differ.

    Empty unless two models are ranked under all of the prompts.
    """
    whole_tasks = [column for column in columns if column.breakdown is None]
    by_prompt = _columns_by_prompt(whole_tasks)
    rankings: dict[int, Ranking] = {}
    for number, column in by_prompt.items():
        ranking = ranking_of(column)
        if ranking is not None:
            rankings[number] = ranking
    ranks = {number: _ranks_of(ranking) for number, ranking in rankings.items()}
    models = _models_under_all(ranks)
    if len(models) < 2:
        return PromptSection()
    task = next(iter(by_prompt.values())).task
    over_all = next(column for column in whole_tasks if column.task == task)
    table = _rank_table([ranking_of(over_all), *rankings.values()])
    return PromptSection([table], _prompt_order(task, models, ranks))


def _rank_table(rankings: Iterable[Ranking | None]) -> BoardTable:
    """The table with a column of ranks for each ranking that there is."""
    cells: list[FilledCell] = []
    for ranking in rankings:
        if ranking is not None:
            cells += _rank_cells(ranking)
    return made_table("prompt-ranks", "Rank under each prompt", _NOTE, cells)


def _prompt_order(task: str, models: Sequence[str], ranks: Ranks) -> PromptOrder:
    """How far the order of models depends on a task's prompt."""
    tau, lowest_tau = _rank_correlations(models, ranks)
    return PromptOrder(
        task=task,
        prompts=len(ranks),
        pairs=math.comb(len(models), 2),
        changes=tuple(_order_changes(models, ranks)),
        tau=tau,
        lowest_tau=lowest_tau,
    )


def _columns_by_prompt(columns: Sequence[BoardColumn]) -> dict[int, BoardColumn]:
    """The columns of the first task with several prompts, by the prompts' numbers."""
    by_prompt: dict[int, BoardColumn] = {}
    task = None
    for column in columns:
        match = _PROMPT.fullmatch(column.metric)
        if match is None:
            continue
        if task is None:
            task = column.task
        if column.task == task:
            by_prompt[int(match[1])] = column
    return by_prompt


def _ranks_of(ranking: Ranking) -> dict[str, int]:
    """The rank of each ranked model."""
    return {ranked.model: ranked.rank for ranked in ranking.ranked}


def _models_under_all(ranks: Ranks) -> list[str]:
    """The models that are ranked under all prompts, sorted."""
    if not ranks:
        return []
    ranked_under = [set(by_model) for by_model in ranks.values()]
    return sorted(set.intersection(*ranked_under))


def _rank_cells(ranking: Ranking) -> Iterator[FilledCell]:
    """The models' ranks as cells of a column of ranks."""
    column = ranking.column
    update = {
        "key": f"{column.key}.rank",
        "metric": f"{column.metric}.rank",
        "unit": "rank",
        "higher_is_better": False,
        **NO_FLOORS,
    }
    rank_column = column.model_copy(update=update)
    signature = changed_signature(ranking.signature, of="ranks")
    for ranked in ranking.ranked:
        cell = Cell(
            value=ranked.rank,
            low=ranked.best,
            high=ranked.worst,
            items=ranking.items,
            signature=signature,
        )
        yield FilledCell(ranked.model, rank_column, cell, ())


def _order_changes(models: Sequence[str], ranks: Ranks) -> Iterator[OrderChange]:
    """The pairs of models of which each is better under some prompt."""
    for first, second in combinations(models, 2):
        ahead, behind = [], []
        for number, rank in ranks.items():
            if rank[first] < rank[second]:
                ahead.append(number)
            elif rank[first] > rank[second]:
                behind.append(number)
        if ahead and behind:
            yield OrderChange(first=first, second=second, ahead=tuple(ahead), behind=tuple(behind))


def _rank_correlations(models: Sequence[str], ranks: Ranks) -> tuple[float | None, float | None]:
    """The mean and the lowest of Kendall's tau-b over the pairs of prompts.

    A pair is left out if all models are tied under one of its prompts, because tau-b is undefined
    then. Both numbers are None if no pair is left.
    """
    from scipy.stats import kendalltau  # slow to import

    untied = []
    for rank in ranks.values():
        model_ranks = [rank[model] for model in models]
        if len(set(model_ranks)) > 1:
            untied.append(model_ranks)
    correlations = []
    for first, second in combinations(untied, 2):
        correlations.append(float(kendalltau(first, second).statistic))
    if not correlations:
        return None, None
    return sum(correlations) / len(correlations), min(correlations)
