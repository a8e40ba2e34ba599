"""The pictures of the miniature data that the package ships are what their tables say."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from training.drawings import BENCHMARKS, kvasir, med_cmr, medstream, mi_cxr


@pytest.mark.parametrize(
    ("name", "drawings", "files"),
    [
        ("kvasir_vqa_x1", kvasir, 24),
        ("med_cmr", med_cmr, 30),
        ("medstreambench", medstream, 43 + 24),  # videos and the single image, pictures of the sequences
        ("mi_cxr", mi_cxr, 165),
    ],
)
def test_the_shipped_pictures_are_what_is_drawn(name: str, drawings: ModuleType, files: int, tmp_path: Path) -> None:
    drawings.draw_all(tmp_path)
    shipped, drawn = BENCHMARKS / name / "mini", [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {path.relative_to(tmp_path) for path in drawn}
    assert len(names) == files
    assert names == {path.relative_to(shipped) for path in shipped.rglob("*") if "json" not in path.suffix} - {
        path.relative_to(shipped) for path in shipped.rglob("*") if path.is_dir()
    }
    for path in names:
        if path.suffix in (".png", ".jpg"):  # encoders differ; clips show their own times (`test_mini_medstream`)
            one, other = (np.asarray(Image.open(root / path), dtype=int) for root in (tmp_path, shipped))
            assert np.abs(one - other).mean() < 1
    assert sum((shipped / path).stat().st_size for path in names) < 4 * 2**20
