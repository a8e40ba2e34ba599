"""The comparison of two runs: its lines, and the table that is printed of them, with notes on how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtasks.core.tables import TextTable, grouped_notes, p_text, signed_interval
from medtasks.core.text import counted

from ..board.board import Pair, Unit

COLUMNS = ("task", "metric", "A", "B", "A - B", "95 % interval", "p", "p (Holm)", "items", "comparable", "clusters",
           "unpaired", "detectable")  # fmt: skip
_DIGITS = {"fraction": 3, "points": 1, "seconds": 2, "score": 3}


@dataclass(frozen=True)
class Line:
    """One metric of one task or group.

    ``first`` and ``second`` are the scores over the items with a value in both runs, None without any; ``pair`` has
    their difference, first - second. ``unpaired`` counts items with a value in only one run. ``detectable`` is the
    minimum detectable difference (80 % power at level 0.05), in the metric's unit. ``unlike`` says why the two scores
    are not comparable, ``reason`` why there is no difference or no test.
    """

    task: str
    metric: str
    unit: Unit
    unpaired: int
    unlike: tuple[str, ...]
    first: float | None = None
    second: float | None = None
    pair: Pair | None = None
    detectable: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Comparison:
    """Two runs, named by their models' slugs; p-values are corrected over all lines that have one."""

    first: str
    second: str
    lines: tuple[Line, ...]

    @property
    def table(self) -> TextTable:
        """The lines as ``medtasks compare`` prints them; A is the first run."""
        return TextTable(COLUMNS, [_row(line) for line in self.lines], notes=_notes(self.lines))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def signed_number(value: float | None, unit: str, sign: str = "") -> str:
    """The value with its unit's digits, and a plus sign if ``sign`` is ``+``; empty for None."""
    return "" if value is None else f"{value:{sign}.{_DIGITS[unit]}f}"


def _row(line: Line) -> tuple[str, ...]:
    pair, comparable = line.pair, "no" if line.unlike else "yes"
    if pair is None:
        return (line.task, line.metric, *[""] * 6, "0", comparable, "0", f"{line.unpaired:,}", "")
    return (
        line.task,
        line.metric,
        signed_number(line.first, line.unit),
        signed_number(line.second, line.unit),
        signed_number(pair.difference, line.unit, "+"),
        signed_interval((pair.low, pair.high), _DIGITS[line.unit]),
        p_text(pair.p_value),
        p_text(pair.p_holm),
        f"{pair.items:,}",
        comparable,
        f"{pair.clusters:,}",
        f"{line.unpaired:,}",
        signed_number(line.detectable, line.unit),
    )


def _notes(lines: Sequence[Line]) -> list[str]:
    tests = sum(line.pair is not None and line.pair.p_value is not None for line in lines)
    several = [f"  p (Holm) is corrected over the {counted(tests, 'test')} of this table."] if tests > 1 else []
    texts: dict[str, list[tuple[str, str]]] = {"no difference": [], "no interval": [], "warning": [], "unlike": []}
    for line in lines:
        place, pair = f"{line.task} {line.metric}", line.pair
        if line.reason is not None:
            kind = "no difference" if pair is None or pair.p_value is None else "no interval"
            texts[kind].append((f"{kind}: {line.reason}", place))
        if pair is not None and pair.warning is not None:
            texts["warning"].append((f"warning: {pair.warning}", place))
        texts["unlike"] += [(f"not comparable: {reason}", place) for reason in line.unlike]
    return [
        "  Scores are over the items with a value in both runs; intervals and p are from the cluster sign-flip test.",
        *several,
        "  detectable: the minimum detectable difference (80 % power); smaller ones are likely to be missed.",
        *(note for kind in texts.values() for note in grouped_notes(kind)),
    ]
