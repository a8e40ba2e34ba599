"""The seven dimensions of Med-CMR."""

from __future__ import annotations

import re
from collections.abc import Mapping

DIMENSIONS: Mapping[str, str] = {
    "sod": "Small-object Detection",
    "fdd": "Fine-detail Discrimination",
    "su": "Spatial Understanding",
    "tp": "Temporal Prediction",
    "cr": "Causal Reasoning",
    "ltg": "Long-tail Generalization",
    "msi": "Multi-source Integration",
}
"""Abbreviation and release spelling of Med-CMR's seven dimensions, in the paper's order."""

VISION = ("sod", "fdd", "su")
"""The visual dimensions; the other four are those of reasoning."""

_PAPER_NAMES = {"Subtle Object Detection": "sod", "Fine-grained Detail Discrimination": "fdd"}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]+", "", name.casefold())


_DIMENSION_OF = {
    **{_plain(abbreviation): abbreviation for abbreviation in DIMENSIONS},
    **{_plain(name): abbreviation for abbreviation, name in DIMENSIONS.items()},
    **{_plain(name): abbreviation for name, abbreviation in _PAPER_NAMES.items()},
}


def dimension_of(task: str) -> str | None:
    """The dimension that a Med-CMR ``task`` value names, None where it names none; case and signs do not matter.

    >>> dimension_of("Small Object detection"), dimension_of("LTG"), dimension_of("counting")
    ('sod', 'ltg', None)
    """
    return _DIMENSION_OF.get(_plain(task))
