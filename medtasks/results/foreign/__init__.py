"""Predictions made with other tools: reading their files, and matching them with a task's documents."""

from __future__ import annotations

from medtasks.results.foreign.layouts import LAYOUTS, Layout, read_predictions, recognise, task_in_name
from medtasks.results.foreign.matching import Joined, join
from medtasks.results.foreign.prediction import Prediction

__all__ = [
    "LAYOUTS",
    "Joined",
    "Layout",
    "Prediction",
    "join",
    "read_predictions",
    "recognise",
    "task_in_name",
]
