"""What the tiny model learns from: drawn pictures, a prompt as the tasks render it, and the right
response.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from PIL.Image import Image


@dataclass(eq=False)
class Drawing:
    """A picture and what can be seen on it; the names begin with the benchmark's.

    The picture is dropped once its patches are known: thousands of pictures take gigabytes.
    """

    picture: Image | None
    facts: Mapping[str, str]


@dataclass(frozen=True)
class Claim:
    """A part of the prompt that claims something ``about`` a finding, and what is ``true``."""

    text: str
    about: str
    true: str
    claimed: str


@dataclass(frozen=True)
class Lesson:
    """``fields`` are what the prompt's ``template`` reads.

    Three hints on the way to the answer: ``known`` is what the pictures up to each one show,
    ``claims`` are in the order of the prompt, and ``asked`` is what to know at the end of the
    prompt.
    """

    template: str
    fields: Mapping[str, Any]
    shown: tuple[Drawing, ...]
    answer: str
    known: tuple[Mapping[str, str], ...] = ()
    claims: tuple[Claim, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)
