"""Python processes that start at once: forks of one that has imported the large libraries already.

A process that runs the harness spends some ten seconds of CPU time importing what nobody here
wrote. The fork server of `multiprocessing` imports that once for a test session; each fork imports
lmms-eval and medtasks of its own.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

LIBRARIES = (
    "accelerate",
    "aiohttp",
    "av",
    "duckdb",
    "evaluate",  # with torch, torchvision, datasets and transformers' pipelines
    "nltk",
    "openai",
    "pyarrow.parquet",
    "pytablewriter",
    "sacrebleu",
    "scipy.stats",
    "sympy",
    "tenacity",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.processing_auto",
    "typer",
)
_READ_AT_START = ("HF_", "HOME", "XDG_", "OMP_", "PYTHONHASH", "LC_", "LANG")
"""Beginnings of the names of variables that libraries or the interpreter read when they start."""
_HERE = Path(__file__).parent


class Forks:
    """Runs Python in forks of one process, which is started by the first one, with the environment
    of that time.
    """

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*LIBRARIES])
        self._started = dict(os.environ)

    def can_run(self, environment: Mapping[str, str]) -> bool:
        """Whether variables that are read at the start are as they were."""
        names = {
            name
            for name in environment.keys() | self._started.keys()
            if name.startswith(_READ_AT_START)
        }
        return all(environment.get(name) == self._started.get(name) for name in names)

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], outputs: Path
    ) -> subprocess.CompletedProcess[str]:
        """``python ARGUMENTS`` in ``folder``; what it prints goes to files in ``outputs``."""
        said = [str(outputs / name) for name in ("stdout", "stderr")]
        process = self._context.Process(
            target=_become, args=(list(arguments), str(folder), dict(environment), said)
        )
        process.start()
        process.join()
        code = process.exitcode
        process.close()
        assert code is not None
        out, err = (Path(path).read_text(encoding="utf-8", errors="replace") for path in said)
        return subprocess.CompletedProcess(arguments, code, out, err)


def _become(
    arguments: list[str], folder: str, environment: dict[str, str], said: list[str]
) -> None:
    """Be the process that an interpreter with these arguments would be."""
    for number, path in enumerate(said, start=1):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    given = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    installed = [path for path in sys.path if path and not Path(path).is_relative_to(_HERE)]
    kind, name = arguments[:2] if arguments[0] in ("-m", "-c") else ("", arguments[0])
    first = {"-m": folder, "-c": ""}.get(kind, str(Path(name).parent))
    sys.path[:] = [first, *given, *installed]
    sys.argv = arguments[1:] if kind == "-m" else arguments if not kind else [kind, *arguments[2:]]
    try:
        if kind == "-m":
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        elif kind == "-c":
            sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(name, "<string>", "exec"), vars(sys.modules["__main__"]))
        else:
            runpy.run_path(name, run_name="__main__")
    finally:
        atexit._run_exitfuncs()
