"""Interpreters that start at once: forks of a process that has imported torch and the other large libraries already.

A process that runs the harness spends ten seconds importing what nobody here wrote. ``warm.py NAME.socket`` imports
that once and forks for every client; ``warm.py`` with an interpreter's arguments (``-m``, ``-c``, a script, ``-``) is
such a client: same arguments, streams, environment, directory and exit code, a fresh lmms-eval and medtasks. Variables
that the libraries read while they are imported are the server's.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import types
from pathlib import Path

LIBRARIES = (
    "torch",
    "torchvision",
    "evaluate",
    "accelerate",
    "openai",
    "peft",
    "av",
    "duckdb",
    "pyarrow.parquet",
    "matplotlib.figure",
    "sacrebleu",
    "scipy.stats",
    "tenacity",
    "typer",
    "rich.table",
    "jinja2",
    "nltk.stem",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.processing_auto",
)


def client(place: str, arguments: list[str]) -> int:
    """The exit code of a fork with these arguments."""
    request = json.dumps({"arguments": arguments, "environment": dict(os.environ), "directory": str(Path.cwd())})
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(place)
        socket.send_fds(server, [len(request.encode()).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(request.encode())
        answers = server.makefile()
        child = int(answers.readline())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: os.kill(child, number))
        code = int(answers.readline())
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no other
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def serve(place: str) -> None:
    """Fork for every client, until standard input ends."""
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        print("listening", flush=True)
        signal.signal(signal.SIGCHLD, reap)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                relay(connection)
                return
            connection.close()


def reap(number: int, frame: object) -> None:  # noqa: ARG001
    """Forget the forks that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def relay(connection: socket.socket) -> None:
    """Fork the client's process, tell its id and its exit code, and end it if the client goes."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    request = json.loads(connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL))
    if child := os.fork():
        threading.Thread(target=tell_end, args=(connection, child)).start()
        for stream in streams:
            os.close(stream)
        connection.recv(1)  # ends when the client does
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os._exit(1)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    become(**request)


def tell_end(connection: socket.socket, child: int) -> None:
    connection.sendall(f"{child}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(f"{code}\n".encode())
    os._exit(0)


def become(arguments: list[str], environment: dict[str, str], directory: str) -> None:
    """Run what an interpreter with these arguments would."""
    atexit.register(gc.unfreeze)  # or what triton leaves would be reported
    os.chdir(directory)
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(environment)
    added = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*added, *(path for path in sys.path[1:] if path not in before)]
    kind, *rest = arguments
    if kind == "-m":
        sys.path.insert(0, directory)
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind in ("-c", "-"):
        code = rest.pop(0) if kind == "-c" else sys.stdin.read()
        sys.path.insert(0, "")
        sys.argv = [kind, *rest]
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.path.insert(0, str(Path(kind).parent))
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    given = sys.argv[1:]
    if not given[0].startswith("-") and len(given) == 1 and given[0].endswith(".socket"):
        serve(given[0])
    elif given[0] in ("-m", "-c", "-") or not given[0].startswith("-"):
        sys.exit(client(os.environ["MEDTASKS_WARM"], given))
    else:
        os.execv(sys.executable, [sys.executable, *given])
