"""Missing data are downloaded and prepared by a run: with consent, once, and from where it stopped.

The hub is a server on this machine. Each command is a process of its own, because the hub's client
reads its settings when it is imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hub_releases import MINI, PICTURES, ROWS, kvasir_release, parquet
from stub_hub import COMMIT, StubHub
from terminal import Terminal

from medtasks.benchmarks.kvasir_vqa_x1.prepare import HUB
from medtasks.benchmarks.kvasir_vqa_x1.prepare import HUB_PICTURES as IMAGES
from medtasks.catalog.benchmark import AutomaticPreparation
from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.core.errors import DataError, MachineError, NotPreparedError
from medtasks.data.automatic import provide_data
from medtasks.data.hub import hub_address, hub_tree
from medtasks.data.hub_listing import HubListing, ListedFile
from medtasks.data.large_files import fetch_large_files
from medtasks.data.missing_data import MissingData, PlannedDownload, require_space
from medtasks.data.store import open_prepared

PROVIDE = """
import sys
from medtasks.core.errors import exit_with_sentence
from medtasks.data.automatic import provide_data
exit_with_sentence(provide_data)(sys.argv[1:])
"""
"""What a run does about its data, without the harness."""
TREE = """
import sys
from medtasks.core.errors import exit_with_sentence
from medtasks.data import large_files
from medtasks.data.hub import hub_tree
large_files.LARGE = 1
print(exit_with_sentence(hub_tree)(*sys.argv[1:])[0])
"""
"""Fetches a dataset, all of whose files count as large."""
KVASIR = "kvasir_vqa_x1"
TODAY = "medtasks prepare kvasir_vqa_x1 --source hub (or set MEDTASKS_DATA=mini to try the miniature data)"
YES = {"MEDTASKS_DOWNLOAD": "yes"}


@pytest.fixture
def hub() -> Iterator[StubHub]:
    with StubHub(kvasir_release()) as server:
        yield server


class Machine:
    """Commands with a hub, a cache and a data directory of their own."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.environment = {
            **os.environ,
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(folder / "hf"),
            "HF_HUB_OFFLINE": "",
            "MEDTASKS_DATA": str(self.data),
        }

    def starts(self, code: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**self.environment, **settings},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def runs(self, code: str, *arguments: str, **settings: str) -> tuple[int, str]:
        """The exit code of a command, and what it printed to standard error."""
        process = self.starts(code, *arguments, **settings)
        _, errors = process.communicate()
        return process.returncode, errors

    def on_terminal(self, *benchmarks: str, code: str = PROVIDE, **settings: str) -> Terminal:
        command = [sys.executable, "-c", code, *benchmarks]
        return Terminal(command, {**self.environment, **settings}, self.folder)

    def manifest(self, benchmark: str = KVASIR) -> dict[str, Any]:
        text = (self.data / benchmark / "manifest.json").read_text(encoding="utf-8")
        manifest: dict[str, Any] = json.loads(text)
        return manifest


@pytest.fixture
def machine(tmp_path: Path, hub: StubHub) -> Machine:
    return Machine(tmp_path, hub.url)


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of this process without any data."""
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    return tmp_path


def sentence_of(benchmark: str) -> str:
    """What a run says about missing data that it cannot download."""
    with pytest.raises(NotPreparedError) as caught:
        open_prepared(benchmark)
    return str(caught.value)


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("benchmark", ["mi_cxr", "medstreambench"])
@pytest.mark.parametrize("download", ["", "yes", "no"])
def test_media_that_the_user_has_to_obtain_are_never_downloaded(
    no_data: Path, monkeypatch: pytest.MonkeyPatch, benchmark: str, download: str
) -> None:
    monkeypatch.setenv("MEDTASKS_DOWNLOAD", download)
    with pytest.raises(NotPreparedError) as caught:
        provide_data([KVASIR, benchmark])
    assert str(caught.value) == sentence_of(benchmark)
    assert list(no_data.iterdir()) == []


def test_without_a_terminal_the_sentence_says_how_to_agree(
    no_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEDTASKS_DOWNLOAD", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(NotPreparedError) as caught:
        provide_data(["med_cmr", "kvasir_vqa_x1_transformed"])
    assert str(caught.value) == (
        f"{sentence_of('med_cmr')}; or set MEDTASKS_DOWNLOAD=yes, and the run downloads and "
        "prepares med_cmr, kvasir_vqa_x1, kvasir_vqa_x1_transformed itself "
        "(licences: Apache-2.0, CC BY-NC 4.0)"
    )
    monkeypatch.setenv("MEDTASKS_DOWNLOAD", "no")
    with pytest.raises(NotPreparedError) as caught:
        provide_data(["med_cmr"])
    assert str(caught.value) == sentence_of("med_cmr")
    assert list(no_data.iterdir()) == []


def test_a_data_directory_that_cannot_be_written_is_named(
    no_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (no_data / "file").touch()
    monkeypatch.setenv("MEDTASKS_DATA", str(no_data / "file" / "data"))
    monkeypatch.setenv("MEDTASKS_DOWNLOAD", "yes")
    with pytest.raises(NotPreparedError, match=r"file/data: cannot be written \(Not a directory\)"):
        provide_data([KVASIR])


@pytest.mark.usefixtures("no_data")
def test_too_little_space_is_reported_before_anything_is_downloaded() -> None:
    missing = MissingData(get_benchmark("med_cmr"), AutomaticPreparation(), "")
    archive = ListedFile("dataset.zip", 10**18)
    download = PlannedDownload(missing, (HubListing("a/b", COMMIT, (archive,)),))
    with pytest.raises(NotPreparedError, match=r"has .* of free space, but .* up to [12],000,000"):
        require_space([download])


@pytest.fixture
def hub_here(hub: StubHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubHub:
    """The hub of this process, whose client has read its settings."""
    address = "{repo_id}/resolve/{revision}/{filename}"
    settings = {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": f"{hub.url}/{address}",
        "HF_HUB_CACHE": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": False,
    }
    for name, value in settings.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    monkeypatch.delenv("HF_DATASETS_OFFLINE", raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    return hub


@pytest.mark.usefixtures("no_data")
def test_missing_data_are_downloaded_and_prepared(
    hub_here: StubHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DOWNLOAD", "yes")
    provide_data([KVASIR])
    assert open_prepared(KVASIR).manifest.counts.rows == 79
    assert hub_here.begun == {ROWS: 1, PICTURES: 1}


LAB = "lab/big"
BLOB = bytes(range(250)) * 40


class LabFile:
    """A file that counts as large, on the hub of this process."""

    def __init__(self, cache: Path) -> None:
        self.sha256 = hashlib.sha256(BLOB).hexdigest()
        self.listing = HubListing(LAB, COMMIT, (ListedFile("big.bin", len(BLOB), self.sha256),))
        self.blob = cache / "datasets--lab--big" / "blobs" / self.sha256
        self.part = self.blob.with_name(f"{self.sha256}.part")

    def interrupt_at(self, size: int) -> None:
        self.part.parent.mkdir(parents=True)
        self.part.write_bytes(BLOB[:size])


@pytest.fixture
def lab_file(hub_here: StubHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabFile:
    hub_here.datasets = {LAB: {"big.bin": BLOB}}
    monkeypatch.setattr("medtasks.data.large_files.LARGE", 1)
    return LabFile(tmp_path / "hf")


def test_space_is_not_required_again_for_what_was_left(
    no_data: Path, lab_file: LabFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = MissingData(get_benchmark("med_cmr"), AutomaticPreparation(), "")
    download = PlannedDownload(missing, (lab_file.listing,))
    free = SimpleNamespace(free=2 * len(BLOB) - 1500)
    monkeypatch.setattr("shutil.disk_usage", lambda _: free)
    lab_file.interrupt_at(1000)
    with pytest.raises(NotPreparedError, match=r"takes up to 19\.0 kB"):
        require_space([download])
    unpacked = no_data / ".med_cmr.partial" / "media" / "unpacked.png"
    unpacked.parent.mkdir(parents=True)
    unpacked.write_bytes(bytes(500))
    require_space([download])


def test_the_token_is_not_sent_to_the_storage_that_the_hub_redirects_to(
    hub_here: StubHub, lab_file: LabFile
) -> None:
    lab_file.interrupt_at(1000)
    with StubHub(hub_here.datasets) as storage:
        hub_here.storage = storage
        fetch_large_files(lab_file.listing)
    assert lab_file.blob.read_bytes() == BLOB
    assert hub_here.tokens == ["Bearer hf_mine"]
    assert storage.tokens == [None]
    assert storage.fetched["big.bin"] == len(BLOB) - 1000


def test_the_token_is_not_sent_if_the_settings_of_the_hub_forbid_it(
    hub_here: StubHub, lab_file: LabFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    fetch_large_files(lab_file.listing)
    assert hub_here.tokens == [None]


def test_a_server_without_ranges_sends_the_whole_file(hub_here: StubHub, lab_file: LabFile) -> None:
    hub_here.has_ranges = False
    lab_file.interrupt_at(1000)
    # older versions of the client append to what was there; the next attempt starts from scratch
    with contextlib.suppress(OSError):
        fetch_large_files(lab_file.listing)
    fetch_large_files(lab_file.listing)
    assert lab_file.blob.read_bytes() == BLOB


def test_files_that_the_hub_serves_only_by_xet_are_left_to_its_client(
    hub_here: StubHub, lab_file: LabFile
) -> None:
    huge = ListedFile("big.bin", 60 * 10**9, lab_file.sha256)
    fetch_large_files(HubListing(LAB, COMMIT, (huge,)))
    assert hub_here.asked == []


@pytest.mark.usefixtures("lab_file")
def test_a_status_of_the_server_is_reported_by_its_number(hub_here: StubHub) -> None:
    hub_here.file_status = 410
    with pytest.raises(
        DataError, match=r"lab/big: \*\.bin cannot be fetched .*\(HTTP status 410\)"
    ):
        hub_tree(LAB, "*.bin")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_named_as_the_cause(lab_file: LabFile) -> None:
    lab_file.part.parent.mkdir(parents=True)
    lab_file.part.symlink_to("/dev/full")
    with pytest.raises(MachineError, match="No space left on device; free "):
        hub_tree(LAB, "*.bin")


def test_a_login_of_a_mirror_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://me:secret@mirror.lab:81/hf")
    assert hub_address() == "https://mirror.lab:81/hf"


def test_every_benchmark_says_what_it_fetches_or_what_to_do() -> None:
    automatic = set()
    for name, benchmark in all_benchmarks().items():
        if benchmark.data.automatic is not None:
            automatic.add(name)
    assert automatic == {"kvasir_vqa_x1", "kvasir_vqa_x1_transformed", "med_cmr"}


@pytest.mark.slow
def test_consent_by_variable_prepares_once_and_for_good(machine: Machine, hub: StubHub) -> None:
    code, printed = machine.runs(PROVIDE, "kvasir_vqa_x1_transformed", KVASIR, **YES)
    assert code == 0, printed
    size = sum(len(hub.datasets[name][file]) for name, file in ((HUB, ROWS), (IMAGES, PICTURES)))
    assert (
        f"preparing kvasir_vqa_x1 (Kvasir-VQA-x1): up to {size / 1000:.1f} kB, licence "
        f"CC BY-NC 4.0, from {HUB} (newest commit, {COMMIT[:12]}) and {IMAGES} "
        f"(newest commit, {COMMIT[:12]})"
    ) in printed
    assert "made from kvasir_vqa_x1, without a download" in printed
    assert "prepared kvasir_vqa_x1: 79 rows, 24 media files" in printed
    source = machine.manifest()["source"]
    assert (source["name"], source["revision"]) == (HUB, COMMIT)
    assert source["images"] == f"{IMAGES}@{COMMIT}"
    assert machine.manifest("kvasir_vqa_x1_transformed")["counts"]["media"] == 48
    assert hub.begun == {ROWS: 1, PICTURES: 1}

    hub.asked.clear()
    assert machine.runs(PROVIDE, KVASIR, "kvasir_vqa_x1_transformed", **YES) == (0, "")
    assert machine.runs(PROVIDE, KVASIR) == (0, "")
    assert hub.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["y\n", " YES \n"])
def test_consent_on_a_terminal(machine: Machine, hub: StubHub, answer: str) -> None:
    with machine.on_terminal(KVASIR) as terminal:
        terminal.wait_for("[y/N]")
        question = terminal.text
        assert hub.begun == {}
        terminal.type(answer)
        assert terminal.ends() == 0, terminal.text
    assert "kvasir_vqa_x1 (Kvasir-VQA-x1): up to " in question
    assert " kB, licence CC BY-NC 4.0, from SimulaMet/Kvasir-VQA-x1 (newest" in question
    assert f"from {hub.url} to {machine.folder / 'hf' / 'hub'}" in question
    assert machine.manifest()["counts"]["rows"] == 79


@pytest.mark.slow
def test_files_of_unknown_size_count_as_a_download(machine: Machine, hub: StubHub) -> None:
    hub.states_sizes = False
    with machine.on_terminal(KVASIR) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("n\n")
        assert terminal.ends() == 1
    assert "kvasir_vqa_x1 (Kvasir-VQA-x1): unknown size, licence CC BY-NC 4.0" in terminal.text
    assert f"Download files of unknown size from {hub.url} to " in terminal.text
    assert hub.begun == {}


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04", "what?\n"])
def test_refusal_on_a_terminal(machine: Machine, hub: StubHub, answer: str) -> None:
    with machine.on_terminal(KVASIR) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type(answer)
        assert terminal.ends() == 1
        assert terminal.text.endswith(TODAY)
    assert hub.begun == {}
    assert list(machine.data.iterdir()) == []


@pytest.mark.slow
def test_no_question_is_asked_if_the_answer_is_known(machine: Machine, hub: StubHub) -> None:
    for setting in (
        {"MEDTASKS_DOWNLOAD": "no"},
        {"HF_HUB_OFFLINE": "1"},
        {"HF_DATASETS_OFFLINE": "1"},
    ):
        with machine.on_terminal(KVASIR, **setting) as terminal:
            assert terminal.ends() == 1
            assert TODAY in terminal.text
            assert "[y/N]" not in terminal.text
    assert terminal.text.endswith("HF_DATASETS_OFFLINE is set, so nothing is downloaded")
    with machine.on_terminal(KVASIR, MEDTASKS_DOWNLOAD="maybe") as terminal:
        assert terminal.ends() == 1
        assert "MEDTASKS_DOWNLOAD is 'maybe', expected yes" in terminal.text
    assert hub.asked == []


IN_BACKGROUND = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.setpgid(0, 0)
"""
"""As a shell starts a command with `&`."""


@pytest.mark.slow
def test_a_command_in_the_background_is_not_stopped_by_a_question(
    machine: Machine, hub: StubHub
) -> None:
    with machine.on_terminal(KVASIR, code=IN_BACKGROUND + PROVIDE) as terminal:
        assert terminal.ends() == 1
        assert "or set MEDTASKS_DOWNLOAD=yes, and the run downloads" in terminal.text
    assert hub.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"])
def test_offline_the_cache_of_the_hub_is_enough(
    machine: Machine, hub: StubHub, switch: str
) -> None:
    offline = {**YES, switch: "1"}
    code, printed = machine.runs(PROVIDE, KVASIR, **offline)
    assert code == 1
    assert f"{switch} is set, and the hub's cache lacks the files" in printed
    assert hub.asked == []
    assert machine.runs(PROVIDE, KVASIR, **YES)[0] == 0
    hub.asked.clear()
    elsewhere = str(machine.folder / "other data")
    code, printed = machine.runs(PROVIDE, KVASIR, **offline, MEDTASKS_DATA=elsewhere)
    assert code == 0, printed
    assert hub.asked == []


@pytest.mark.slow
def test_a_server_without_network_gets_one_sentence(machine: Machine) -> None:
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    code, printed = machine.runs(PROVIDE, KVASIR, **YES, **nowhere)
    assert code == 1
    last = printed.strip().splitlines()[-1]
    assert last.startswith(f"medtasks: {KVASIR} is missing in {machine.data} and could not be")
    assert last.endswith("run: medtasks prepare kvasir_vqa_x1 --source hub)")
    assert "Traceback" not in printed
    with machine.on_terminal(KVASIR, **nowhere) as terminal:
        assert terminal.ends() == 1
        # the error's class depends on the version of the hub's client
        reason = r"its files cannot be listed on the hub \(Connect\w*Error\); check the network"
        assert re.search(reason, terminal.text)
        assert "[y/N]" not in terminal.text


@pytest.mark.slow
def test_a_killed_download_continues(machine: Machine, hub: StubHub) -> None:
    hub.stalled[PICTURES] = 4096
    killed = machine.starts(PROVIDE, KVASIR, **YES)
    hub.wait_for(PICTURES, 4096)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not (machine.data / KVASIR).exists()
    hub.stalled.clear()
    code, printed = machine.runs(PROVIDE, KVASIR, **YES)
    assert code == 0, printed
    assert hub.begun == {ROWS: 1, PICTURES: 2}  # no finished file is fetched again
    assert machine.manifest()["counts"]["rows"] == 79


LARGE = random.Random(1).randbytes(13 * 2**20)
DAMAGED = (
    "medtasks: lab/big: big.bin was damaged on the way (its SHA-256 is not that of the hub); "
    "run the same command again."
)


@pytest.fixture
def large_file(tmp_path: Path) -> Iterator[tuple[Machine, StubHub]]:
    with StubHub({"lab/big": {"big.bin": LARGE}}) as server:
        yield Machine(tmp_path, server.url), server


@pytest.mark.slow
def test_a_large_file_continues_at_its_byte(large_file: tuple[Machine, StubHub]) -> None:
    machine, hub = large_file
    hub.stalled["big.bin"] = 12 * 2**20
    killed = machine.starts(TREE, "lab/big", "*.bin")
    wait_until(lambda: any(path.stat().st_size for path in machine.folder.rglob("*.part")))
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (part,) = machine.folder.rglob("*.part")
    kept = part.stat().st_size
    assert 0 < kept < len(LARGE)
    hub.stalled.clear()
    hub.fetched.clear()
    finished = machine.starts(TREE, "lab/big", "*.bin")
    folder, errors = finished.communicate()
    assert finished.returncode == 0, errors
    assert (Path(folder.strip()) / "big.bin").read_bytes() == LARGE
    assert hub.fetched["big.bin"] == len(LARGE) - kept
    assert list(machine.folder.rglob("*.part")) == []


@pytest.mark.slow
def test_a_large_file_that_was_damaged_is_fetched_again(
    large_file: tuple[Machine, StubHub],
) -> None:
    machine, hub = large_file
    hub.stalled["big.bin"] = 12 * 2**20
    killed = machine.starts(TREE, "lab/big", "*.bin")
    wait_until(lambda: any(path.stat().st_size for path in machine.folder.rglob("*.part")))
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (part,) = machine.folder.rglob("*.part")
    with part.open("r+b") as stream:
        stream.write(bytes(100))
    hub.stalled.clear()
    code, printed = machine.runs(TREE, "lab/big", "*.bin")
    assert (code, printed.strip().splitlines()[-1]) == (
        1,
        DAMAGED,
    )
    code, printed = machine.runs(TREE, "lab/big", "*.bin")
    assert code == 0, printed


@pytest.mark.slow
def test_two_processes_prepare_once(machine: Machine, hub: StubHub) -> None:
    hub.stalled[PICTURES] = 4096
    first = machine.starts(PROVIDE, KVASIR, **YES)
    hub.wait_for(PICTURES, 4096)
    second = machine.starts(PROVIDE, KVASIR, **YES)
    assert second.stderr is not None
    waits = second.stderr.readline()
    hub.go_on.set()
    _, printed = first.communicate()
    assert first.returncode == 0, printed
    _, printed_by_second = second.communicate()
    assert (second.returncode, printed_by_second) == (0, "")
    assert waits.startswith(f"medtasks: waiting for process {first.pid} on ")
    assert waits.endswith(f", which prepares data in {machine.data}\n")
    assert hub.begun == {ROWS: 1, PICTURES: 1}


@pytest.mark.slow
def test_only_the_first_process_of_a_command_asks(machine: Machine, hub: StubHub) -> None:
    with (
        machine.on_terminal(KVASIR, RANK="1", WORLD_SIZE="2") as second,
        machine.on_terminal(KVASIR, RANK="0", WORLD_SIZE="2") as first,
    ):
        second.wait_for("waiting for the first process of the command to ask")
        first.wait_for("[y/N]")
        first.type("y\n")
        assert (first.ends(), second.ends()) == (0, 0)
        assert "[y/N]" not in second.text
    assert hub.begun == {ROWS: 1, PICTURES: 1}


@pytest.mark.slow
def test_the_other_processes_end_if_the_user_refuses(machine: Machine, hub: StubHub) -> None:
    with (
        machine.on_terminal(KVASIR, RANK="1", WORLD_SIZE="2") as second,
        machine.on_terminal(KVASIR, RANK="0", WORLD_SIZE="2") as first,
    ):
        second.wait_for("waiting for the first process of the command to ask")
        first.wait_for("[y/N]")
        second.wait_for("the first process of the command is asking")
        first.type("n\n")
        assert (first.ends(), second.ends()) == (1, 1)
        assert second.text.endswith(TODAY)
    assert hub.begun == {}


@pytest.mark.slow
def test_a_package_of_another_lab_is_downloaded_alike(tmp_path: Path) -> None:
    rows = []
    for number, path in enumerate(sorted((MINI / "images").iterdir())[:3]):
        picture = {"bytes": path.read_bytes(), "path": None}
        answer = ("yes", "no", "a polyp")[number]
        rows.append({"image": picture, "question": f"Question {number}?", "answer": answer})
    source = Path(__file__).parents[2] / "examples" / "medtasks-classics"
    package = tmp_path / "package"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    site = str(tmp_path / "site")
    pip = ("install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--target", site)
    subprocess.run([sys.executable, "-m", "pip", *pip, str(package)], check=True)
    dataset = {"flaviagiammarino/vqa-rad": {"data/test-0.parquet": parquet(rows)}}
    with StubHub(dataset) as hub:
        machine = Machine(tmp_path, hub.url)
        (tmp_path / "hub").mkdir()  # is not taken for the hub
        code, printed = machine.runs(PROVIDE, "vqa_rad", **YES, PYTHONPATH=site)
    assert code == 0, printed
    assert "licence CC0-1.0, from flaviagiammarino/vqa-rad (newest commit, " in printed
    assert machine.manifest("vqa_rad")["counts"]["rows"] == 3
