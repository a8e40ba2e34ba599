"""The thirty drawn pictures of the miniature Med-CMR; the rows describe and ask about what they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from medtasks.benchmarks.med_cmr.mini.drawing import Mark, Panel, Picture


def _single(backdrop: str, *marks: Mark) -> Picture:
    return Picture((Panel(backdrop, marks),))


def _strip(backdrop: str, mark: str, x: float, y: float, color: str, sizes: tuple[float, float, float]) -> Picture:
    """Three days of one round finding."""
    days = zip(("day 1", "day 30", "day 90"), sizes, strict=True)
    return Picture(tuple(Panel(backdrop, (Mark(mark, "disc", x, y, size, size, color),), day) for day, size in days))


_FIRST: Mapping[str, Picture] = {
    "mini_cxr_nodule": _single("cxr", Mark("nodule", "disc", 0.27, 0.33, 0.024, 0.024, "#b8b8b8")),
    "mini_ct_nodule": _single("chest ct", Mark("nodule", "disc", 0.79, 0.61, 0.020, 0.020, "#bdbdbd")),
    "mini_endo_polyps": _single(
        "endoscopy",
        Mark("polyp", "disc", 0.70, 0.27, 0.042, 0.038, "#fad1c7"),
        Mark("second polyp", "disc", 0.30, 0.72, 0.035, 0.032, "#fad1c7"),
    ),
    "mini_mri_ring": _single(
        "brain mri",
        Mark("rim", "disc", 0.33, 0.46, 0.082, 0.082, "#fafafa"),
        Mark("filling", "disc", 0.33, 0.46, 0.062, 0.062, "#242424"),
        Mark("dot", "disc", 0.34, 0.47, 0.018, 0.018, "#ebebeb"),
    ),
    "mini_derm_edge": _single(
        "dermoscopy",
        Mark("patch", "jagged right", 0.5, 0.5, 0.30, 0.30, "#663b26"),
        Mark("veil", "disc", 0.47, 0.64, 0.10, 0.07, "#6b7894"),
    ),
    "mini_ct_liver": _single(
        "abdominal ct",
        Mark("cyst", "disc", 0.30, 0.36, 0.065, 0.065, "#383838"),
        Mark("calcification", "disc", 0.30, 0.54, 0.026, 0.026, "#fcfcfc"),
    ),
    "mini_mri_pair": _single(
        "brain mri",
        Mark("bright spot", "disc", 0.68, 0.42, 0.052, 0.052, "#f2f2f2"),
        Mark("dark hole", "disc", 0.32, 0.42, 0.060, 0.050, "#0f0f0f"),
    ),
    "mini_us_stone": _single(
        "ultrasound",
        Mark("gallbladder", "disc", 0.50, 0.46, 0.17, 0.12, "#0d0d0d"),
        Mark("shadow", "shadow", 0.50, 0.72, 0.075, 0.17, "#050505"),
        Mark("stone", "cap", 0.50, 0.545, 0.060, 0.050, "#fcfcfc"),
    ),
    "mini_cxr_fluid": _single(
        "cxr",
        Mark("fluid", "pool", 0.71, 0.50, 0.18, 0.32, "#bdbdbd"),
        Mark("windpipe", "band", 0.43, 0.17, 0.024, 0.11, "#141414"),
    ),
    "mini_fundus_bleed": _single(
        "fundus",
        Mark("bleeding", "spots", 0.62, 0.26, 0.15, 0.13, "#80080a"),
        Mark("plug", "disc", 0.40, 0.35, 0.022, 0.022, "#fcf2cc"),
    ),
    "mini_strip_cxr": _strip("cxr", "opacity", 0.29, 0.45, "#b3b3b3", (0.155, 0.105, 0.06)),
    "mini_strip_derm": _strip("dermoscopy", "patch", 0.5, 0.5, "#5c3624", (0.11, 0.19, 0.30)),
    "mini_two_ct_mri": Picture(
        (
            Panel("brain ct", (), "CT"),
            Panel("brain mri", (Mark("bright area", "disc", 0.68, 0.52, 0.085, 0.110, "#f5f5f5"),), "MRI"),
        )
    ),
    "mini_two_us_histo": Picture(
        (
            Panel(
                "ultrasound",
                (
                    Mark("mass", "disc", 0.50, 0.52, 0.19, 0.17, "#1a1a1a"),
                    Mark("dots", "spots", 0.50, 0.52, 0.09, 0.08, "#f7f7f7"),
                ),
                "Ultrasound",
            ),
            Panel(
                "histology",
                (
                    Mark("nest", "disc", 0.50, 0.50, 0.26, 0.26, "#cc8cbd"),
                    Mark("dark spots", "spots", 0.50, 0.50, 0.21, 0.21, "#421a66"),
                ),
                "Tissue",
            ),
        )
    ),
    "mini_rare_histo": _single(
        "histology",
        Mark("cell", "disc", 0.68, 0.66, 0.18, 0.18, "#f5dbe6"),
        Mark("star", "star", 0.68, 0.66, 0.125, 0.125, "#9e1442"),
    ),
    "mini_rare_fundus": _single("fundus", Mark("crescent", "crescent", 0.34, 0.72, 0.105, 0.125, "#faf5e0")),
    "mini_rare_endo": _single("endoscopy", Mark("worm", "worm", 0.52, 0.76, 0.23, 0.085, "#fcf2d6")),
    "mini_rare_cxr": _single(
        "cxr",
        Mark("disc", "disc", 0.50, 0.30, 0.070, 0.070, "#ffffff"),
        Mark("groove", "disc", 0.50, 0.30, 0.056, 0.056, "#4d4d4d"),
        Mark("inside", "disc", 0.50, 0.30, 0.046, 0.046, "#ffffff"),
    ),
    "mini_rare_mri": _single(
        "brain mri",
        Mark("ground", "disc", 0.50, 0.72, 0.115, 0.105, "#575757"),
        Mark("cross", "cross", 0.50, 0.72, 0.072, 0.066, "#fafafa"),
    ),
    "mini_rare_derm": _single(
        "dermoscopy",
        Mark("trail", "trail", 0.44, 0.50, 0.25, 0.060, "#fcf2e6"),
        Mark("triangle", "triangle", 0.72, 0.475, 0.032, 0.034, "#2e1a14"),
    ),
}
_TWICE = (
    *("cxr_nodule", "endo_polyps", "mri_ring", "derm_edge", "ct_liver", "us_stone", "cxr_fluid", "strip_cxr"),
    *("two_ct_mri", "rare_cxr"),
)


def _lower(picture: Picture) -> Picture:
    """The same finding in somebody else: a little lower."""
    marks = [tuple(replace(mark, y=mark.y + 0.03) for mark in panel.marks) for panel in picture.panels]
    return Picture(tuple(replace(panel, marks=some) for panel, some in zip(picture.panels, marks, strict=True)))


PICTURES = {**_FIRST, **{f"mini_{name}_2": _lower(_FIRST[f"mini_{name}"]) for name in _TWICE}}
"""The pictures by name; a name is the image's file name without its suffix."""
