"""A multiple-choice sample of MI-CXR and a manifest, as tests of scoring need them."""

from __future__ import annotations

from typing import Any

from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample


def made_sample(task: str, number: int, right: bool, **fields: Any) -> Sample:
    """A sample whose answer is right or wrong; ``fields`` replace or add fields of it."""
    counted = float(right)
    return Sample(
        **{
            "sample_id": f"s{number:03d}",
            "task": task,
            "cluster": f"p{number}",
            "media": (),
            "prompt_hash": "0",
            "prompt": "When?",
            "target": "A",
            "responses": ("A",),
            "filtered": "A" if right else "B",
            "status": "ok",
            "scores": {"accuracy": counted},
            "statistics": {"accuracy": (counted, 1.0)},
            "document": {"target": "A", "qtype": task, "group_type": "TEL"},
            **fields,
        }
    )


def made_manifest(**fields: Any) -> RunManifest:
    """The manifest of a run of nothing; ``fields`` replace fields of it."""
    empty: dict[str, Any] = {
        name: {} for name in ("versions", "model", "settings", "tasks", "groups", "data")
    }
    return RunManifest(
        **{"created": "2026-11-01T00:00:00+00:00", "processes": 1, **empty, **fields}
    )
