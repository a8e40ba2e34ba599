"""Our back-ends, by the names that lmms-eval knows them by."""

from __future__ import annotations

BACK_ENDS = {
    "medtasks_vlm": "medtasks.adapters.vlm.MedtasksVLM",
    "medtasks_vllm": "medtasks.adapters.vllm.MedtasksVLLM",
    "medtasks_baseline": "medtasks.adapters.baseline.MedtasksBaseline",
    "medtasks_ray": "medtasks.adapters.ray.MedtasksRay",
    "medtasks_replay": "medtasks.adapters.replay.MedtasksReplay",
}
