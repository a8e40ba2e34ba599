"""Tables of scores: a row for each model, a column for each score."""

from __future__ import annotations

from pydantic import Field

from medtasks.metrics.facts import Unit

from .board_record import BoardRecord


class Cell(BoardRecord):
    """One score of one model (`medtasks.scoring.scores.MetricScore`).

    ``low`` and ``high`` are its 95 % interval, by ``interval_method``. Scores with equal
    ``signature`` are comparable. ``judge`` names the judges of a judged score.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    interval_method: str | None = Field(default=None, exclude_if=lambda method: method is None)
    items: int
    answered: int | None = None
    judged: int | None = None
    judge: str = ""
    bounds: tuple[float, float] | None = None
    incomplete: bool = False
    reason: str | None = None
    signature: str


class BoardColumn(BoardRecord):
    """A column of a table, or an axis of a plot.

    ``key`` is unique on the board, and safe in URLs and file names. ``chance`` is the score of
    uniform guessing, if defined, ``constant`` that of always giving ``constant_answer``, the most
    frequent correct option, and ``blind`` the best score of a run without media, of the model
    ``blind_model``: floors that a score has to exceed. A ``signed`` score is best at 0, but early
    and late errors cancel in its mean, so models are never ranked by it, regardless of
    ``higher_is_better``. ``remark`` belongs to the label, such as whether an error could harm a
    patient.
    """

    key: str
    task: str
    metric: str
    label: str
    breakdown: str | None = None
    group: str | None = None
    unit: Unit
    higher_is_better: bool
    signed: bool = False
    chance: float | None = None
    constant: float | None = None
    constant_answer: str | None = None
    blind: float | None = None
    blind_model: str | None = None
    remark: str = ""

    @property
    def has_best(self) -> bool:
        """Whether a value can be the best: neither of a signed score nor of a count."""
        return not self.signed and self.unit != "count"


class BoardRow(BoardRecord):
    """A model's scores by column key, without columns it was not run on.

    ``runs`` are keys of `Board.runs`; ``reasons`` say in a sentence each why the row is not
    comparable with the others.
    """

    model: str
    cells: dict[str, Cell]
    runs: tuple[str, ...]
    blind: bool = False
    reasons: tuple[str, ...] = ()


class BoardTable(BoardRecord):
    """Rows that are comparable in every column they share, and in ``apart`` those that are not.

    If the rows are not ``compared``, none of their values is the best.
    """

    name: str
    title: str
    note: str = ""
    columns: tuple[BoardColumn, ...]
    rows: tuple[BoardRow, ...]
    apart: tuple[BoardRow, ...] = ()
    compared: bool = True

    @property
    def every_row(self) -> tuple[BoardRow, ...]:
        return (*self.rows, *self.apart)
