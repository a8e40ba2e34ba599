"""Figures that papers published, shown beside the scores of runs."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from .board_record import BoardRecord

Trained: TypeAlias = Literal["yes", "no", "unknown"]
NonEmpty = Annotated[str, Field(min_length=1)]


class Published(BoardRecord):
    """A figure in a table of a paper, not re-run.

    ``label`` is its model as printed, ``model`` as the board shows it, and ``row_notes`` are about
    all figures of the model there. ``why`` says why a figure that is not ``rankable`` must not be
    compared with ours. ``value`` is in the unit of the board's column (percentages become
    fractions).
    """

    table: NonEmpty
    source: NonEmpty
    paper: NonEmpty
    label: NonEmpty
    model: NonEmpty
    family: NonEmpty
    size: str | None
    type: str
    trained: Trained
    judge: str | None
    column: NonEmpty
    printed: str | None
    rankable: bool
    why: str = ""
    notes: tuple[NonEmpty, ...] = ()
    row_notes: tuple[NonEmpty, ...] = ()
    value: float | None
