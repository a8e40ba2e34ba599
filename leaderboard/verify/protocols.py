"""The protocols of the task files that are installed here."""

from __future__ import annotations

import functools

from medtasks.catalog.spec import load_spec
from medtasks.runs.protocol import frame_settings, protocol_hash


@functools.cache
def protocols_today(task: str) -> frozenset[str]:
    """The protocol hashes of a run with the unchanged task file.

    There are two, because the harness turns temperatures into floats.
    """
    spec = load_spec(task)
    as_floats = dict(spec.generation)
    if "temperature" in as_floats:
        as_floats["temperature"] = float(as_floats["temperature"])
    frames = frame_settings(spec)
    if frames:
        frames = {**frames, "cap": None}
    hashes = [
        protocol_hash(spec, settings, frames=frames) for settings in (spec.generation, as_floats)
    ]
    return frozenset(hashes)
