"""The package in `guest`, broken in many ways: what `medtasks validate` prints of each is in
`breaks.txt`.

One cause is at most two lines of errors, the first with file, line, what was found and how to fix
it.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import medtasks.templates
import pytest
from catalogs import fresh
from seeded_bench import Defect, read

from medtasks.cli.app import main

GOLDEN = Path(__file__).parent / "breaks.txt"
GUEST = Path(__file__).parent / "guest"
MODULE = "acme_bench"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package as if installed, with a cache of its own; what was imported of it is
    forgotten.
    """
    site = tmp_path / "site"
    shutil.copytree(GUEST, site)
    info = site / "acme_bench-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-bench\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[medtasks.tasks]\nacme = {MODULE}\n")
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MEDTASKS_DATA", "mini")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(site)
    yield site
    for name in [name for name in sys.modules if name.partition(".")[0] == MODULE]:
        del sys.modules[name]


@pytest.mark.parametrize("defect", read(GOLDEN), ids=lambda defect: defect.name)
def test_a_broken_package(
    defect: Defect,
    site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """How scores behave is checked for breaks of scores alone: it takes most of the time."""
    if defect.file:
        defect.plant(site / MODULE)
    quick = [] if "score" in defect.name or not defect.file else ["--quick"]
    monkeypatch.setattr("sys.argv", ["medtasks", "validate", "acme_dots", *quick])
    with fresh(), pytest.raises(SystemExit):
        main()
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    text = (
        re.sub(" {3,}", "  ", output.out)
        .replace(f"{site}/", "")
        .replace(medtasks.templates.__path__[0], "templates")
    )
    defect.check(GOLDEN, text.strip())
    assert str(tmp_path) not in text
    errors = [line for line in text.splitlines() if line.startswith("error  ")]
    assert len(errors) in ((1, 2) if defect.file else (0,))
    for line in errors:
        *_, place, message = re.split(" {2,}", line, maxsplit=4)
        assert re.fullmatch(r"acme_bench/\S+:\d+", place), line
        assert len(message) < 500
