"""The agreement of a rubric's raters, as the manifest of a run stores it."""

from __future__ import annotations

from medtasks.core.schema import Frozen
from medtasks.stats import agreement as stats
from medtasks.stats.bootstrap import CONFIDENCE

SEED = 0
ALPHA = "Krippendorff's alpha"
"""The beginning of the name of this measure, before the level of the scores."""


class Agreement(stats.Coefficient):
    """Agreement of ``raters`` on one aspect; None pools the aspects of every sample.

    A pair is measured on the units that both rated, all raters on those that all of them rated
    (Krippendorff's alpha: that at least two rated).
    """

    aspect: str | None
    raters: str
    measure: str

    @property
    def is_alpha(self) -> bool:
        """Whether the measure is Krippendorff's alpha of all raters."""
        return self.measure.startswith(ALPHA)


class AgreementReport(Frozen):
    """Agreement per aspect, with percentile intervals.

    If aspects vary by sample, the pooled agreement comes first.
    """

    rubric: str
    raters: tuple[str, ...]
    resamples: int
    confidence: float = CONFIDENCE
    seed: int = SEED
    measures: tuple[Agreement, ...]
