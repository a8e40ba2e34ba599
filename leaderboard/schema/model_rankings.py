"""The ranking of models by one score, with the comparison of each pair of them."""

from __future__ import annotations

from pydantic import Field

from .board_record import BoardRecord
from .score_tables import BoardColumn


class Ranked(BoardRecord):
    """A model's place in a ranking.

    ``rank`` is 1 for the best value (ties share it), ``best`` to ``worst`` is its 95 % interval;
    models with a letter in common do not differ significantly (5 %, Holm).
    """

    model: str
    rank: int
    best: int | None
    worst: int | None
    letters: tuple[str, ...]


class Pair(BoardRecord):
    """The difference ``first`` - ``second`` on the items that both have.

    Its fields are those of `medtasks.stats.paired.PairedDifference`; ``p_holm`` is the p-value
    after Holm's correction over all pairs of the ranking. ``wins`` and ``losses`` count items that
    only the first, or only the second, has right (for accuracies).
    """

    first: str
    second: str
    items: int
    clusters: int
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_holm: float | None
    wins: int | None = None
    losses: int | None = None
    reason: str | None = None
    warning: str | None = None
    standard_error: float | None = None
    cautions: tuple[str, ...] = Field(default=(), exclude=True)


class Ranking(BoardRecord):
    """The comparison of all comparable models by one headline column, best first.

    ``detectable`` is the minimum detectable difference between two of these models (80 % power at
    level 0.05, median over pairs), in the column's unit. ``warning`` is about too few clusters, and
    about pairs. ``unranked`` gives by comparable model the reason why it has no rank.
    """

    column: BoardColumn
    items: int
    clusters: int
    cluster: str
    signature: str
    ranked: tuple[Ranked, ...]
    pairs: tuple[Pair, ...]
    detectable: float | None
    warning: str | None = None
    unranked: dict[str, str] = Field(default={})
