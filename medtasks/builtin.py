"""Our own benchmarks, given as any package gives its own."""

from __future__ import annotations

from medtasks.benchmarks import kvasir_vqa_x1, kvasir_vqa_x1_transformed, med_cmr, medstreambench, mi_cxr
from medtasks.benchmarks.cards import KVASIR_VQA_X1, MED_CMR, MEDSTREAMBENCH, MI_CXR
from medtasks.plugin import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    benchmarks=tuple(
        module.BENCHMARK for module in (kvasir_vqa_x1, kvasir_vqa_x1_transformed, mi_cxr, med_cmr, medstreambench)
    ),
    cards=(KVASIR_VQA_X1, MI_CXR, MED_CMR, MEDSTREAMBENCH),
)
