"""The leaderboard cards of our four benchmarks: the papers' tables and figures, and what the protocol cards add."""

from __future__ import annotations

from medtasks.benchmarks.cards.kvasir_vqa_x1 import KVASIR_VQA_X1
from medtasks.benchmarks.cards.med_cmr import MED_CMR
from medtasks.benchmarks.cards.medstreambench import MEDSTREAMBENCH
from medtasks.benchmarks.cards.mi_cxr import MI_CXR

__all__ = ["KVASIR_VQA_X1", "MEDSTREAMBENCH", "MED_CMR", "MI_CXR"]
