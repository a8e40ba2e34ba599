"""What is asked about the miniature Med-CMR's pictures: 43 multiple-choice and 15 open-ended rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medtasks.benchmarks.med_cmr.mini.pictures import PICTURES
from medtasks.benchmarks.med_cmr.vocabulary import DIMENSIONS

Row = dict[str, Any]
Asked = tuple[str, str, str, str, str, Sequence[str]]
"""Picture, dimension, question type, question, right answer, four wrong ones."""

_SIDES = ("upper left", "upper right", "lower left", "lower right")
_LETTERS = "BDACEADBECDAEBC"
"""Which letter is right, row by row, over and over: every letter as often as any other."""

MCQ: tuple[Asked, ...] = (
    ("mini_cxr_nodule", "sod", "location", "Where is the small round opacity in the picture?", _SIDES[0], (*_SIDES[1:], "centre")),
    ("mini_cxr_nodule", "sod", "counting", "How many nodules are there?", "one", ("none", "two", "three", "four")),
    ("mini_ct_nodule", "sod", "location", "In which part of the lungs does the bright dot lie?", _SIDES[3], (*_SIDES[:3], "centre")),
    ("mini_endo_polyps", "sod", "counting", "How many polyps can be seen?", "two", ("none", "one", "three", "four")),
    ("mini_endo_polyps", "sod", "presence", "Which finding is present?", "small polyps", ("fresh blood", "an instrument", "an ulcer", "a worm")),
    ("mini_us_stone", "sod", "presence", "What lies on the floor of the dark oval?", "a bright curved echo", ("nothing", "a second oval", "a tube", "air bubbles")),
    ("mini_mri_ring", "fdd", "appearance", "What does the ring hold?", "dark filling with a bright dot", ("bright filling alone", "grey tissue", "two dark dots", "nothing at all")),
    ("mini_derm_edge", "fdd", "appearance", "Which edge of the patch has teeth?", "the right one", ("the left one", "the upper one", "all of them", "none of them")),
    ("mini_derm_edge", "fdd", "colour", "Which colour does the area near the lower edge have?", "blue-grey", ("red", "white", "yellow", "green")),
    ("mini_cxr_fluid", "fdd", "appearance", "Which outline does the white area have at its top?", "a level drawn up at both sides", ("a sharp corner", "a row of teeth", "a spiral", "a double line")),
    ("mini_us_stone", "fdd", "appearance", "What runs from the echo to the edge of the fan?", "a black shadow", ("a bright band", "a dotted line", "a vessel", "nothing")),
    ("mini_ct_liver", "su", "relation", "Where does the calcification lie, seen from the cyst?", "below it", ("above it", "left of it", "right of it", "inside it")),
    ("mini_mri_pair", "su", "relation", "On which side of the picture is the bright spot?", "right", ("left", "both", "in the midline", "neither")),
    ("mini_mri_pair", "su", "relation", "How do the two findings lie to each other?", "at the same height", ("one above the other", "one inside the other", "in different slices", "touching")),
    ("mini_fundus_bleed", "su", "relation", "Where does the pale plug lie, seen from the optic disc?", "to its right", ("to its left", "below it", "on it", "at the opposite edge")),
    ("mini_two_ct_mri", "su", "relation", "In which panel, and on which side of the brain, is the bright area?", "right panel, right side", ("left panel, left side", "left panel, right side", "right panel, left side", "both panels, midline")),
    ("mini_strip_cxr", "tp", "trend", "How does the opacity change from day 1 to day 90?", "it shrinks", ("it grows", "it stays", "it moves to the other lung", "it splits (two parts)")),
    ("mini_strip_cxr", "tp", "prediction", "If this goes on, what will a later radiograph show?", "a smaller opacity or none", ("a larger opacity", "fluid on both sides", "a fracture", "a new opacity on the right")),
    ("mini_strip_derm", "tp", "trend", "What changes in the patch over the three days?", "its width", ("its colour", "its place", "its number", "nothing")),
    ("mini_strip_derm", "tp", "prediction", "If this goes on, what will a later view show?", "a wider patch", ("a narrower patch", "two patches", "no patch", "a paler patch")),
    ("mini_cxr_fluid", "cr", "cause", "What pushes the windpipe aside?", "fluid on the right side of the picture", ("a mass in the neck", "a small heart", "air in the left lung", "nothing, it is midline")),
    ("mini_us_stone", "cr", "cause", "Why is there a black band below the echo?", "the stone lets no sound through", ("the probe lost contact", "there is gas in the liver", "the gallbladder leaks", "the band is a vessel")),
    ("mini_fundus_bleed", "cr", "cause", "What explains the red spots along the vessel?", "the plug blocks its outflow", ("the lens is clouded", "the retina is detached", "the picture is overexposed", "a tumour of the nerve")),
    ("mini_strip_cxr", "cr", "cause", "Which course fits the three radiographs best?", "an infection that heals", ("a growing tumour", "a new haemorrhage", "a spreading infection", "a healed fracture")),
    ("mini_ct_liver", "cr", "cause", "Why is the small spot below the cyst so bright?", "it is calcified", ("it is filled with water", "it holds air", "it is fat", "it moves fast")),
    ("mini_mri_ring", "cr", "mechanism", "Which reading fits a ring with a dot inside?", "a cyst with something alive or left in it", ("normal cortex", "a vessel cut along", "motion of the head", "a ventricle")),
    ("mini_derm_edge", "cr", "mechanism", "Which feature speaks for irregular growth?", "the toothed edge on one side", ("the hairs", "the pale skin", "the smooth edge", "the round corner of the picture")),
    ("mini_two_ct_mri", "msi", "comparison", "Which panel shows a lesion?", "the MRI alone", ("the CT alone", "both", "neither", "it cannot be told, the panels show different people")),
    ("mini_two_ct_mri", "msi", "comparison", "What do the two panels exclude together?", "bright blood on CT", ("any lesion", "a lesion on MRI", "a skull", "ventricles")),
    ("mini_two_us_histo", "msi", "comparison", "What do the bright dots and the dense nest suggest together?", "a solid nodule with calcified dots", ("a simple cyst", "normal tissue", "a blood clot", "fat")),
    ("mini_rare_histo", "ltg", "recognition", "What does the large pale cell hold?", "a star with thin rays", ("a ring", "a cross", "two nuclei", "a crescent")),
    ("mini_rare_histo", "ltg", "location", "Where does the large cell lie?", _SIDES[3], (*_SIDES[:3], "centre")),
    ("mini_rare_fundus", "ltg", "recognition", "Which shape lies below the optic disc?", "a white crescent", ("a red spot", "a yellow star", "a black hole", "a grey cross")),
    ("mini_rare_fundus", "ltg", "relation", "Where do the horns of the crescent point?", "to the right", ("to the left", "up", "down", "to each other")),
    ("mini_rare_endo", "ltg", "recognition", "What lies on the lower wall?", "a curled thread", ("a polyp", "a clip", "an ulcer", "a blood clot")),
    ("mini_rare_endo", "ltg", "appearance", "Which end of the thread is thick?", "the left one", ("the right one", "both", "neither", "it has no end")),
    ("mini_rare_cxr", "ltg", "recognition", "What is seen above the heart?", "a bright disc with a double outline", ("a nodule", "fluid", "a fracture", "air below the diaphragm")),
    ("mini_rare_cxr", "ltg", "location", "On which line does the bright object lie?", "the midline", ("the left lung", "the right lung", "the diaphragm", "the shoulder")),
    ("mini_rare_cxr", "ltg", "cause", "What is the object most likely?", "a swallowed flat cell (battery)", ("a calcified node", "a rib", "a clip", "a skin fold")),
    ("mini_rare_mri", "ltg", "recognition", "Which sign does the grey round area show?", "a bright cross", ("a ring", "a star", "a crescent", "a line")),
    ("mini_rare_mri", "ltg", "location", "Where does the sign lie?", "in the midline, below the ventricles", ("in front", "on the left", "on the right", "outside the skull")),
    ("mini_rare_derm", "ltg", "recognition", "What sits at the right end of the trail?", "a small dark triangle", ("a hair", "a blue dot", "a ring", "nothing")),
    ("mini_rare_derm", "ltg", "appearance", "Which course does the trail take?", "wavy, from left to right", ("straight, from top to bottom", "a circle", "a spiral", "a zigzag, “W” shaped")),
)  # fmt: skip

OPEN: tuple[tuple[str, str, str, str, str], ...] = (
    ("mini_cxr_nodule", "sod", "description", "Describe any small finding and where it lies.", "One small round bright nodule in the upper part of the lung on the left side of the picture."),
    ("mini_ct_nodule", "sod", "description", "Describe any small finding and where it lies.", "One bright dot in the lower outer lung on the right side of the picture."),
    ("mini_mri_ring", "fdd", "description", "Describe the lesion in detail.", "A ring with a thin bright rim, dark filling and a small bright dot inside."),
    ("mini_derm_edge", "fdd", "description", "Compare the two sides of the patch.", "The left edge is smooth, the right edge has teeth; a blue-grey area lies near the lower edge."),
    ("mini_ct_liver", "su", "relation", "How do the two liver findings lie to each other?", "The calcification lies straight below the cyst."),
    ("mini_mri_pair", "su", "relation", "Name both findings and their sides.", "A bright spot on the right side of the picture and a dark hole on the left, at the same height."),
    ("mini_strip_cxr", "tp", "prediction", "What do you expect on the next radiograph?", "The opacity keeps shrinking or is gone."),
    ("mini_strip_derm", "tp", "prediction", "What do you expect at the next visit?", "The patch will be wider, with the same colour."),
    ("mini_cxr_fluid", "cr", "cause", "Why is the windpipe where it is?", "Fluid on the right side of the picture pushes it to the other side."),
    ("mini_us_stone", "cr", "cause", "Explain the dark band.", "The stone reflects the sound, so a shadow lies below it."),
    ("mini_rare_endo", "ltg", "recognition", "What is seen, and what is it called most likely?", "A pale curled thread, thick at one end: a whipworm."),
    ("mini_rare_cxr", "ltg", "recognition", "What is the object, and why does it matter?", "A disc with a double outline, as a swallowed button battery has; it must come out."),
    ("mini_rare_derm", "ltg", "recognition", "Describe the trail and what ends it.", "A pale wavy trail that ends in a small dark triangle: a mite's burrow."),
    ("mini_two_ct_mri", "msi", "comparison", "What do both panels say together?", "The MRI shows a bright lesion that the CT does not show, and there is no bright blood."),
    ("mini_two_us_histo", "msi", "comparison", "What do both panels say together?", "A dark mass with bright dots is a dense nest with calcified dots in the tissue section."),
)  # fmt: skip


def med_cmr_rows() -> tuple[list[Row], list[Row]]:
    """Multiple-choice rows and open-ended rows, with the oddities that a release may hold."""
    mcq = [_mcq(number, asked) for number, asked in enumerate(MCQ)]
    rows = [_row(number, *asked) for number, asked in enumerate(OPEN)]
    mcq[3]["task"] = "Small object detection"
    mcq[4].update({letter: f"{letter}) {mcq[4][letter]}" for letter in "ABCDE"})
    mcq[9]["A"] = f"A. {mcq[9]['A']}"
    mcq[14]["index"] = mcq[13]["index"]
    mcq[20]["index"] = "cr-20"
    mcq[25]["subtype"] = None
    rows[7]["subtype"] = None
    return mcq, rows


def _mcq(number: int, asked: Asked) -> Row:
    picture, dimension, kind, question, right, wrong = asked
    letter = _LETTERS[number % len(_LETTERS)]
    rest = iter(wrong)
    options = {option: right if option == letter else next(rest) for option in "ABCDE"}
    return {**_row(number, picture, dimension, kind, question, letter), **options}


def _row(number: int, name: str, dimension: str, kind: str, question: str, answer: str) -> Row:
    picture = PICTURES[name]
    return {
        "index": number,
        "question": question,
        "image_path": f"dataset/imgs/{name}.png",
        "answer": answer,
        "visual_description": picture.description,
        "task": DIMENSIONS[dimension],
        "subtype": f"{kind} of a drawn target",
        "question type": kind,
        "modality": picture.modality,
        "organ system": picture.organ_system,
    }
