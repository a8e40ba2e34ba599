"""Our back-ends, by the names that lmms-eval and manifests know them by, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass

from medtasks.core.extras import require


@dataclass(frozen=True)
class BackEnd:
    """One of our back-ends.

    Args:
        path: the dotted name of its class.
        extra: the extra that installs what it needs.
        in_replicas: whether ``medtasks_ray`` can run it.
        identifies_model: whether its ``describe()`` identifies the model without a ``checkpoint``,
            so that its arguments are not needed.
    """

    path: str
    extra: str
    in_replicas: bool = False
    identifies_model: bool = False


BACK_ENDS = {
    "medtasks_vlm": BackEnd(
        "medtasks.adapters.vlm.MedtasksVLM", "vlm", in_replicas=True, identifies_model=True
    ),
    "medtasks_vllm": BackEnd("medtasks.adapters.vllm.MedtasksVLLM", "vllm", in_replicas=True),
    "medtasks_baseline": BackEnd(
        "medtasks.adapters.baseline.MedtasksBaseline",
        "harness",
        in_replicas=True,
        identifies_model=True,
    ),
    "medtasks_ray": BackEnd("medtasks.adapters.ray.MedtasksRay", "ray"),
    "medtasks_replay": BackEnd(
        "medtasks.adapters.replay.MedtasksReplay", "harness", identifies_model=True
    ),
}


def require_packages_of(model: object) -> None:
    """Check that the packages of a back-end of ours are installed; others are not checked.

    Raises:
        MissingExtraError: a package is absent, or has another version than the back-end needs.
    """
    if isinstance(model, str) and model in BACK_ENDS:
        require(BACK_ENDS[model].extra, model)
