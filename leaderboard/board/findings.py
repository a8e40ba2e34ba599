"""What a ranking shows, in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtasks.stats.cautions import few_clusters

from ..schema.board import BoardModel
from ..schema.model_rankings import Ranking
from ..schema.numbers import DIFFERENCES, number
from ..schema.score_tables import BoardColumn, Cell
from .floors import Floor, highest_floor, level_text

MOST_NAMED = 3
"""Models named in a sentence; the others are counted."""


def finding(ranking: Ranking, models: Mapping[str, BoardModel], cells: Mapping[str, Cell]) -> str:
    """What the ranking shows, in a sentence or two.

    ``models`` and the ``cells`` of the ranked score are by slug.
    """
    order = [ranked.model for ranked in ranking.ranked]
    if not order:
        return "No model is ranked."
    best = order[0]
    if len(order) == 1:
        return f"{models[best].name} is the only model with a comparable result."
    letters = {ranked.model: {*ranked.letters} for ranked in ranking.ranked}
    equals = [model for model in order if letters[model] & letters[best]]
    behind = [model for model in order if model not in equals]
    parts = []
    if len(equals) > 1:
        parts.append(_equality(equals, models))
    if behind:
        lead = _lead(best, behind[0], ranking, models)
        if len(behind) > 1 and not letters[behind[0]] & letters[behind[1]]:
            lead += f", and {_lead(behind[0], behind[1], ranking, models)}"
        parts.append(lead)
    sentences = [f"{'; '.join(parts)}."]
    if not behind and few_clusters(ranking.clusters) is not None:
        sentences.append(
            f"With only {ranking.clusters} clusters, even large differences may not be significant."
        )
    below_floor = _not_above_floor(ranking, models, cells)
    if below_floor:
        sentences.append(below_floor)
    return " ".join(sentences)


def _equality(equals: Sequence[str], models: Mapping[str, BoardModel]) -> str:
    """Which models do not differ significantly from the best, the first of ``equals``."""
    if len(equals) == 2:
        return f"{_named(equals, models)} do not differ significantly"
    # models that share a letter with the best may still differ from each other
    best = models[equals[0]].name
    return f"{_named(equals[1:], models)} do not differ significantly from {best}"


def _not_above_floor(
    ranking: Ranking, models: Mapping[str, BoardModel], cells: Mapping[str, Cell]
) -> str:
    """Which models' intervals reach the highest floor; empty if none does.

    Baselines are expected to, so they are left out.
    """
    column = ranking.column
    floor = highest_floor(column)
    if floor is None:
        return ""
    reached = []
    for ranked in ranking.ranked:
        if models[ranked.model].type != "baseline" and _reaches(floor, cells[ranked.model], column):
            reached.append(ranked.model)
    if not reached:
        return ""
    verb = "is" if len(reached) == 1 else "are"
    better = "above" if column.higher_is_better else "better than"
    level = level_text(floor, column)
    return f"{_named(reached, models)} {verb} not {better} {floor.phrase} ({level})."


def _reaches(floor: Floor, cell: Cell, column: BoardColumn) -> bool:
    """Whether the worse end of a score's interval is not better than the floor."""
    if column.higher_is_better:
        return cell.low is not None and cell.low <= floor.level
    return cell.high is not None and cell.high >= floor.level


def _lead(first: str, second: str, ranking: Ranking, models: Mapping[str, BoardModel]) -> str:
    """``A leads B by 3.1 points (95 % interval 1.2 to 5.0)``."""
    return f"{models[first].name} leads {models[second].name}{_margin(first, second, ranking)}"


def _margin(first: str, second: str, ranking: Ranking) -> str:
    """How far the first model leads, such as `` by 3.1 points (95 % interval 1.2 to 5.0)``."""
    pair = next(pair for pair in ranking.pairs if {pair.first, pair.second} == {first, second})
    unit = ranking.column.unit
    # the pair's difference is its first model's score minus the other's
    sign = 1 if pair.first == first else -1
    if not ranking.column.higher_is_better:
        sign = -sign
    text = f" by {number(sign * pair.difference, unit)}{DIFFERENCES[unit]}"
    if pair.low is None or pair.high is None:
        return text
    low, high = sorted((sign * pair.low, sign * pair.high))
    return f"{text} (95 % interval {number(low, unit)} to {number(high, unit)})"


def _named(chosen: Sequence[str], models: Mapping[str, BoardModel]) -> str:
    """``A, B and C``; of many models the first ones, and how many there are more."""
    names = [models[model].name for model in chosen]
    if len(names) == 1:
        return names[0]
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more models"
    return f"{', '.join(names[:-1])} and {names[-1]}"
