"""What a benchmark's board states about its models, computed from the scores of all of them."""

from __future__ import annotations

from .board_record import BoardRecord
from .score_tables import BoardColumn


class TextOnly(BoardRecord):
    """The items on which the blind runs of all ``models`` have the full score.

    They are the ``answered`` ones of so many ``items``; ``expected`` is the share on which
    independent uniform guesses would all be right, if defined.
    """

    task: str
    metric: str
    models: tuple[str, ...]
    items: int
    expected: float | None
    answered: tuple[str, ...]


class OrderChange(BoardRecord):
    """Two models whose order depends on the prompt.

    ``first`` is better under the prompts ``ahead``, numbered from 1, and worse under those
    ``behind``.
    """

    first: str
    second: str
    ahead: tuple[int, ...]
    behind: tuple[int, ...]


class PromptOrder(BoardRecord):
    """How the order of models by one task's score depends on the prompt.

    These are the ``changes`` among all ``pairs`` of models, and Kendall's tau-b between two
    prompts, its mean and lowest value; None if models are tied under all of them.
    """

    task: str
    prompts: int
    pairs: int
    changes: tuple[OrderChange, ...]
    tau: float | None
    lowest_tau: float | None


class SizeCorrelation(BoardRecord):
    """Pearson's r between the logarithm of the number of parameters and a score.

    It is over so many ``models`` whose size is stated: of runs, or of the rows of a ``published``
    table.
    """

    column: BoardColumn
    published: str
    models: int
    r: float


class TypeMeans(BoardRecord):
    """The mean of a score over the models of each type, and the number of models.

    Types are closed, general and medical.
    """

    column: BoardColumn
    means: dict[str, float]
    models: dict[str, int]
