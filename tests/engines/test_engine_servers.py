"""The harness's ``async_openai`` against real servers: ``vllm serve`` and ``transformers serve`` on
this machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_runs import KINDS, Ended, Server, run

pytestmark = pytest.mark.slow

IN_FLIGHT = 4


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    if request.param == "vllm serve":
        pytest.importorskip("vllm", reason="vllm serve is installed by .ci/engines")
    else:
        for module in ("fastapi", "uvicorn"):
            pytest.importorskip(
                module, reason="transformers serve needs pip install 'transformers[serving]'"
            )
    server = Server(request.param, checkpoint, tmp_path_factory.mktemp("server") / "log")
    server.start()
    yield server
    server.kill()


def ask(server: Server, checkpoint: Path, output: Path) -> Ended:
    given = {"model": checkpoint, "base_url": server.url, "api_key": "none", "num_cpus": IN_FLIGHT}
    return run("async_openai", {**given, "timeout": 600, "max_retries": 1}, output)


@pytest.fixture(scope="module")
def undisturbed(
    server: Server, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Ended, int]:
    """A run, and the number of its requests."""
    ended = ask(server, checkpoint, tmp_path_factory.mktemp("undisturbed"))
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended, server.answered


def test_all_pictures_and_frames_reach_the_server(
    undisturbed: tuple[Ended, int], by_transformers: Ended
) -> None:
    """The server counts as many prompt tokens as ``medtasks_vlm``, picture tokens included, and
    answers alike, but for blanks at the beginning: ``transformers serve`` removes them.
    """
    ended, _ = undisturbed
    assert not any(facts["failed"] for facts in ended.manifest["tasks"].values())
    assert ended.prompt_tokens() == by_transformers.prompt_tokens()
    ours, theirs = ended.responses(), by_transformers.responses()
    assert ours.keys() == theirs.keys()
    assert sum(ours[key].strip() == theirs[key].strip() for key in ours) > 0.8 * len(ours)


def test_a_killed_server_ends_the_run_which_the_same_command_continues(
    undisturbed: tuple[Ended, int], server: Server, checkpoint: Path, tmp_path: Path
) -> None:
    whole, total = undisturbed
    ended: list[Ended] = []
    harness = threading.Thread(target=lambda: ended.append(ask(server, checkpoint, tmp_path)))
    harness.start()
    while harness.is_alive() and server.answered < total + total // 2:
        time.sleep(0.05)
    server.kill()
    harness.join()
    assert ended[0].returncode == 1
    assert "did not reach the server" in ended[0].stderr
    assert "repeat the command to continue" in ended[0].stderr

    server.start()
    again = ask(server, checkpoint, tmp_path)
    assert again.returncode == 0, again.stderr[-4000:]
    assert total <= server.answered - total <= total + IN_FLIGHT
    assert again.responses().keys() == whole.responses().keys()
    assert not any(one["failed"] for one in again.manifest["tasks"].values())
