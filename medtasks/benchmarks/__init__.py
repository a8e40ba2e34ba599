"""One directory per benchmark has everything particular to it; the modules beside the directories are shared.

A directory is laid out like another package's module, and found in the same way (`medtasks.packages`).
"""

from __future__ import annotations

__all__ = ["DIRECTORIES"]

DIRECTORIES = ("kvasir_vqa_x1", "mi_cxr", "med_cmr", "medstreambench")
"""The shipped benchmarks, in the order in which tables show them."""
