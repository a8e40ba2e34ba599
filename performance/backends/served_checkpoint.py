"""A checkpoint behind an OpenAI-compatible server on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STARTING = 1800
"""Seconds that the server may take to start: machines may be busy."""


@contextmanager
def served(checkpoint: Path) -> Iterator[str]:
    """The address of `transformers serve` with the checkpoint, on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = (sys.executable, "-m", "transformers.cli.transformers", "serve", str(checkpoint))
    options = ("--host", "127.0.0.1", "--port", port, "--device", "cpu")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*command, *options], env=environment, **quiet)
    try:
        end = time.monotonic() + STARTING
        while server.poll() is None and time.monotonic() < end:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        else:
            raise SystemExit(
                "`transformers serve` did not start: pip install 'transformers[serving]'"
            )
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()
