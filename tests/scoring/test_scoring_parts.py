"""Parts of judged scores over the repeats of a question."""

from __future__ import annotations

import pytest

from medtasks.catalog.rubric_files import load_rubric
from medtasks.scoring.rubric_scorer import scores_within
from medtasks.scoring.verdict_limits import ADDS_NOTHING, MetricLimits

RUBRIC = load_rubric("kvasir_aspects")
METRIC = next(iter(RUBRIC.metrics))
JUDGED = {METRIC: MetricLimits(((0.0, 1.0), (1.0, 1.0)), {"polyp": ((0.0, 1.0), (1.0, 1.0))})}
NOT_ASKED = {METRIC: ADDS_NOTHING}


@pytest.mark.parametrize("limits", [[JUDGED, NOT_ASKED], [NOT_ASKED, JUDGED]])
def test_a_repeat_about_which_no_judge_is_asked_adds_nothing_to_a_part(
    limits: list[dict[str, MetricLimits]],
) -> None:
    score = scores_within(limits, RUBRIC, "judge")[METRIC]
    assert score.parts == {"polyp": ((0.0, 1.0), (1.0, 1.0))}
    assert score.limits == ((0.0, 1.0), (1.0, 1.0))
