"""The rank of each model under each prompt, and the pairs of models whose order depends on the prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

from medtasks.runs.signature import format_signature, parse_signature

from ..board.board import BoardColumn, BoardRow, BoardTable, Cell, OrderChange, PromptOrder, Ranking

NAME = "prompt-ranks"
NOTE = "With 95 % intervals of the ranks; 1 is the best."
_PROMPT = re.compile(r"prompt_([0-9]+)")


def prompt_ranks(
    columns: Iterable[BoardColumn], ranking_of: Callable[[BoardColumn], Ranking | None]
) -> tuple[BoardTable, PromptOrder] | None:
    """The ranks under each prompt of the first task with several prompts, and what they say; None without two models.

    Args:
        columns: those of a benchmark's tables.
        ranking_of: the ranking by a column; None if no run is comparable.
    """
    whole = [one for one in columns if one.breakdown is None]
    tasks = [one.task for one in whole if _PROMPT.fullmatch(one.metric)]
    each = {one.key: one for one in whole if one.task == tasks[0] and _PROMPT.fullmatch(one.metric)} if tasks else {}
    mean = next((one for one in whole if tasks and one.task == tasks[0]), None)
    found = {key: ranking for key, one in each.items() if (ranking := ranking_of(one)) is not None}
    ranks = {key: {one.model: one.rank for one in ranking.ranked} for key, ranking in found.items()}
    models = sorted(set.intersection(*(set(one) for one in ranks.values()))) if ranks else []
    if mean is None or len(models) < 2:
        return None
    over_all = ranking_of(mean)
    rankings = {**({} if over_all is None else {mean.key: over_all}), **found}
    rows: dict[str, dict[str, Cell]] = {}
    for key, ranking in rankings.items():
        for model, cell in _cells(ranking).items():
            rows.setdefault(model, {})[f"{key}.rank"] = cell
    table = BoardTable(
        name=NAME,
        title="Rank under each prompt",
        note=NOTE,
        columns=tuple(_rank_column(ranking.column) for ranking in rankings.values()),
        rows=tuple(BoardRow(model=model, cells=cells, runs=()) for model, cells in rows.items()),
    )
    numbers = [int(_PROMPT.fullmatch(each[key].metric)[1]) for key in ranks]  # type: ignore[index]
    return table, _order(tasks[0], models, dict(zip(numbers, ranks.values(), strict=True)))


def _cells(ranking: Ranking) -> dict[str, Cell]:
    signature = format_signature({**parse_signature(ranking.signature), "of": "ranks"})
    return {
        one.model: Cell(value=one.rank, low=one.best, high=one.worst, items=ranking.items, signature=signature)
        for one in ranking.ranked
    }


def _rank_column(column: BoardColumn) -> BoardColumn:
    update = {"key": f"{column.key}.rank", "metric": f"{column.metric}.rank", "unit": "rank", "chance": None}
    return column.model_copy(update={**update, "higher_is_better": False})


def _order(task: str, models: Sequence[str], ranks: Mapping[int, Mapping[str, int]]) -> PromptOrder:
    changes = []
    for first, second in combinations(models, 2):
        ahead = tuple(number for number, one in ranks.items() if one[first] < one[second])
        behind = tuple(number for number, one in ranks.items() if one[first] > one[second])
        if ahead and behind:
            changes.append(OrderChange(first=first, second=second, ahead=ahead, behind=behind))
    taus = [_kendall(models, one, other) for one, other in combinations(ranks.values(), 2)]
    known = [tau for tau in taus if tau is not None]
    return PromptOrder(
        task=task,
        prompts=len(ranks),
        pairs=len(models) * (len(models) - 1) // 2,
        changes=tuple(changes),
        tau=sum(known) / len(known) if known else None,
        lowest_tau=min(known, default=None),
    )


def _kendall(models: Sequence[str], one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    """Kendall's tau-b of two rankings; None if one of them has all models at one rank."""
    from scipy.stats import kendalltau

    ranks = [[side[model] for model in models] for side in (one, other)]
    if any(len(set(side)) == 1 for side in ranks):
        return None
    return float(kendalltau(*ranks).statistic)
