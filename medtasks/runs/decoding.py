"""Generation settings that contradict each other: a temperature without sampling, or sampling
without a temperature.

A task file with such settings is refused (MT113); ``--gen_kwargs`` may still make them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from medtasks.core.text import first_names
from medtasks.runs.manifest import RunManifest

_OUR_BACK_ENDS = "medtasks.adapters."
"""The beginning of ``model_backend`` in a manifest's settings, for back-ends that need no
``do_sample``.
"""


def decoding_warnings(manifest: RunManifest) -> Iterator[str]:
    """A sentence for each contradiction in the generation settings of a run's tasks, with the tasks
    that have it.
    """
    back_end = str(manifest.settings.get("model_backend", ""))
    is_ours = back_end.startswith(_OUR_BACK_ENDS)
    tasks: dict[str, list[str]] = {}
    for name, facts in manifest.tasks.items():
        problem = sampling_problem(facts.generation, temperature_suffices=is_ours)
        if problem:
            tasks.setdefault(problem, []).append(name)
    for problem, names in tasks.items():
        yield f"warning: {problem} ({first_names(names)})"


def sampling_problem(generation: Mapping[str, Any], *, temperature_suffices: bool) -> str:
    """What is wrong with ``temperature`` and ``do_sample``, with the fix; empty if they agree.

    Args:
        generation: a task's generation settings, as the back-end gets them.
        temperature_suffices: whether the back-end samples at a temperature above 0 unless
            ``do_sample`` is false.

    >>> sampling_problem({"temperature": 0.7, "do_sample": True}, temperature_suffices=False)
    ''
    """
    temperature = generation.get("temperature")
    samples = generation.get("do_sample")
    if samples and temperature == 0:
        return (
            "do_sample is true at temperature 0, which does not sample; set a temperature above 0 "
            "in --gen_kwargs"
        )
    is_above_zero = isinstance(temperature, int | float) and temperature > 0
    if samples or not is_above_zero:
        return ""
    if samples is not None:
        return (
            f"temperature {temperature:g} has no effect, because do_sample is false; add "
            "do_sample=true to --gen_kwargs"
        )
    if temperature_suffices:
        return ""
    return (
        f"temperature {temperature:g} may have no effect without sampling; add do_sample=true to "
        "--gen_kwargs"
    )
