"""Learned metrics: BERTScore (Zhang et al. 2020) and BLEURT (Sellam et al. 2020), many pairs at
once, on a GPU if there is one, each distinct pair computed once.

The extra ``learned`` installs what they need; importing these modules imports neither torch nor
transformers.
"""

from __future__ import annotations

from medtasks.metrics.learned.bertscore import BertScore
from medtasks.metrics.learned.bleurt import Bleurt
from medtasks.metrics.learned.learned_metric import LearnedMetric

METRICS: tuple[LearnedMetric, ...] = (BertScore(), Bleurt())
"""Our learned metrics, with the models of the scripts behind table 6 of arXiv 2506.09958."""
