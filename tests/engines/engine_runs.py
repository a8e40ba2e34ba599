"""Runs of four benchmarks in miniature, and the servers that answer them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TASKS = "kvasir_vqa_x1_level1,mi_cxr_tel_single,med_cmr_mcq_msi,medstreambench_future_streaming"
KINDS = {
    "vllm serve": (
        *("-m", "vllm.entrypoints.cli.main", "serve"),
        *("--dtype", "float32", "--enforce-eager", "--block-size", "32"),
        *("--max-model-len", "16384", "--limit-mm-per-prompt", '{"image": 64}'),
    ),
    "transformers serve": (
        "-m",
        "transformers.cli.transformers",
        "serve",
        "--device",
        "cpu",
        "--log-level",
        "info",
    ),
}
"""How to start each server, without the checkpoint."""
ANSWERED = '/v1/chat/completions HTTP/1.1" 200'
LONGEST = 900  # seconds; machines may be busy


@dataclass(frozen=True)
class Ended:
    """A run of the harness that ended."""

    output: Path
    returncode: int
    stderr: str

    @property
    def manifest(self) -> dict[str, Any]:
        """That of the newest result directory."""
        path = sorted(self.output.rglob("*_medtasks/manifest.json"))[-1]
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    @property
    def scores(self) -> dict[str, Any]:
        """Scores by task."""
        path = sorted(self.output.rglob("*_medtasks/scores.json"))[-1]
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["tasks"]
        return found

    def samples(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Samples by task and sample id."""
        newest = sorted(self.output.rglob("*_medtasks"))[-1]
        return {
            (row["task"], row["sample_id"]): row
            for path in newest.glob("samples/*.jsonl")
            for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        }

    def responses(self) -> dict[tuple[str, str], str]:
        """Responses by task and sample id."""
        return {name: "\n".join(row["responses"]) for name, row in self.samples().items()}

    def prompt_tokens(self) -> dict[tuple[str, int], int]:
        """Prompt tokens by task and document, as the back-end reported them; of all rounds
        together.
        """
        found = {}
        for task in TASKS.split(","):
            log = sorted(self.output.rglob(f"*_samples_{task}.jsonl"))[-1]
            for line in log.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                found[task, row["doc_id"]] = sum(
                    counts["input_tokens"] for counts in row["token_counts"]
                )
        return found


def run(model: str, arguments: Mapping[str, object], output: Path, tasks: str = TASKS) -> Ended:
    """The harness in a process of its own."""
    command = [
        sys.executable, "-m", "lmms_eval", "--model", model, "--tasks", tasks, "--output_path", str(output),
        "--gen_kwargs", "max_new_tokens=16", "--log_samples",
        "--model_args", ",".join(f"{name}={value}" for name, value in arguments.items()),
    ]  # fmt: skip
    environment = {**os.environ, "MEDTASKS_DATA": "mini", "VLLM_CPU_KVCACHE_SPACE": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return Ended(output, done.returncode, done.stderr)


class Server:
    """A server process; always on the same port of this machine, since a run is resumed at its own
    address.
    """

    def __init__(self, kind: str, checkpoint: Path, log: Path) -> None:
        self._command = [sys.executable, *KINDS[kind], str(checkpoint), "--host", "127.0.0.1"]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def answered(self) -> int:
        """Requests answered so far, over all starts, by the server's own log."""
        return self._log.read_text(encoding="utf-8", errors="replace").count(ANSWERED)

    def start(self) -> None:
        """Return once the server accepts requests."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "--port", str(self._port)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "2"},
                start_new_session=True,
            )
        end = time.monotonic() + LONGEST
        while self._process.poll() is None and time.monotonic() < end:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=5).close()
            except OSError:
                time.sleep(0.5)
            else:
                return
        self.kill()
        raise AssertionError(self._log.read_text(encoding="utf-8", errors="replace")[-4000:])

    def kill(self) -> None:
        """Kill the server with all its processes, without warning."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
