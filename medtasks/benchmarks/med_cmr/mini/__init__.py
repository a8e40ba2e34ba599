"""A miniature Med-CMR: thirty drawn pictures and their rows, in the layout of the released archive."""

from __future__ import annotations

import shutil
from pathlib import Path

from medtasks.benchmarks.med_cmr.mini.drawing import draw_picture
from medtasks.benchmarks.med_cmr.mini.pictures import PICTURES
from medtasks.benchmarks.med_cmr.prepare import FILES, prepare_med_cmr
from medtasks.data.prepared import Prepared


def write_med_cmr_source(folder: Path) -> None:
    """Write ``dataset/`` with the two row files and ``imgs/``, as the released archive unpacks."""
    pictures = folder / "dataset/imgs"
    pictures.mkdir(parents=True)
    for name in FILES.values():
        shutil.copyfile(Path(__file__).parent / name, folder / name)
    for name, picture in PICTURES.items():
        draw_picture(picture).save(pictures / f"{name}.png")


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_med_cmr_source` wrote."""
    return prepare_med_cmr(str(source), out, mini=True)
