"""A benchmark's board layout: which scores a leaderboard shows, in which tables and plots."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_stack
from typing import Literal, TypeAlias

from medtasks.core.findings import Place

ALL_GROUPS = "*"
"""As a column's ``group``: one column per group of the breakdown in the results, sorted."""

PublishedPart: TypeAlias = Literal["nothing", "text", "media"]
"""What may be published of a sample: nothing but its id, extracted option and scores; also
question, references and response; or also its images.
"""

NOT_STATED = "The benchmark does not state that its samples may be published."
"""Why a benchmark without a board layout shows no more of its samples."""


_CONSTRUCTION = (__file__, dataclasses.__file__, "<string>")
"""The files of the frames between a part's line and its ``place``; the last one is the ``__init__``
that dataclasses generate.
"""


def _calling_place() -> Place | None:
    """The line of package code that constructs a part; the code of dataclasses is skipped."""
    for frame, line in walk_stack(inspect.currentframe()):
        file = frame.f_code.co_filename
        if file not in _CONSTRUCTION:
            return Place(Path(file), line)
    return None


@dataclass(frozen=True)
class _LayoutPart:
    """A part of a layout; ``place`` is the file and line that made it, for messages."""

    place: Place | None = field(
        default_factory=_calling_place, init=False, repr=False, compare=False
    )


@dataclass(frozen=True)
class Column(_LayoutPart):
    """One score: a metric of a task or group, over all of its items or over one group of a
    breakdown.

    Args:
        task: a task or group.
        label: the heading; with ``group=ALL_GROUPS`` each group's name is used instead.
        breakdown: name of one of the benchmark's breakdowns; None for all items.
        group: a group of it, or `ALL_GROUPS`; None for all items.
        remark: a few words below the heading, and in figures beside it.
    """

    task: str
    metric: str
    label: str
    breakdown: str | None = None
    group: str | None = None
    remark: str = ""


@dataclass(frozen=True)
class LayoutTable(_LayoutPart):
    """A table with models as rows. ``name`` is part of URLs and file names: lower case, digits,
    hyphens.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    note: str = ""


@dataclass(frozen=True)
class Plot(_LayoutPart):
    """A figure over models; all of its numbers are also in a table.

    Args:
        name: part of URLs and file names: lower case, digits, hyphens.
        kind: ``bars`` (columns × models, with intervals; ``chance`` draws the benchmark's chance
            level), ``heatmap`` (columns × models), ``radar`` (columns are the axes), ``paired``
            (each column beside its counterpart in ``against``), ``letters`` (how often each letter
            was chosen and correct in the columns' tasks), ``timeline`` (rounds of streaming items
            of the columns' tasks).
        against: only for ``paired``; as many as ``columns``.
        ranks: a heat map of (rank - 1) / (models - 1), best 0, ties averaged, instead of values.
        note: one sentence below the figure.
    """

    name: str
    title: str
    kind: Literal["bars", "heatmap", "letters", "paired", "radar", "timeline"]
    columns: tuple[Column, ...]
    against: tuple[Column, ...] = ()
    ranks: bool = False
    chance: bool = False
    note: str = ""


@dataclass(frozen=True)
class BoardLayout(_LayoutPart):
    """The board layout of a benchmark.

    Args:
        headline: the scores by which models are ranked and compared; the first one orders the
            board.
        tables: all other scores.
        shows: which part of a sample may be published: ``nothing`` (only ids, extracted options and
            scores), ``text`` (also questions, references and responses) or ``media``.
        why: why no more than ``shows`` may be published, in a sentence.
    """

    benchmark: str
    headline: tuple[Column, ...]
    tables: tuple[LayoutTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    shows: PublishedPart = "nothing"
    why: str = ""
