"""Medical VQA benchmarks that papers report, as tasks of medtasks; it uses nothing of it but
`medtasks.api`.
"""

from __future__ import annotations

from medtasks.api import Plugin

from medtasks_classics import medxpertqa, mmmu_medical, omnimedvqa, path_vqa, pmc_vqa, slake, vqa_rad
from medtasks_classics.scoring import Exact, Recall

MODULES = (vqa_rad, path_vqa, pmc_vqa, omnimedvqa, medxpertqa, mmmu_medical)

PLUGIN = Plugin(
    benchmarks=(*(module.BENCHMARK for module in MODULES), slake.EN, slake.ZH),
    metrics=(Recall(), Exact()),
)
