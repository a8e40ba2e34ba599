"""``python -m medtasks.judge.stub``: the stub judge in the foreground, until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from queue import SimpleQueue

from medtasks.judge.stub.server import StubJudge


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve, and print one line with the base URL as soon as requests are accepted."""
    parser = argparse.ArgumentParser(
        prog="python -m medtasks.judge.stub",
        description="A stub judge on loopback with OpenAI's chat API. "
        "Its verdicts compare words by a simple rule and have no medical meaning.",
    )
    parser.add_argument("--port", type=int, default=0, help="port (default 0: any free port)")
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="S", help="delay of every answer in seconds (default 0)"
    )
    asked = parser.parse_args(arguments)
    stopped: SimpleQueue[int] = SimpleQueue()  # its put may interrupt its get, unlike threading.Event's set
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stopped.put(received))
    try:
        with StubJudge(port=asked.port, latency=asked.latency, keep_requests=False) as stub:
            print(stub.url, flush=True)
            stopped.get()
    except (OSError, OverflowError) as error:
        parser.error(f"port {asked.port} cannot be used ({error}); choose another, or 0 for any free port")


if __name__ == "__main__":
    main()
