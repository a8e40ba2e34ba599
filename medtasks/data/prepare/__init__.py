"""``medtasks prepare``: from release files to prepared data.

The work is done in a hidden sibling folder, which takes the place of the old one when it is complete; the media
index is written as it grows, so an interrupted command goes on where it stopped.
"""

from __future__ import annotations

from medtasks.data.prepare.job import Progress
from medtasks.data.prepare.kvasir import prepare_kvasir
from medtasks.data.prepare.med_cmr import prepare_med_cmr
from medtasks.data.prepare.medstream import prepare_medstream
from medtasks.data.prepare.mi_cxr import prepare_mi_cxr
from medtasks.data.prepare.package import prepare_package
from medtasks.data.prepare.transformed import prepare_transformed

__all__ = [
    "Progress",
    "prepare_kvasir",
    "prepare_med_cmr",
    "prepare_medstream",
    "prepare_mi_cxr",
    "prepare_package",
    "prepare_transformed",
]
