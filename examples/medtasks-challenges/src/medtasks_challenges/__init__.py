"""Challenge files made of medtasks runs, and the tasks that such files need.

Of medtasks, it imports `medtasks` (results in Python) and `medtasks.api` alone.
"""

from __future__ import annotations

from medtasks.api import Plugin

from medtasks_challenges import medreason, medvqa_gi
from medtasks_challenges.explained import FILTERS
from medtasks_challenges.medreason_metrics import METRICS

PLUGIN = Plugin(
    benchmarks=(medvqa_gi.BENCHMARK, medreason.BENCHMARK), filters=FILTERS, metrics=METRICS
)
