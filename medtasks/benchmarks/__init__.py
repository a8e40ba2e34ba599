"""Benchmarks, one directory each; the modules next to the directories are shared.

A directory is laid out like an external package's module and discovered the same way
(`medtasks.catalog.contents`).
"""

from __future__ import annotations

__all__ = ["DIRECTORIES"]

DIRECTORIES = (
    "kvasir_vqa_x1",
    "mi_cxr",
    "med_cmr",
    "medstreambench",
)  # the shipped benchmarks, in table order
