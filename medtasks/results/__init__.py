"""Result directories: complete samples, scores with intervals, and the manifest needed to repeat a run."""

from __future__ import annotations

from medtasks.results.folder import RunRecord, write_run
from medtasks.results.samples import Sample
from medtasks.results.scores import Scores
from medtasks.results.scoring import score_samples

__all__ = ["RunRecord", "Sample", "Scores", "score_samples", "write_run"]
