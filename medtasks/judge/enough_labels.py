"""Whether the labels of a sample are enough to correct a judged score."""

from __future__ import annotations

import math

import numpy as np

from medtasks.stats.labelled_answers import LabelledAnswers

LEAST_LABELS = 20
"""The least number of labelled answers behind a corrected score (docs/statistics.md)."""
LEAST_CLUSTERS = 10
"""The least number of clusters with a labelled answer."""


def why_not_corrected(answers: LabelledAnswers, judged: float | None) -> str | None:
    """Why the labels do not correct the ``judged`` score of these answers; None if they do."""
    if judged is None:
        return "it has no judged score"
    has_verdict = ~np.isnan(answers.judged)
    sizes = float(answers.sizes[has_verdict].sum())
    mean = math.fsum(answers.judged[has_verdict]) / sizes if sizes else math.nan
    if not math.isclose(mean, judged, rel_tol=1e-9, abs_tol=1e-9):
        return "it is not the mean of the verdicts on its answers"
    return why_too_few_labels(answers)


def why_too_few_labels(answers: LabelledAnswers) -> str | None:
    """Why so few labels give no corrected score; None if they suffice."""
    if answers.labels < LEAST_LABELS:
        return f"fewer than {LEAST_LABELS} labelled answers"
    if answers.labelled_clusters < LEAST_CLUSTERS:
        return f"labelled answers of fewer than {LEAST_CLUSTERS} clusters"
    for task in np.unique(answers.tasks[~answers.known]):
        if np.count_nonzero(answers.labelled & (answers.tasks == task)) < 2:
            return "one of its tasks has fewer than two labelled answers"
    return None
