"""Draw all pictures of the miniature data into the benchmarks' directories."""

from __future__ import annotations

from . import BENCHMARKS, kvasir, med_cmr, medstream, mi_cxr

for name, draw in (
    ("kvasir_vqa_x1", kvasir.draw_all),
    ("med_cmr", med_cmr.draw_all),
    ("medstreambench", medstream.draw_all),
    ("mi_cxr", mi_cxr.draw_all),
):
    draw(BENCHMARKS / name / "mini")
