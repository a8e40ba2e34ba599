"""The question types of MI-CXR and their families."""

from __future__ import annotations

from collections.abc import Mapping

QTYPES: Mapping[str, str] = {
    "single_emergence": "TEL",
    "single_resolution": "TEL",
    "multiple_emergence_1": "TEL",
    "multiple_emergence_2": "TEL",
    "multiple_resolution_1": "TEL",
    "multiple_resolution_2": "TEL",
    "emergence_to_resolution": "TEL",
    "resolution_to_emergence": "TEL",
    "icr_multi_abn": "ICR",
    "single_entity_interval_summary": "GTS",
    "multi_entity_interval_summary": "GTS",
}
"""Question types and their family; those of the ICR variant start with ``icr_variant``."""
