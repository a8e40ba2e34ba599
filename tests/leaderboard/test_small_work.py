"""What small work costs, in operations: what is unchanged is neither computed nor read again, and
nothing is drawn that nobody asked for. Operations, unlike seconds, are the same on every
machine.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from invented_runs import MODELS, write_run_of
from matplotlib.figure import Figure
from medtasks.leaderboard import publish
from medtasks.leaderboard.figures.plots import figures_of
from medtasks.leaderboard.verify import scored_run
from medtasks.leaderboard.view.library import read_library

from medtasks.runs import samples as sample_lines

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

TASK = "mi_cxr_tel_single"


class Operations:
    """Counts opened files, parsed samples, scored runs and saved figures while it is switched
    on.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = False
        self.counts: Counter[str] = Counter()
        self.opened: Counter[str] = Counter()
        self.written: list[str] = []
        for owner, name, what in (
            (Figure, "savefig", "figures"),
            (scored_run, "scored_record", "runs read"),
            (publish, "build_board", "boards"),
            (sample_lines.Sample, "model_validate_json", "samples"),
        ):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name), what))
        sys.addaudithook(self._audit)

    def _counted(self, function: Any, what: str) -> Any:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.counts[what] += self.on
            return function(*arguments, **named)

        return counted

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event == "open" and isinstance(arguments[0], str):
            mode = arguments[1] or ""
            if any(letter in mode for letter in "wax+"):
                self.written.append(arguments[0])
            else:
                self.opened[arguments[0]] += 1

    def below(self, folder: Path) -> Counter[str]:
        """How often each file below ``folder`` was opened for reading."""
        return Counter(
            {path: count for path, count in self.opened.items() if path.startswith(f"{folder}/")}
        )

    def __enter__(self) -> Operations:
        self.counts.clear()
        self.opened.clear()
        self.written.clear()
        self.on = True
        return self

    def __exit__(self, *error: object) -> None:
        self.on = False


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Operations]:
    made = Operations(monkeypatch)
    yield made
    made.on = False


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs on miniature data."""
    for model in (MODELS[0], MODELS[3]):
        write_run_of(tmp_path / "runs", model, [TASK])
    return tmp_path / "runs"


def build(runs: Path, *, figures: Sequence[str] = (), **options: Any) -> None:
    cache = runs.parent / "cache"
    options_of_board = publish.BoardOptions(demonstration=True, **options)
    page = runs.parent / "page"
    publish.publish([runs], page, options_of_board, figures=figures, cache=cache)


def test_a_build_does_what_is_new_alone(runs: Path, operations: Operations) -> None:
    page = runs.parent / "page"
    with operations:
        build(runs)
    assert operations.counts["figures"] == 0
    assert not (page / "figures").exists()

    with operations:  # again: each file is read once, for its hash
        build(runs)
    assert operations.counts == Counter()
    assert {count for path, count in operations.below(runs).items() if "/samples/" in path} == {1}
    assert not [path for path in operations.written if path.startswith(str(runs.parent))]
    assert set(operations.below(page).values()) == {1}

    before = (page / "index.html").read_bytes()
    (page / "index.html").write_text("mine", encoding="utf-8")
    with operations:
        build(runs)
    assert (page / "index.html").read_bytes() == before
    assert (operations.counts["runs read"], operations.counts["boards"]) == (0, 0)

    models = runs.parent / "models.yaml"
    models.write_text("'*': {size: 7B}\n", encoding="utf-8")
    for options in ({"title": "Another"}, {"models": models}, {"published": False}):
        with operations:
            build(runs, **options)
        assert (operations.counts["runs read"], operations.counts["boards"]) == (0, 1)

    write_run_of(runs, MODELS[1], [TASK])
    with operations:
        build(runs, figures=("pdf", "svg"))
    drawn = list((page / "figures").rglob("*.*"))
    assert (operations.counts["runs read"], operations.counts["boards"]) == (1, 1)
    assert operations.counts["figures"] == len(drawn) > 0
    assert {path.suffix for path in drawn} == {".pdf", ".svg"}


def test_a_run_on_miniature_data_is_scored_on_them_and_kept(
    tmp_path: Path, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run_of(tmp_path / "runs", MODELS[0], ["mi_cxr_report"])
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "nothing is prepared here"))
    options = publish.BoardOptions(demonstration=True)
    cache = tmp_path / "cache"
    board = publish.board_of([tmp_path / "runs"], options, cache=cache).board
    (run,) = board.runs.values()
    assert not [note for note in run.notes if "cannot be computed here" in note]
    with operations:
        again = publish.board_of([tmp_path / "runs"], options, cache=cache).board
    assert operations.counts["runs read"] == 0
    assert again == board


def test_the_view_makes_a_page_when_it_is_asked_for(
    runs: Path, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_CACHE", str(runs.parent / "cache"))
    with operations:
        library = read_library([runs])
        assert not [path for path in operations.written if path.endswith(".html")]
        assert operations.counts["figures"] == 0
        assert b"<h1>MI-CXR</h1>" in library.files["benchmark-mi_cxr.html"]()
        assert operations.counts["figures"] == 0
        drawn = figures_of(library.board, library.board.benchmarks[0])
        found = library.files[f"figures/mi_cxr/{next(iter(drawn))}.svg"]()
    assert found.startswith(b"<?xml")
    assert operations.counts["figures"] == 1


def test_a_board_needs_no_library_of_figures_nor_of_language() -> None:
    code = "import sys; import medtasks.leaderboard.publish, medtasks.leaderboard.view.server; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "matplotlib",
        "nltk",
        "pandas",
        "sklearn",
        "torch",
        "transformers",
        "datasets",
        "scipy.stats",
    }
    assert heavy.isdisjoint(done.stdout.split())
