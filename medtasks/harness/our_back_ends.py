"""Our back-ends, by the names that lmms-eval knows them by, and what each needs."""

from __future__ import annotations

from medtasks.core.extras import require

BACK_ENDS = {
    "medtasks_vlm": "medtasks.adapters.vlm.MedtasksVLM",
    "medtasks_vllm": "medtasks.adapters.vllm.MedtasksVLLM",
    "medtasks_baseline": "medtasks.adapters.baseline.MedtasksBaseline",
    "medtasks_ray": "medtasks.adapters.ray.MedtasksRay",
    "medtasks_replay": "medtasks.adapters.replay.MedtasksReplay",
}

EXTRAS = {
    "medtasks_vlm": "vlm",
    "medtasks_vllm": "vllm",
    "medtasks_baseline": "harness",
    "medtasks_ray": "ray",
    "medtasks_replay": "harness",
}
"""The extra that installs what a back-end of ours needs."""


def require_packages_of(model: object) -> None:
    """Check that the packages of a back-end of ours are installed; others are not checked.

    Raises:
        MissingExtraError: a package is absent, or has another version than the back-end needs.
    """
    if isinstance(model, str) and model in EXTRAS:
        require(EXTRAS[model], model)
