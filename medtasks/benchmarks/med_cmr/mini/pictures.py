"""The twenty drawn pictures of the miniature Med-CMR, and what each of them shows."""

from __future__ import annotations

from collections.abc import Mapping

from medtasks.benchmarks.med_cmr.mini.modalities import Mark, Panel, Picture

DAYS = ("day 1", "day 30", "day 90")
_OPACITY = (0.155, 0.105, 0.06)
_GROWTH = (0.11, 0.19, 0.30)

_ALL = (
    Picture(
        "mini_cxr_nodule", "X-ray", "Respiratory",
        "Drawn frontal chest radiograph. One small round bright nodule lies in the upper part of the lung on the left "
        "side of the picture. Heart and spine have the usual place; the lung bases are clear.",
        (Panel("cxr", (Mark("nodule", "disc", 0.27, 0.33, 0.024, 0.024, 0.72),)),),
    ),
    Picture(
        "mini_ct_nodule", "CT", "Respiratory",
        "Drawn axial chest CT slice. One bright dot lies in the lower outer part of the lung on the right side of the "
        "picture. The other lung is empty.",
        (Panel("chest ct", (Mark("nodule", "disc", 0.79, 0.61, 0.020, 0.020, 0.74),)),),
    ),
    Picture(
        "mini_endo_polyps", "Endoscopy", "Digestive",
        "Drawn endoscopic view into a tube with ring folds. Two small pale polyps: one at the upper right, one at the "
        "lower left. No instrument, no blood.",
        (
            Panel(
                "endoscopy",
                (
                    Mark("polyp", "disc", 0.70, 0.27, 0.042, 0.038, (0.98, 0.82, 0.78)),
                    Mark("second polyp", "disc", 0.30, 0.72, 0.035, 0.032, (0.98, 0.82, 0.78)),
                ),
            ),
        ),
    ),
    Picture(
        "mini_mri_ring", "MRI", "Nervous",
        "Drawn axial brain MRI slice. On the left side of the picture a ring lesion: thin bright rim, dark filling, "
        "and a small bright dot inside the ring. The midline is not shifted.",
        (
            Panel(
                "brain mri",
                (
                    Mark("filling", "disc", 0.33, 0.46, 0.068, 0.068, 0.14),
                    Mark("rim", "ring", 0.33, 0.46, 0.082, 0.082, 0.98),
                    Mark("dot", "disc", 0.34, 0.47, 0.018, 0.018, 0.92),
                ),
            ),
        ),
    ),
    Picture(
        "mini_derm_edge", "Dermoscopy", "Integumentary",
        "Drawn dermoscopic view of one brown patch. Its left edge is smooth, its right edge has teeth. A blue-grey "
        "area lies inside near the lower edge.",
        (
            Panel(
                "dermoscopy",
                (
                    Mark("patch", "jagged right", 0.5, 0.5, 0.30, 0.30, (0.40, 0.23, 0.15)),
                    Mark("veil", "disc", 0.47, 0.64, 0.10, 0.07, (0.42, 0.47, 0.58), 0.8),
                ),
            ),
        ),
    ),
    Picture(
        "mini_ct_liver", "CT", "Digestive",
        "Drawn axial abdominal CT slice. The liver fills the left side of the picture. It holds a round dark cyst and, "
        "straight below the cyst, a small very bright calcification.",
        (
            Panel(
                "abdominal ct",
                (
                    Mark("cyst", "disc", 0.30, 0.36, 0.065, 0.065, 0.22),
                    Mark("calcification", "disc", 0.30, 0.54, 0.026, 0.026, 0.99),
                ),
            ),
        ),
    ),
    Picture(
        "mini_mri_pair", "MRI", "Nervous",
        "Drawn axial brain MRI slice with two findings at the same height: a bright spot on the right side of the "
        "picture and a dark hole on the left side. The two slits of the ventricles lie between them.",
        (
            Panel(
                "brain mri",
                (
                    Mark("bright spot", "disc", 0.68, 0.42, 0.052, 0.052, 0.95),
                    Mark("dark hole", "disc", 0.32, 0.42, 0.060, 0.050, 0.06),
                ),
            ),
        ),
    ),
    Picture(
        "mini_us_stone", "Ultrasound", "Digestive",
        "Drawn ultrasound fan. A dark oval gallbladder in the middle holds a bright curved echo on its floor; straight "
        "below the echo runs a black shadow to the edge of the fan.",
        (
            Panel(
                "ultrasound",
                (
                    Mark("gallbladder", "disc", 0.50, 0.46, 0.17, 0.12, 0.05),
                    Mark("shadow", "shadow", 0.50, 0.72, 0.075, 0.17, 0.02),
                    Mark("stone", "cap", 0.50, 0.545, 0.060, 0.050, 0.99),
                ),
            ),
        ),
    ),
    Picture(
        "mini_cxr_fluid", "X-ray", "Respiratory",
        "Drawn frontal chest radiograph. The lower half of the lung on the right side of the picture is white with a "
        "level drawn up at both sides, as fluid has. The dark windpipe runs left of the midline, away from the fluid.",
        (
            Panel(
                "cxr",
                (
                    Mark("fluid", "pool", 0.71, 0.50, 0.18, 0.32, 0.74),
                    Mark("windpipe", "band", 0.43, 0.17, 0.024, 0.11, 0.20),
                ),
            ),
        ),
    ),
    Picture(
        "mini_fundus_bleed", "Fundus photography", "Visual",
        "Drawn fundus photograph. A pale plug sits on the upper vessel to the right of the optic disc; a fan of dark "
        "red spots lies along the vessel beyond it. The lower half of the retina is clean.",
        (
            Panel(
                "fundus",
                (
                    Mark("bleeding", "spots", 0.62, 0.26, 0.15, 0.13, (0.50, 0.03, 0.04)),
                    Mark("plug", "disc", 0.40, 0.35, 0.022, 0.022, (0.99, 0.95, 0.80)),
                ),
            ),
        ),
    ),
    Picture(
        "mini_strip_cxr", "X-ray", "Respiratory",
        "Strip of three drawn chest radiographs of one person, day 1, day 30 and day 90. A round white area in the "
        "lung on the left side of the picture is large on day 1, smaller on day 30 and smallest on day 90.",
        tuple(
            Panel("cxr", (Mark("opacity", "disc", 0.29, 0.45, size, size, 0.70),), day)
            for day, size in zip(DAYS, _OPACITY, strict=True)
        ),
    ),
    Picture(
        "mini_strip_derm", "Dermoscopy", "Integumentary",
        "Strip of three drawn dermoscopic views of one brown patch, day 1, day 30 and day 90. The patch keeps its "
        "place and becomes wider each time; its colour does not change.",
        tuple(
            Panel("dermoscopy", (Mark("patch", "disc", 0.5, 0.5, size, size, (0.36, 0.21, 0.14)),), day)
            for day, size in zip(DAYS, _GROWTH, strict=True)
        ),
    ),
    Picture(
        "mini_two_ct_mri", "CT and MRI", "Nervous",
        "Two drawn axial slices of one brain. The CT on the left shows no lesion and no bright blood. The MRI on the "
        "right shows one bright area, on the right side of the brain.",
        (
            Panel("brain ct", (), "CT"),
            Panel("brain mri", (Mark("bright area", "disc", 0.68, 0.52, 0.085, 0.110, 0.96),), "MRI"),
        ),
    ),
    Picture(
        "mini_two_us_histo", "Ultrasound and histopathology", "Endocrine",
        "Two drawn panels of one lump. Ultrasound on the left: a dark mass with tiny bright dots. Tissue section on "
        "the right: a round nest, densely packed with dark spots, in looser tissue.",
        (
            Panel(
                "ultrasound",
                (
                    Mark("mass", "disc", 0.50, 0.52, 0.19, 0.17, 0.10),
                    Mark("dots", "spots", 0.50, 0.52, 0.09, 0.08, 0.97),
                ),
                "Ultrasound",
            ),
            Panel(
                "histology",
                (
                    Mark("nest", "disc", 0.50, 0.50, 0.26, 0.26, (0.80, 0.55, 0.74)),
                    Mark("dark spots", "spots", 0.50, 0.50, 0.21, 0.21, (0.26, 0.10, 0.40)),
                ),
                "Tissue",
            ),
        ),
    ),
    Picture(
        "mini_rare_histo", "Histopathology", "Respiratory",
        "Drawn tissue section with small purple nuclei. At the lower right one large pale cell holds a dark red star "
        "with eight thin rays.",
        (
            Panel(
                "histology",
                (
                    Mark("cell", "disc", 0.68, 0.66, 0.18, 0.18, (0.96, 0.86, 0.90)),
                    Mark("star", "star", 0.68, 0.66, 0.125, 0.125, (0.62, 0.08, 0.26)),
                ),
            ),
        ),
    ),
    Picture(
        "mini_rare_fundus", "Fundus photography", "Visual",
        "Drawn fundus photograph. A white crescent lies below the optic disc, on the left side of the picture; its "
        "horns point right. No bleeding.",
        (Panel("fundus", (Mark("crescent", "crescent", 0.34, 0.72, 0.105, 0.125, (0.98, 0.96, 0.88)),)),),
    ),
    Picture(
        "mini_rare_endo", "Endoscopy", "Digestive",
        "Drawn endoscopic view. One pale curled thread lies on the lower wall, thick at its left end and thin as a "
        "hair at its right end. No polyp, no ulcer.",
        (Panel("endoscopy", (Mark("worm", "worm", 0.52, 0.76, 0.23, 0.085, (0.99, 0.95, 0.84)),)),),
    ),
    Picture(
        "mini_rare_cxr", "X-ray", "Digestive",
        "Drawn frontal chest radiograph. A very bright round object lies in the midline above the heart; a thin darker "
        "groove runs inside its rim, so that it has two outlines. Both lungs are clear.",
        (Panel("cxr", (Mark("disc", "double ring", 0.50, 0.30, 0.070, 0.070, 1.0),)),),
    ),
    Picture(
        "mini_rare_mri", "MRI", "Nervous",
        "Drawn axial MRI slice through the back part of the head. In the midline below the ventricles a grey round "
        "area holds a bright cross of two thin bars.",
        (
            Panel(
                "brain mri",
                (
                    Mark("ground", "disc", 0.50, 0.72, 0.115, 0.105, 0.34),
                    Mark("cross", "cross", 0.50, 0.72, 0.072, 0.066, 0.98),
                ),
            ),
        ),
    ),
    Picture(
        "mini_rare_derm", "Dermoscopy", "Integumentary",
        "Drawn dermoscopic view of pale skin. A pale wavy trail runs from left to right in the middle; at its right "
        "end sits a small dark triangle.",
        (
            Panel(
                "dermoscopy",
                (
                    Mark("trail", "trail", 0.44, 0.50, 0.25, 0.060, (0.99, 0.95, 0.90)),
                    Mark("triangle", "triangle", 0.72, 0.475, 0.032, 0.034, (0.18, 0.10, 0.08)),
                ),
            ),
        ),
    ),
)  # fmt: skip

PICTURES: Mapping[str, Picture] = {picture.name: picture for picture in _ALL}
"""The pictures by name; a name is the image's file name without its ending."""
