"""The command ``lmms-eval`` in a process of its own, and what it left."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs import Run

TASK = "med_cmr_mcq_ltg"

_OTHER_TASK = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {test: ROWS}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{target}}"
generation_kwargs: {max_new_tokens: 4}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1}
"""
OTHER_ROWS = '{"question": "1 + 1 =", "target": "2"}'
"""The only row of a task of `other_task`."""


def other_task(name: str, rows: Path | str) -> str:
    """A task file of lmms-eval that is not ours; ``rows`` is the path of a file of `OTHER_ROWS`."""
    return _OTHER_TASK.replace("NAME", name).replace("ROWS", str(rows))


@dataclass(frozen=True)
class Ended:
    """How the command ended: exit code, what it printed, and its output directory."""

    code: int
    out: str
    err: str
    output: Path

    @property
    def sentence(self) -> str:
        """The last line on standard error."""
        return self.err.strip().splitlines()[-1] if self.err.strip() else ""

    @property
    def run(self) -> Run:
        """The only result directory."""
        (folder,) = self.output.rglob("*_medtasks")
        return Run(folder)


def lmms_eval(
    python: Callable[..., subprocess.CompletedProcess[str]],
    folder: Path,
    *arguments: str,
    **environment: Any,
) -> Ended:
    """Run one of our tasks with the oracle, and these further ``arguments``, which have
    precedence.
    """
    output = folder / "out"
    model = ("--model", "medtasks_baseline", "--model_args", "policy=oracle")
    given = ("--tasks", TASK, *model, "--output_path", str(output), *arguments)
    done = python("-m", "lmms_eval", *given, **environment)
    return Ended(done.returncode, done.stdout, done.stderr, output)
