"""GREEN (Ostmeier et al. 2024): matched findings and clinically significant errors, as a language
model counts them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.api import Checkpoint, Pair, PairStatistics

from medtasks_radiology.radeval_metric import (
    RadEvalMetric,
    printing_to_standard_error,
    radeval_module,
)

BATCH = 8
ERRORS = "Clinically Significant Errors"
MATCHES = "Matched Findings"


@dataclass(frozen=True)
class GreenModel:
    """RadEval's scorer, and its function that writes the prompt about a pair."""

    scorer: Any
    make_prompt: Any


class Green(RadEvalMetric):
    """Mean GREEN score (0..1) over reports: matched findings by matched findings and clinically
    significant errors.

    A pair about which the model does not answer in the expected form has no value; RadEval counts
    it as 0. The model reads the first 300 words of each report.
    """

    variable = "MEDTASKS_RADIOLOGY_GREEN"
    packages = (*RadEvalMetric.packages, "datasets", "pandas", "matplotlib", "sentencepiece")
    choices = {"max_words": "300", "unreadable": "left-out"}
    sees = frozenset({"negation", "laterality", "severity", "change", "omission", "invention"})

    def __init__(self) -> None:
        super().__init__("green", "GREEN", "StanfordAIMI/GREEN-radllama2-7b")

    def load(self, checkpoint: Checkpoint) -> GreenModel:
        """RadEval's scorer on one GPU, or on the CPU."""
        method = multiprocessing.get_start_method(allow_none=True)
        module = radeval_module("metrics.green_score.green")
        multiprocessing.set_start_method(method, force=True)  # importing the module changes it
        with printing_to_standard_error():
            scorer = module.GREEN(str(checkpoint.directory), num_gpus=1)
        return GreenModel(scorer, module.make_prompt)

    def compute(self, loaded: GreenModel, pairs: Sequence[Pair]) -> list[PairStatistics]:
        """The score of each pair; nothing for an answer in another form."""
        import torch

        prompts = [loaded.make_prompt(reference, prediction) for prediction, reference in pairs]
        rows: list[PairStatistics] = []
        for begin in range(0, len(prompts), BATCH):
            batch = {"prompt": prompts[begin : begin + BATCH]}
            with printing_to_standard_error(), torch.inference_mode():
                answers = loaded.scorer.get_response(batch)
            self.model_calls += 1
            rows += [_statistics_of(loaded.scorer, answer) for answer in answers]
        return rows


def _statistics_of(scorer: Any, answer: str) -> PairStatistics:
    """The score that an answer states, and 1; nothing if it lacks the errors or the matches."""
    for category in (ERRORS, MATCHES):
        count, _ = scorer.parse_error_counts(answer, category, for_reward=True)
        if count is None:
            return ()
    return (float(scorer.compute_green(answer)), 1.0)
