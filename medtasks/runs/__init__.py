"""Result directories: complete samples, scores with intervals, and the manifest needed to repeat a run."""

from __future__ import annotations

from medtasks.runs.folder import RunRecord, write_run
from medtasks.runs.samples import Sample
from medtasks.runs.scores import Scores
from medtasks.runs.scoring import score_samples

__all__ = ["RunRecord", "Sample", "Scores", "score_samples", "write_run"]
