"""The static site: pages, their style sheet and scripts."""

from __future__ import annotations

from .samples import SampleText, samples_of
from .write import write_site

__all__ = ["SampleText", "samples_of", "write_site"]
