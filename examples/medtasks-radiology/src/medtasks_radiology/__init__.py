"""Clinical metrics of radiology reports: RadEval's, per report, and a rubric that counts errors.

The metrics are added to the tasks in ``MEDTASKS_RADIOLOGY_TASKS``, by default ``mi_cxr_report``.
Any other task names those that it wants as ``metadata.learned`` in its task file.
"""

from __future__ import annotations

from medtasks.api import Plugin

from medtasks_radiology.chexbert import CHEXBERT
from medtasks_radiology.green import Green
from medtasks_radiology.radeval_metric import RadEvalMetric
from medtasks_radiology.radgraph import RADGRAPH
from medtasks_radiology.ratescore import RaTEScore
from medtasks_radiology.temporal import TemporalF1

METRICS: tuple[RadEvalMetric, ...] = (*RADGRAPH, *CHEXBERT, RaTEScore(), TemporalF1(), Green())
PLUGIN = Plugin(metrics=METRICS)
