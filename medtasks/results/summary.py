"""A run's scores as plain text: what a user sees at the end of a run."""

from __future__ import annotations

from pathlib import Path

from medtasks.results.folder import RunRecord
from medtasks.results.scoring import MetricScore, Scores

__all__ = ["format_score", "summary"]


def format_score(score: MetricScore) -> str:
    """A score with its 95 % interval, in its own unit; a score that is not there says so."""
    if score.value is None:
        return "not computed"
    digits = 1 if score.signature.startswith("chrf") else 3
    text = f"{score.value:.{digits}f}"
    if score.interval is None:
        return text
    low, high = score.interval
    return f"{text} [{low:.{digits}f}, {high:.{digits}f}]"


def summary(run: RunRecord, directory: Path | None) -> str:
    """Scores with intervals per task and group, extraction failures, metrics not computed, and where files are."""
    lines = ["", "medtasks: scores with 95 % cluster-bootstrap intervals"]
    entries = {**run.groups, **run.tasks}
    width = max(len(name) for name in entries)
    for name, scores in entries.items():
        shown = "  ".join(f"{metric} {format_score(score)}" for metric, score in _headline(scores).items())
        lines.append(f"  {name:<{width}}  n={scores.samples:<5} {shown}{_failures(scores)}")
    reasons = {
        f"{metric}: not computed, because {score.reason}"
        for scores in entries.values()
        for metric, score in scores.metrics.items()
        if score.value is None
    }
    lines += [f"  {reason}" for reason in sorted(reasons)]
    mini = sorted(name for name, facts in run.manifest.data.items() if facts.mini)
    if mini:
        lines.append(f"  Miniature data ({', '.join(mini)}): a demonstration, not a benchmark result.")
    if directory is not None:
        lines.append(f"  samples, scores and manifest: {directory}")
    else:
        lines.append("  nothing was saved: give --output_path to keep samples, scores and manifest")
    return "\n".join(lines)


def _headline(scores: Scores) -> dict[str, MetricScore]:
    wanted = ("accuracy", "exact_match", "rougeL", "chrf")
    return {name: scores.metrics[name] for name in wanted if name in scores.metrics}


def _failures(scores: Scores) -> str:
    failures = [f"{status} {count}" for status, count in scores.status.items() if status != "ok"]
    return f"  (no answer extracted: {', '.join(failures)})" if failures else ""
