"""Which edits of a report each metric sees: ``python -m medtasks_radiology.probes``.

A probe is a report and the same report with one edit, such as *left* for *right*. A metric sees the
edit if the edited report scores lower against the original than the original itself does. The table
shows by how much on average, marks the kinds that a metric's publication says it sees, and the
command exits with 1 if a metric that was computed does not see one of these.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import yaml
from medtasks.api import LearnedMetric, MedtasksError, Pair

from medtasks_radiology import METRICS
from medtasks_radiology.radeval_metric import PREFIX

PROBES = Path(__file__).parent / "probes.yaml"
CONTROL = "paraphrase"
"""The kind that should not lower a score."""
TOLERANCE = 1e-6
"""A smaller difference may come from the order of float sums."""


@dataclass(frozen=True)
class Probe:
    """Reports with one kind of edit."""

    kind: str
    reports: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True)
class ProbeResult:
    """What one kind of edit does to a metric.

    Args:
        metric: the metric's name.
        kind: the kind of edit.
        is_claimed: whether the metric's publication says that it sees this kind.
        reports: the number of reports with an edit.
        lowered: how many of them score lower with it.
        drop: the score of all original reports against themselves, minus that of the edited ones;
            None if either is undefined.
        reason: why the metric was not computed; empty if it was.
    """

    metric: str
    kind: str
    is_claimed: bool
    reports: int
    lowered: int = 0
    drop: float | None = None
    reason: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether an edit that the metric should see does not lower its score."""
        return self.is_claimed and not self.reason and not (self.drop or 0.0) > TOLERANCE


def read_probes(path: Path = PROBES) -> list[Probe]:
    """The probes of the package, or of a file in the same form."""
    probes = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        reports = tuple(str(pair["report"]) for pair in entry["pairs"])
        changed = tuple(str(pair["changed"]) for pair in entry["pairs"])
        probes.append(Probe(str(entry["kind"]), reports, changed))
    return probes


def probe_metric(
    metric: LearnedMetric, probes: Sequence[Probe], claims: Iterable[str]
) -> list[ProbeResult]:
    """What each kind of edit does to the metric.

    Args:
        metric: the metric.
        probes: the edited reports by kind.
        claims: the kinds that the metric's publication says it sees.
    """
    claimed = frozenset(claims)
    not_computed = []
    for probe in probes:
        is_claimed = probe.kind in claimed
        not_computed.append(ProbeResult(metric.name, probe.kind, is_claimed, len(probe.reports)))
    try:
        reason = metric.unavailable()
        if not reason:
            return [
                _measured(metric, probe, result)
                for probe, result in zip(probes, not_computed, strict=True)
            ]
    except MedtasksError as error:  # a checkpoint that cannot be loaded
        reason = str(error)
    return [replace(result, reason=reason) for result in not_computed]


def _measured(metric: LearnedMetric, probe: Probe, result: ProbeResult) -> ProbeResult:
    """The result with the drop of the score, and the number of reports that it is lower for."""
    original: list[Pair] = list(zip(probe.reports, probe.reports, strict=True))
    edited: list[Pair] = list(zip(probe.changed, probe.reports, strict=True))
    before, after = metric.table(tuple(original)), metric.table(tuple(edited))
    # a report without any finding has no score of its own, and none is lost
    scores_before = np.nan_to_num(metric.score(before), nan=1.0)
    scores_after = np.nan_to_num(metric.score(after), nan=1.0)
    drop = float(metric.score(before.sum(axis=0)) - metric.score(after.sum(axis=0)))
    lowered = int(np.count_nonzero(scores_before - scores_after > TOLERANCE))
    return replace(result, lowered=lowered, drop=None if np.isnan(drop) else drop)


def as_table(results: Sequence[ProbeResult]) -> str:
    """The results as a Markdown table, one row per metric: the drop, and how many reports of each
    kind score lower. Claimed kinds are bold, and marked if they are not seen.
    """
    kinds = list(dict.fromkeys(result.kind for result in results))
    lines = [f"| metric | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    rows: dict[str, list[ProbeResult]] = {}
    for result in results:
        rows.setdefault(result.metric, []).append(result)
    for name, row in rows.items():
        short = name.removeprefix(f"{PREFIX}_")
        if row[0].reason:
            lines.append(f"| {short} | not computed, because {row[0].reason} |")
        else:
            lines.append(f"| {short} | {' | '.join(map(_cell, row))} |")
    return "\n".join(lines)


def _cell(result: ProbeResult) -> str:
    """The drop and the count of one kind of edit."""
    drop = "undefined" if result.drop is None else f"{result.drop:.2f}"
    text = f"{drop} ({result.lowered}/{result.reports})"
    if result.is_missed:
        return f"**{text} not seen**"
    return f"**{text}**" if result.is_claimed else text


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or JSON; 1 if a computed metric does not see what it should."""
    parser = argparse.ArgumentParser(prog="python -m medtasks_radiology.probes")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--probes", type=Path, default=PROBES, help="a YAML file of your own edits")
    parser.add_argument("--metric", action="append", help="only this metric; can be repeated")
    options = parser.parse_args(arguments)
    chosen = [metric for metric in METRICS if not options.metric or metric.name in options.metric]
    if not chosen:
        names = ", ".join(metric.name for metric in METRICS)
        parser.error(f"no metric is called {', '.join(options.metric)}; choose from {names}")
    probes = read_probes(options.probes)
    results: list[ProbeResult] = []
    for metric in chosen:
        results += probe_metric(metric, probes, metric.sees)
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        print(as_table(results))
    for result in results:
        if result.is_missed:
            print(f"{result.metric} should see {result.kind}, and does not", file=sys.stderr)
    return int(any(result.is_missed for result in results))


if __name__ == "__main__":
    sys.exit(main())
