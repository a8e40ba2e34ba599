"""A miniature MedStreamBench: records in the release's layout, and short clips whose frames show their own time."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from medtasks.benchmarks.medstreambench.mini.footage import FOOTAGE, Footage, draw_moment
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.data.mini.clips import draw_time_code, encode_clip
from medtasks.data.prepared import Prepared

RECORDS = Path(__file__).with_name("records")


def write_medstream_source(folder: Path) -> None:
    """Write ``records/<dataset>.jsonl`` (concatenated objects, as released) and ``media/Stream_Bench/…``."""
    shutil.copytree(RECORDS, folder / "records", copy_function=shutil.copyfile)
    for clip in FOOTAGE.values():
        if clip.on_disk != "missing":
            _write_medium(folder / "media" / clip.media_path, clip)


def _write_medium(path: Path, clip: Footage) -> None:
    if path.suffix in (".mp4", ".mkv", ".avi"):
        path.parent.mkdir(parents=True, exist_ok=True)
        codec = "mpeg4" if path.suffix == ".avi" else None
        encode_clip(path, clip.times, lambda _, time: _frame(clip, time), codec=codec, time_base=clip.time_base)
        if clip.on_disk == "truncated":
            data = path.read_bytes()
            path.write_bytes(data[: len(data) * 3 // 5])
    elif path.suffix:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(_frame(clip, clip.times[0])).save(path)
    else:
        path.mkdir(parents=True, exist_ok=True)
        for number, time in enumerate(clip.times):
            Image.fromarray(_frame(clip, time)).save(path / f"frame_{number:04}.jpg", quality=90)


def _frame(clip: Footage, time: Fraction) -> npt.NDArray[np.uint8]:
    """The moment with its time on it: milliseconds of a video, a thousand times the index of a picture."""
    return draw_time_code(draw_moment(clip, time), int(time * 1000))


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_medstream_source` wrote."""
    return prepare_medstream(str(source / "records"), source / "media", out, mini=True)
