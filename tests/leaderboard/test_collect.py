"""Collecting: what is found, read once and refused."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from invented_runs import MODELS, edit_json, write_run_of
from medtasks.leaderboard.intake import collect as module
from medtasks.leaderboard.intake.collect import collect, find_everything
from medtasks.leaderboard.publish import BoardOptions, board_of
from medtasks.leaderboard.verify import scored_run as scoring
from medtasks.leaderboard.verify.scored_run import RunStore

from medtasks.catalog.contents import task_packages
from medtasks.catalog.task_package import TaskPackage
from medtasks.core.errors import UsageError
from medtasks.core.settings import using
from medtasks.scoring import run_cache as kept

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

TASK = "kvasir_vqa_x1_level3"
ORACLE, GUESS = MODELS[0], MODELS[3]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs in a tree."""
    root = tmp_path_factory.mktemp("results")
    for model in (ORACLE, GUESS):
        write_run_of(root, model, [TASK])
    return root


@pytest.fixture
def tree(results: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(results, tmp_path / "tree"))


def run_of(tree: Path, name: str) -> Path:
    return next((tree / name).iterdir())


# ---------------------------------------------------------------------------------------------------------
# finding


def told(paths: list[Path]) -> tuple[int, list[str]]:
    """How many runs are collected, and what is refused."""
    runs, refused = collect(paths)
    return len(runs), [f"{one.folder}: {one.reason}" for one in refused]


def found(paths: list[Path]) -> list[Path]:
    return [run.directory for run in find_everything(paths).runs]


def test_runs_are_found_in_trees_and_by_name_each_once(tree: Path) -> None:
    both = [run_of(tree, "Guess-1B"), run_of(tree, "Oracle-72B")]
    assert found([both[1], tree, both[0], tree / "Oracle-72B"]) == both
    (tree / "link").symlink_to(both[0].parent)
    assert found([tree]) == both
    assert collect([tree / "Guess-1B", tree / "Oracle-72B"]) == collect(
        [tree / "Oracle-72B", tree / "Guess-1B"]
    )
    shutil.copytree(both[0], tree / "again" / "a_medtasks")  # the same run counts once
    assert told([tree, tree / "again"]) == (2, [])
    names = {f"{model}/20261101_000000_medtasks" for model in ("Guess-1B", "Oracle-72B")}
    assert {one.public.folder for one in collect([tree])[0]} == names
    renamed = both[0].rename(tree / "submission")  # a run may be called anything
    assert renamed in found([tree])
    assert found([renamed]) == [renamed]


def test_half_written_folders_are_left_alone_and_one_left_aside_is_found(tree: Path) -> None:
    run = run_of(tree, "Guess-1B")
    shutil.copytree(run, run.with_name(f".{run.name}.abc"))
    aside = run.rename(run.with_name(f".{run.name}.aside"))
    assert run in found([tree])
    assert told([tree]) == (2, [])
    assert not aside.exists()


def test_a_path_without_a_run_and_a_link_to_an_unread_one_are_named(
    tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert told([tree, tmp_path / "empty"]) == (
        2,
        ["empty: contains no result directory (…_medtasks)"],
    )
    with pytest.raises(UsageError, match="no such directory; give a result directory"):
        collect([tmp_path / "nothing"])
    run = run_of(tree, "Guess-1B")
    (tree / "latest_medtasks").symlink_to(run)
    assert told([tree]) == (2, [])
    (tree / "other_medtasks").symlink_to(run.rename(tmp_path / "elsewhere_medtasks"))
    (tree / "gone_medtasks").symlink_to(tmp_path / "gone")
    links = [
        f"{name}_medtasks: it is a link; copy what it points to"
        for name in ("gone", "latest", "other")
    ]
    assert told([tree]) == (1, links)


@pytest.mark.parametrize(
    "name", ["manifest.json", "scores.json", "samples", f"samples/{TASK}.jsonl"]
)
def test_a_run_with_a_link_is_refused(tree: Path, tmp_path: Path, name: str) -> None:
    """It may point to any file of the machine that builds the board."""
    run = run_of(tree, "Guess-1B")
    moved = (run / name).rename(tmp_path / "elsewhere")
    (run / name).symlink_to(moved)
    assert told([tree]) == (1, [f"Guess-1B/{run.name}: {name} is a link; copy what it points to"])


def test_a_board_is_made_anew_if_a_file_became_a_link_to_itself(tree: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    board = board_of([tree], BoardOptions(demonstration=True), cache=cache).board
    assert (len(board.runs), len(board.refused)) == (2, 0)
    samples = run_of(tree, "Guess-1B") / "samples"
    samples.symlink_to(samples.rename(tmp_path / "elsewhere"))
    board = board_of([tree], BoardOptions(demonstration=True), cache=cache).board
    assert (len(board.runs), len(board.refused)) == (1, 1)


def test_a_folder_that_cannot_be_listed_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, scandir = run_of(tree, "Guess-1B"), os.scandir

    def guarded(path: str) -> object:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert told([tree]) == (
        1,
        [f"Guess-1B/{closed.name}: it cannot be listed (Permission denied); give access to it"],
    )


# --------------------------------------------------------------------------------------------------------
# refusing


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("manifest.json", "{", "manifest.json: not the manifest of a run (not valid JSON"),
        ("manifest.json", None, "cannot be read|contains no manifest.json"),
        (f"samples/{TASK}.jsonl", "{}\n", "line 1: field `sample_id`"),
        (f"samples/{TASK}.jsonl", "\x00\ud800", "it cannot be read|line 1"),
    ],
)
def test_one_bad_folder_stops_nothing(
    tree: Path, file: str, content: str | None, reason: str
) -> None:
    path = run_of(tree, "Guess-1B") / file
    path.unlink()
    if content is not None:
        path.write_bytes(content.encode("utf-8", "surrogatepass"))
    runs, refused = collect([tree])
    assert [one.public.model_facts["name"] for one in runs] == [ORACLE.name]
    (one,) = refused
    model = "" if file == "manifest.json" else f" ({GUESS.name})"
    assert one.folder == f"Guess-1B/{run_of(tree, 'Guess-1B').name}{model}"
    assert any(part in one.reason for part in reason.split("|"))
    assert str(tree) not in one.reason
    assert "\n" not in one.reason


# ---------------------------------------------------------------------------------------------------------
# caching


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of the function that reads a folder, once for each call."""
    called: list[str] = []
    original = scoring.scored_record

    def watched(*given: Any, **named: Any) -> Any:
        called.append("scored_record")
        return original(*given, **named)

    monkeypatch.setattr(scoring, "scored_record", watched)
    return called


def test_another_package_of_tasks_makes_digests_anew(
    tree: Path, tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rubric = tmp_path / "rubrics" / "dots.yaml"
    rubric.parent.mkdir()
    ours = task_packages()
    for version, content in (
        ("1.0", "name: dots\n"),
        ("1.1", "name: dots\n"),
        ("1.1", "name: dots\nbest: 2\n"),
    ):
        rubric.write_text(content, encoding="utf-8")
        theirs = TaskPackage(
            "acme-tasks", version, "acme", tmp_path / "tasks", tmp_path / "templates", rubric.parent
        )
        monkeypatch.setattr(kept, "task_packages", lambda theirs=theirs: (*ours, theirs))
        for count in (2, 0):
            reads.clear()
            collect([tree], RunStore(tmp_path / "cache"))
            assert reads.count("scored_record") == count


def test_a_changed_sample_makes_another_digest(tree: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "cache")
    before, _ = collect([tree], store)
    path = run_of(tree, "Guess-1B") / "samples" / f"{TASK}.jsonl"
    edit_json(path, lambda sample: sample.update(responses=[sample["target"]]), line=0)
    after, _ = collect([tree], store)
    assert [one.public.digest for one in after] != [one.public.digest for one in before]
    assert after == collect([tree])[0]


def test_options_named_by_text_are_counted_beside_the_run(tmp_path: Path) -> None:
    path = write_run_of(tmp_path, GUESS, ["med_cmr_mcq_su"]) / "samples" / "med_cmr_mcq_su.jsonl"
    count = path.read_bytes().count(b"\n")
    for line in range(count):
        edit_json(
            path,
            lambda it: it.update(responses=[it["document"]["choices"][it["target"]]]),
            line=line,
        )
    ((run,), _) = collect([tmp_path])
    assert (
        f"med_cmr_mcq_su: {count} of {count} options were named by text, not by letter"
        in run.public.notes
    )


def test_a_damaged_cache_is_made_again(tree: Path, tmp_path: Path, reads: list[str]) -> None:
    (tmp_path / "file").write_text("one that cannot be written stops nothing", encoding="utf-8")
    fresh, _ = collect([tree], RunStore(tmp_path / "file"))
    assert collect([tree], RunStore(tmp_path / "cache"))[0] == fresh
    path = next(
        entry
        for entry in (tmp_path / "cache").iterdir()
        if GUESS.name.encode() in entry.read_bytes()
    )
    whole = path.read_bytes()
    inside = whole.index(b"statistics 0") + 300
    for content in (
        *(b"", b"PK\x03\x04", b"\x80\x04].", whole[:-200]),
        whole.replace(b'"value": 0.', b'"value": 1.', 1),
        whole[:inside] + bytes([whole[inside] ^ 1]) + whole[inside + 1 :],
    ):
        assert whole != content
        path.write_bytes(content)
        reads.clear()
        assert collect([tree], RunStore(tmp_path / "cache"))[0] == fresh
        assert reads == ["scored_record"]
    reads.clear()
    for path in tree.rglob("*.json*"):
        os.utime(path, (1, 1))
    assert collect([tree.rename(tmp_path / "elsewhere")], RunStore(tmp_path / "cache"))[0] == fresh
    assert reads == []


def test_large_runs_are_read_by_other_processes_unless_a_server_reads_them(
    tree: Path, tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run_of(tree, "Guess-1B"), tree / "broken_medtasks")
    (tree / "broken_medtasks" / "manifest.json").write_text("{", encoding="utf-8")
    steps: list[tuple[int, int]] = []
    alone = collect(
        [tree], RunStore(tmp_path / "first"), lambda done, total: steps.append((done, total))
    )
    assert reads.count("scored_record") == 2
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert len(alone[1]) == 1
    reads.clear()
    monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert collect([tree], RunStore(tmp_path / "second")) == alone
    assert reads.count("scored_record") == 0
    thread = threading.Thread(target=collect, args=([tree], RunStore(tmp_path / "third")))
    thread.start()
    thread.join()
    assert reads.count("scored_record") == 2


def test_logs_of_the_harness_without_a_run_are_named_with_what_to_do(tree: Path) -> None:
    folder = tree / "some__model"
    folder.mkdir()
    (folder / f"20261102_101500_samples_{TASK}.jsonl").write_text("{}\n", encoding="utf-8")
    (folder / "20261102_101500_samples_mmmu_val.jsonl").write_text("{}\n", encoding="utf-8")
    count, (refused,) = told([tree])
    assert (count, refused.startswith("some__model: it has only lmms-eval's logs; make a run")) == (
        2,
        True,
    )
    run_of(tree, "Guess-1B").rename(folder / "20261102_101500_medtasks")
    assert told([tree]) == (2, [])


def test_a_run_on_miniature_data_is_kept_under_one_key_whatever_data_are_prepared(
    tmp_path: Path,
) -> None:
    def keys(miniature: bool) -> set[str]:
        found = set()
        for mini in (True, False):
            with using(mini=mini, data=tmp_path):
                store = RunStore(tmp_path / "scores")
                found.add(store.key_of("content", [TASK], {"kvasir_vqa_x1": miniature}))
        return found

    assert (len(keys(True)), len(keys(False))) == (1, 2)
