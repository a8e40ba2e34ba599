"""The rows of Kvasir-VQA-x1's transformed track, under the name that task files use (part of their hash)."""

from __future__ import annotations

from dataclasses import replace

from medtasks.benchmarks.kvasir_vqa_x1 import TRANSFORMED
from medtasks.benchmarks.kvasir_vqa_x1.documents import level_rows, mixed

level1, level2, level3 = (level_rows(TRANSFORMED.name, level) for level in (1, 2, 3))
mixed1, mixed2, mixed3 = (replace(rows, change=mixed) for rows in (level1, level2, level3))
