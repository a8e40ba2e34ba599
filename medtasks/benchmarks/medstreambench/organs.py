"""MedStreamBench's source datasets by organ or procedure group (paper, figure 4).

The paper's text names three of the figure's columns: GI tract and capsule, multi-organ open surgery, and minimally
invasive (MIS) robotic surgery. The assignment of datasets to columns is ours, from what each dataset shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ORGAN_GROUPS: Mapping[str, tuple[str, ...]] = {
    "colon": ("Colonoscopic-addi", "Colonoscopic-web", "CVC-ClinicDB", "LDPolypVideo"),
    "gallbladder": ("cholec80", "CholecT45", "CholecT50", "EndoVis2019", "HeiChole", "M2CAI16-Workflow"),
    "GI tract and capsule": ("hyper-kvasir", "kvasir-capsule"),
    "MIS robotic surgery": ("JIGSAWS", "simsurgskill_2021_dataset"),
    "multi-organ open surgery": ("AVOS", "AlxSuture"),
    "pituitary gland": ("PitVis",),
    "stomach (bypass)": ("BernBypass70", "MultiBypass140"),
    "unspecified surgery": ("Surgical_phase", "private_data"),
    "uterus": ("AutoLapora",),
}
"""Datasets of each group, as the release names its files."""

UNLISTED = "unlisted dataset"
"""The group of a dataset that is not in the table, so that none is left out of the breakdown."""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.casefold()).removesuffix("dataset")


_GROUP_OF = {_plain(dataset): group for group, datasets in ORGAN_GROUPS.items() for dataset in datasets}


def organ_group(dataset: str) -> str:
    """The group of a source dataset; case, dashes and underscores do not matter.

    >>> organ_group("Surgical-phase"), organ_group("cholec80"), organ_group("another")
    ('unspecified surgery', 'gallbladder', 'unlisted dataset')
    """
    return _GROUP_OF.get(_plain(dataset), UNLISTED)
