"""Figures of papers, which are shown as references and never ranked.

They are in the CSV file that a benchmark names (`Publication.figures`), each line one printed
figure (:class:`PublishedFigure`). An unreadable figure is empty, and its notes say why. ``notes``
are about the figure, ``row_notes`` about the model's row in the table; several notes are on lines
of their own. A line without a table is about all figures: ``note``, or ``gap`` for figures that the
file lacks, and why.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ValidationError, model_validator

from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import DataError, first_line
from medtasks.core.schema import Frozen, first_problem

from .published_figures import NonEmpty, Published
from .score_tables import BoardColumn

OptionalText = Annotated[str | None, BeforeValidator(lambda text: text or None)]
Notes = Annotated[tuple[NonEmpty, ...], BeforeValidator(lambda text: tuple(text.splitlines()))]
Place = tuple[str, str, "str | None", "str | None"]
"""Task, metric, breakdown, group."""
_HIGHEST = {"fraction": 1, "percent": 100, "points": 100}
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")


class PublishedFigure(Published):
    """One printed figure, and the score of medtasks that is its counterpart.

    ``value`` is computed from ``printed``.
    """

    judge: OptionalText
    size: OptionalText
    type: Literal["closed", "general", "medical"]
    printed: OptionalText
    unit: Literal["fraction", "percent", "points", "score"]
    task: NonEmpty
    metric: NonEmpty
    breakdown: OptionalText
    group: OptionalText
    why: str
    notes: Notes
    row_notes: Notes
    value: float | None = None

    @model_validator(mode="after")
    def _checked_with_value(self) -> PublishedFigure:
        """The figure with its ``value``; a `ValueError` if its fields contradict each other."""
        if (self.breakdown is None) != (self.group is None):
            raise ValueError("has one of `breakdown` and `group`, expected both or neither")
        if self.why and self.rankable:
            raise ValueError(
                "`why` is given, but the figure is rankable; remove it, or write no in `rankable`"
            )
        if self.printed is None:
            if not self.notes:
                raise ValueError("`printed` is empty; say why in `notes`")
            return self
        if not _NUMBER.fullmatch(self.printed):
            raise ValueError(
                f"`printed` is {self.printed!r}, expected a number, or nothing if it is unreadable"
            )
        number = Decimal(self.printed)
        highest = _HIGHEST.get(self.unit)
        if highest is not None and not 0 <= number <= highest:
            raise ValueError(f"`printed` is {self.printed}, expected 0 to {highest} ({self.unit})")
        if self.unit == "percent":
            number /= 100
        return self.model_copy(update={"value": float(number)})


class Reference(Frozen):
    """One benchmark's published figures, notes about all of them, and what is missing and why."""

    notes: tuple[str, ...] = ()
    figures: tuple[PublishedFigure, ...] = ()
    gaps: tuple[str, ...] = ()


def read_reference(path: Path) -> Reference:
    """The published figures in the CSV file ``path``.

    Raises:
        DataError: names file, line and field of what is wrong.
    """
    about: dict[str, list[str]] = {"note": [], "gap": []}
    figures: dict[tuple[str, str, str], PublishedFigure] = {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True, restval="")
            for fields in reader:
                if not fields.get("table") and fields.get("column") in about:
                    parts = filter(None, (fields.get("notes"), fields.get("why")))
                    about[fields["column"]].append(": ".join(parts))
                    continue
                place = f"{path}, line {reader.line_num}"
                figure = _figure(fields, place)
                key = (figure.table, figure.label, figure.column)
                if key in figures:
                    raise DataError(f"{place}: {', '.join(key)} is duplicated; remove it.")
                figures[key] = figure
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(
            f"{path}: not a readable CSV file ({first_line(error)}); fix or restore it."
        ) from error
    return Reference(
        notes=tuple(about["note"]), figures=tuple(figures.values()), gaps=tuple(about["gap"])
    )


def _figure(fields: Mapping[str, str], place: str) -> PublishedFigure:
    """The figure of a line; a `DataError` names ``place`` and field of what is wrong."""
    if "value" in fields:
        raise DataError(
            f"{place}: field `value` is unknown, it is worked out from `printed`; remove it."
        )
    try:
        return PublishedFigure.model_validate(fields)
    except ValidationError as error:
        raise DataError(f"{place}: {first_problem(error, PublishedFigure)}; fix it.") from error


@functools.cache
def load_reference(benchmark: str) -> Reference:
    """The published figures of ``benchmark``, if there are any; errors are those of
    :func:`read_reference`.
    """
    path = get_benchmark(benchmark).publication.figures
    return Reference() if path is None else read_reference(path)


def place_of(column: BoardColumn | PublishedFigure) -> Place:
    """The `Place` of a column or a published figure."""
    return column.task, column.metric, column.breakdown, column.group


def published_figures(reference: Reference, keys: Mapping[Place, str]) -> tuple[Published, ...]:
    """The figures as the board shows them.

    They name the board's column if ``keys`` has one, otherwise the paper's own heading.
    """
    figures = []
    for figure in reference.figures:
        fields = figure.model_dump(include=set(Published.model_fields))
        fields["column"] = keys.get(place_of(figure), figure.column)
        figures.append(Published(**fields))
    return tuple(figures)
