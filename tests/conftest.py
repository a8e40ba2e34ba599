"""One cache for the whole test run, no hub, the miniature data unless a test says otherwise."""

from __future__ import annotations

import compileall
import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import hypothesis
import pytest
from forked import Forks

REPOSITORY = Path(__file__).parent.parent

gc.disable()  # until everything is collected: a fifth of what that costs went into searches that find nothing

# read when huggingface_hub is imported, which may be before any fixture: without it, a test of an
# unknown checkpoint waits minutes for a hub that is not there
os.environ["HF_HUB_OFFLINE"] = "1"

# test modules look at the benchmarks when they are imported, before any fixture: the user's own
# must not be among them
_no_configuration = tempfile.TemporaryDirectory()
os.environ["XDG_CONFIG_HOME"] = _no_configuration.name
os.environ.pop("MEDTASKS_BENCHMARKS", None)

# torch's threads wait by spinning: two workers with two each on two cores spend three times the CPU
# time
os.environ.setdefault("OMP_NUM_THREADS", "1")

# the same examples in every run, however slow the machine is; more are found by running with
# another profile
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_CACHE", str(folder / "medtasks"))
        patch.setenv("MEDTASKS_DATA", "mini")
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))  # no benchmarks that were added
        patch.delenv("MEDTASKS_BENCHMARKS", raising=False)
        patch.setenv("LMMS_EVAL_DATASETS_CACHE", str(folder / "datasets"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("TOKENIZERS_PARALLELISM", "false")
        patch.delenv("COLUMNS", raising=False)  # the width of what commands print
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        if (
            ignored
        ):  # as in a background job of a shell; the processes that tests start would inherit it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.unfreeze()  # triton's bindings would report what is still frozen as leaked


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def new_python(tmp_path: Path) -> Command:
    """Run this interpreter in a process of its own, outside the checkout."""
    return partial(_python, tmp_path)


@pytest.fixture
def python(new_python: Command) -> Command:
    """`new_python`, unless a directory's tests are about something else than how a process
    starts.
    """
    return new_python


def _python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture(scope="session")
def forks(_isolated: None) -> Forks:
    """Starts processes that have imported the large libraries before."""
    return Forks()


@pytest.fixture
def warm_python(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Command:
    """As `python`, but the process has imported the large libraries before (`forked.py`)."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        every = {**os.environ, **environment}
        if "torch.distributed.run" in arguments or not forks.can_run(every):
            return _python(tmp_path, *arguments, **environment)
        return forks.run(arguments, tmp_path, every, tmp_path_factory.mktemp("said"))

    return run


def pytest_configure(config: pytest.Config) -> None:
    """Compile the checkout once: with ``PYTHONDONTWRITEBYTECODE``, each process that tests start
    would do it.
    """
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        for folder in ("medtasks", "leaderboard", "adapters", "templates"):
            compileall.compile_dir(str(REPOSITORY / folder), quiet=2)


def pytest_collection_finish() -> None:
    """Keep what the collection imported out of every later garbage collection; the harness runs one
    in each run.
    """
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first, so that no worker is left alone with one of them at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


WANTED = {
    "WordNet": "`medtasks fetch wordnet`, or `apt-get install wordnet-base wordnet-sense-index`",
    "Chromium": "`apt-get install chromium`",
}
"""What some tests need and no package index has, with the commands that get it."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Name, in the last lines, what tests were skipped for, and how to get it."""
    yield
    reasons = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    for name, command in WANTED.items():
        if count := sum(name in reason for reason in reasons):
            terminalreporter.write_line(
                f"{count} tests were skipped for want of {name}; get it with {command}."
            )


@pytest.fixture
def medtasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run ``medtasks`` with these arguments in this process, in ``tmp_path``; keywords are
    environment variables.

    A process of its own imports for a second before it does anything.
    """
    from medtasks.cli.app import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as context:
            context.setattr("sys.argv", ["medtasks", *arguments])
            for name, value in environment.items():
                context.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        return subprocess.CompletedProcess(
            arguments, int(ended.value.code or 0), printed.out, printed.err
        )

    return run
