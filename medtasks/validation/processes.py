"""Check that two processes give the same results as one: run the harness with both, and compare the files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from medtasks.benchmarks.documents import task_documents
from medtasks.cache import writable_cache
from medtasks.files import temporary_beside
from medtasks.judge.config import VARIABLE
from medtasks.validation.behaviour import named_tasks
from medtasks.validation.findings import Finding, found

MODEL = ("--model", "medtasks_baseline", "--model_args", "policy=noisy_oracle,seed=1")
LONGEST = 3600
"""Time limit of one run, in seconds."""


def validate_processes(names: Sequence[str], *, limit: int = 200) -> list[Finding]:
    """Findings about differences between runs of the tasks and groups ``names`` in one process and in two.

    The harness runs twice, in separate processes, with a baseline that is sometimes right, on at most ``limit``
    documents per task. The results must be identical byte for byte, except for the manifest, which contains the time.
    Tasks without prepared data are left out.
    """
    tasks = [name for name in named_tasks(names) if _is_prepared(name)]
    if not tasks:
        return []
    writable_cache().mkdir(parents=True, exist_ok=True)
    with temporary_beside(writable_cache() / "validate") as folder:  # unlike in /tmp, removed after a kill as well
        runs: list[dict[str, bytes]] = []
        for number in (1, 2):
            output = folder / str(number)
            files = _run(tasks, output, number, limit)
            if isinstance(files, str):
                message = f"the run in {number} process{'es' * (number > 1)} fails ({files}); fix the cause."
                return [found("MT510", ", ".join(tasks[:3]), message)]
            runs.append(files)
    return _differences(*runs)


def _is_prepared(name: str) -> bool:
    try:
        return bool(task_documents(name))
    except Exception:  # other checks report what is wrong with its loader
        return False


def _run(tasks: Sequence[str], output: Path, processes: int, limit: int) -> dict[str, bytes] | str:
    """The files of a run's directory except the manifest, by path; or why there are none."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes))
    asked = ("-m", "lmms_eval", *MODEL, "--tasks", ",".join(tasks), "--output_path", str(output), "--limit", str(limit))
    command = [sys.executable, *(launcher if processes > 1 else ()), *asked]
    # without a judge, which would cost money and is not tested here
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE} | {"ACCELERATE_USE_CPU": "true"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {LONGEST} s"
    # torch may abort a process while the interpreter exits, after the results were written; they still count
    folders = list(output.rglob("*_medtasks")) if output.is_dir() else []
    if len(folders) != 1:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        last = next((line for line in reversed(lines) if line.startswith("medtasks")), lines[-1] if lines else "")
        return f"exit code {done.returncode}: {last[:300]}"
    manifest = json.loads((folders[0] / "manifest.json").read_text(encoding="utf-8"))
    if manifest["processes"] != processes:
        return f"{manifest['processes']} processes ran, expected {processes}"
    return {
        path.relative_to(folders[0]).as_posix(): path.read_bytes()
        for path in sorted(folders[0].rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def _differences(one: Mapping[str, bytes], two: Mapping[str, bytes]) -> list[Finding]:
    findings = []
    for name in sorted(one.keys() | two.keys()):
        if one.get(name) == two.get(name):
            continue
        task = Path(name).stem if name.startswith("samples/") else name
        lines = [files.get(name, b"").splitlines() for files in (one, two)]
        first = next((n for n, pair in enumerate(zip(*lines, strict=False), 1) if pair[0] != pair[1]), None)
        where = f"line {first}" if first else f"{len(lines[0])} and {len(lines[1])} lines"
        message = f"{name} of a run in 2 processes differs from that of one process ({where})"
        findings.append(
            found("MT510", task, f"{message}; scores must not depend on which documents are processed together.")
        )
    return findings
