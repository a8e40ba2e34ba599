"""The comparison of two runs, and its table as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtasks.core.text import TextTable, grouped_notes, p_text, signed_interval
from medtasks.judge.corrected_differences import CorrectedPair
from medtasks.metrics.facts import Unit

from ..schema.model_rankings import Pair

COLUMNS = (
    "task",
    "metric",
    "comparable",
    "A",
    "B",
    "A - B",
    "95 % interval",
    "p",
    "p (Holm)",
    "items",
    "clusters",
    "unpaired",
    "detectable",
)
DIGITS = {"fraction": 3, "points": 1, "seconds": 2, "score": 3}
_UNKNOWN_PROMPTS = (
    "Both runs' responses were made elsewhere, "
    "so it is unknown whether both models were given the same prompts."
)
_OVER = (
    "Scores are over the items with a value in both runs; "
    "intervals and p are from the cluster sign-flip test."
)
_DETECTABLE = (
    "detectable: the minimum detectable difference (80 % power); "
    "smaller ones are likely to be missed."
)


@dataclass(frozen=True)
class ComparisonLine:
    """One metric of one task or group in two runs.

    ``first`` and ``second`` are the scores over the items with a value in both runs, None without
    any; ``pair`` has their difference, first - second. ``unpaired`` counts items with a value in
    only one run. ``detectable`` is the minimum detectable difference (80 % power at level 0.05).
    ``unlike`` says why the two scores are not comparable, ``reason`` why there is no test. With
    ``unknown_prompts``, the responses of both runs were made elsewhere, so it is unknown whether
    both models were asked the same.
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
    unknown_prompts: bool = False

    @property
    def comparable(self) -> str:
        """``no``, ``yes``, or ``yes*`` if that depends on prompts that nobody knows."""
        if self.unlike:
            return "no"
        return "yes*" if self.unknown_prompts else "yes"

    @property
    def is_tested(self) -> bool:
        return self.pair is not None and self.pair.p_value is not None


@dataclass(frozen=True)
class Comparison:
    """Two runs, named by their models' slugs.

    p-values are corrected over all lines that have one. ``corrected`` are the differences corrected
    by people, with notes on their labels
    (`medtasks.leaderboard.rank.corrected_comparison.with_corrected`); empty without labels.
    """

    first: str
    second: str
    lines: tuple[ComparisonLine, ...]
    corrected: tuple[CorrectedPair, ...] = ()
    corrected_notes: tuple[str, ...] = ()

    @property
    def table(self) -> TextTable:
        """The lines as ``medtasks compare`` prints them; A is the first run."""
        rows = [_table_row(line) for line in self.lines]
        notes = [f"  {_OVER}"]
        tests = sum(line.is_tested for line in self.lines)
        if tests > 1:
            notes.append(f"  p (Holm) is corrected over the {tests:,} tests of this table.")
        if any(line.unknown_prompts and not line.unlike for line in self.lines):
            notes.append(f"  * {_UNKNOWN_PROMPTS}")
        notes.append(f"  {_DETECTABLE}")
        for kind in _line_notes(self.lines).values():
            notes += grouped_notes(kind)
        return TextTable(COLUMNS, rows, notes=notes)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _table_row(line: ComparisonLine) -> tuple[str, ...]:
    """A line with its numbers as text."""
    pair, unit = line.pair, line.unit
    if pair is None:
        values = ("", "", "", "", "", "")
        items = clusters = "0"
    else:
        values = (
            signed_number(line.first, unit),
            signed_number(line.second, unit),
            signed_number(pair.difference, unit, "+"),
            signed_interval((pair.low, pair.high), DIGITS[unit]),
            p_text(pair.p_value),
            p_text(pair.p_holm),
        )
        items, clusters = f"{pair.items:,}", f"{pair.clusters:,}"
    unpaired, detectable = f"{line.unpaired:,}", signed_number(line.detectable, unit)
    names = (line.task, line.metric, line.comparable)
    return (*names, *values, items, clusters, unpaired, detectable)


def _line_notes(lines: Sequence[ComparisonLine]) -> dict[str, list[tuple[str, str]]]:
    """By kind, the notes on lines, each with its task and metric."""
    notes: dict[str, list[tuple[str, str]]] = {
        "no difference": [],
        "no interval": [],
        "warning": [],
        "unlike": [],
    }
    for line in lines:
        place = f"{line.task} {line.metric}"
        if line.pair is not None and line.pair.warning is not None:
            notes["warning"].append((f"warning: {line.pair.warning}", place))
        if line.reason is not None:
            kind = "no interval" if line.is_tested else "no difference"
            notes[kind].append((f"{kind}: {line.reason}", place))
        for reason in line.unlike:
            notes["unlike"].append((f"not comparable: {reason}", place))
    return notes


def signed_number(value: float | None, unit: str, sign: str = "") -> str:
    """The value with its unit's digits, and a plus sign if ``sign`` is ``+``; empty for None."""
    return "" if value is None else f"{value:{sign}.{DIGITS[unit]}f}"
