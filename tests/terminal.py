"""A command on a pseudo-terminal, whose questions a test answers."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class Terminal:
    """Runs a command whose standard input and error are a terminal; a context manager."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        self._screen = bytearray()
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=subprocess.DEVNULL,
            stderr=slave,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # with the processes that it started
        self.process.wait()
        self._reader.join()
        os.close(self._master)

    @property
    def text(self) -> str:
        """What the terminal shows, with single blanks."""
        return " ".join(self._screen.decode(errors="replace").split())

    def wait_for(self, text: str) -> None:
        """Wait until the terminal shows ``text``."""
        deadline = time.monotonic() + 300
        while text not in self.text:
            is_over = self.process.poll() is not None or time.monotonic() > deadline
            assert not is_over, f"{text!r} is not in {self.text[-3000:]!r}"
            time.sleep(0.05)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ends(self) -> int:
        """The exit code, once the command has ended."""
        code = self.process.wait(timeout=300)
        self._reader.join()
        return code

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._master, 4096)
            except OSError:  # the command has closed the terminal
                return
            if not part:
                return
            self._screen += part
