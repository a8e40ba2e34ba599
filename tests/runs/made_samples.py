"""A multiple-choice sample of MI-CXR, as tests of scoring need it."""

from __future__ import annotations

from typing import Any

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
