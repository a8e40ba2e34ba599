"""Medical VQA benchmarks that papers report, as tasks of medtasks; it uses nothing of it but `medtasks.api`."""

from __future__ import annotations

from medtasks.api import Plugin

from medtasks_classics import vqa_rad
from medtasks_classics.scoring import FILTER, Exact, Recall

PLUGIN = Plugin(benchmarks=(vqa_rad.BENCHMARK,), filters=(FILTER,), metrics=(Recall(), Exact()))
