"""The command line in this process: a process of its own imports for a second before it does anything."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from medtasks.cli.app import main

Typed = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def medtasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run ``medtasks`` with these arguments in ``tmp_path``; keywords are environment variables."""
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
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), printed.out, printed.err)

    return run
