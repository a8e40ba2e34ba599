"""`prepare` names the media that it leaves out, with reason and fix, and pictures that look
wrong.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from data_sources import interrupted_at, kvasir_row, write_kvasir
from encoded_pictures import RAMP, png, ramp, saved
from typer.testing import CliRunner

from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.cli.app import app

GRADIENT = saved((RAMP * 255).astype(np.uint8), "JPEG")


def test_prepare_names_pictures_of_one_value_and_those_it_leaves_out(tmp_path: Path) -> None:
    source = write_kvasir(
        tmp_path / "source", [kvasir_row(img_id=f"img{number}") for number in range(4)]
    )
    for number in range(3):
        (source / "images" / f"img{number}.jpg").write_bytes(GRADIENT)
    (source / "images" / "img1.jpg").write_bytes(png(ramp(4095)))
    options = ["prepare", "kvasir_vqa_x1", "--source", str(source), "--out", str(tmp_path / "out")]
    refused = CliRunner().invoke(app, options)
    assert refused.exit_code != 0
    assert "img1.jpg: its 16-bit values run from 0 to 4,095" in str(refused.exception)
    done = CliRunner().invoke(app, [*options, "--allow-missing-media"])
    assert done.exit_code == 0, done.output
    assert "noted: pictures whose pixels all have one value: 1 (img3.jpg)" in done.output
    assert "and save it with 8 bits per channel. (img1.jpg)" in done.output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["uniform_media"] == ["img3.jpg"]
    assert manifest["excluded_media"]["img1.jpg"].startswith(
        "its 16-bit values run from 0 to 4,095"
    )


def test_prepare_remembers_pictures_of_one_value_after_an_interruption(tmp_path: Path) -> None:
    source = write_kvasir(
        tmp_path / "source", [kvasir_row(img_id=f"img{number}") for number in range(3)]
    )
    with pytest.raises(KeyboardInterrupt):
        prepare_kvasir(str(source), tmp_path / "out", progress=interrupted_at(2), workers=1)
    manifest = prepare_kvasir(str(source), tmp_path / "out").manifest
    assert manifest.uniform_media == ("img0.jpg", "img1.jpg", "img2.jpg")
