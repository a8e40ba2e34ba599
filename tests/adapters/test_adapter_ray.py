"""``medtasks_ray``: units, replicas on two nodes, deaths of replicas, nodes and the command, and
its refusals.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_bench import Bench, texts
from medtasks.adapters._base import MedtasksAdapter
from medtasks.adapters._ray_units import units_of
from medtasks.adapters._requests import ChatRequest, read_requests
from medtasks.adapters.ray import MedtasksRay

from medtasks.harness import run_tasks
from medtasks.runs.replies import Reply
from medtasks.scoring.run_folder import read_manifest


def documents(count: int, *, pictures: int = 1) -> list[dict[str, Any]]:
    return [
        {"sample_id": f"m{i}", "target": "ABCDE"[i % 5], "choices": dict.fromkeys("ABCDE", "x"), "abstention": "E",
         "media": [f"{i // pictures}.png"]}
        for i in range(count)
    ]  # fmt: skip


def plain(doc: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": doc["sample_id"]}]}]


class Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


LONGEST = 100
"""Seconds after which a replica that waits for others fails its request."""


class Together(MedtasksAdapter):
    """Answers with its process; all requests but that of ``m0`` wait until ``count`` processes are
    answering.

    Each process leaves an empty file in ``folder`` when it is made, and one when it answers.
    """

    def __init__(self, folder: str, count: int) -> None:
        super().__init__()
        self._folder, self._count = Path(folder), count
        (self._folder / f"made-{os.getpid()}").touch()

    def describe(self) -> dict[str, Any]:
        return {"model": "together"}

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        return [self._reply(request) for request in requests]

    def _reply(self, request: ChatRequest) -> Reply:
        until = time.monotonic() + LONGEST
        request.messages(self.task_dict)
        if request.sample_id != "m0":
            (self._folder / f"answering-{os.getpid()}").touch()
            while len(list(self._folder.glob("answering-*"))) < self._count:
                if time.monotonic() > until:
                    raise TimeoutError("no other replica got work")
                time.sleep(0.05)
        return Reply(str(os.getpid()))


class Slow(MedtasksAdapter):
    """Answers with the id of the sample, after a while; each process leaves an empty file in
    ``folder``.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        Path(folder, str(os.getpid())).touch()

    def describe(self) -> dict[str, Any]:
        return {"model": "slow"}

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        time.sleep(0.3)
        return [Reply(request.sample_id) for request in requests]


NODE = {"num_cpus": 2, "object_store_memory": 10**8}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of one node; tests add others. Starting Ray takes longer than most of what is
    tested.
    """
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", str(Path(__file__).parent)
        )  # of Ray's processes, which import `Together`
        made = Cluster(initialize_head=True, head_node_args=NODE)
        yield made
        made.shutdown()


@pytest.fixture
def ray_model(bench: Bench, cluster: Any) -> Iterator[Any]:
    """Create a back-end of a baseline on the cluster, which looks at the test's task dictionary."""
    import ray

    def create(**arguments: Any) -> MedtasksRay:
        model = MedtasksRay(**{"engine": "baseline", "address": cluster.address, **arguments})
        model.task_dict = bench.task_dict
        return model

    yield create
    ray.shutdown()


def test_units_have_shared_pictures_and_a_limit(bench: Bench) -> None:
    requests = read_requests(bench.task("t", documents(12, pictures=3), plain), bench.task_dict)
    together = units_of(requests, 10**6)
    assert [len(unit.requests) for unit in together] == [12]
    assert together[0].cost == 4 * 1_024 + 12 * 512  # each picture once
    by_picture = units_of(requests[::-1], 1_024 + 3 * 512)
    assert sorted(tuple(one.sample_id for one in unit.requests) for unit in by_picture) == [
        ("m0", "m1", "m2"), ("m10", "m11", "m9"), ("m3", "m4", "m5"), ("m6", "m7", "m8")
    ]  # fmt: skip
    alone = units_of(requests, 1)
    assert [len(unit.requests) for unit in alone] == [1] * 12
    for_many_replicas = units_of(requests, 10**6, 4)
    assert [len(unit.requests) for unit in for_many_replicas] == [3] * 4
    rows = documents(3)
    rows[1]["media"] = [f"{number}.png" for number in range(5)]
    longest_first = units_of(read_requests(bench.task("t", rows, plain), bench.task_dict), 1)
    assert [unit.requests[0].sample_id for unit in longest_first] == ["m1", "m0", "m2"]


@pytest.mark.slow
def test_a_request_that_kills_its_replicas_fails_and_the_others_are_answered(
    bench: Bench, ray_model: Any, tmp_path: Path
) -> None:
    def messages(doc: dict[str, Any]) -> list[dict[str, Any]]:
        content = Deadly() if doc["sample_id"] == "m3" else "text"
        return [{"role": "user", "content": content}]

    def broken(doc: dict[str, Any]) -> list[dict[str, Any]]:
        raise ValueError(f"no picture for {doc['sample_id']}")

    requests = [
        *bench.task("t", documents(6), messages),
        *bench.task("broken", documents(1), broken),
    ]
    model = ray_model(
        engine="test_adapter_ray.Together", unit_tokens=1, folder=str(tmp_path), count=1
    )
    failed = [answer.failed for answer in model.replies(requests)]
    assert [bool(reason) for reason in failed] == [False, False, False, True, False, False, True]
    assert failed[3].startswith("3 replicas died while they answered it")
    assert failed[6] == "ValueError: no picture for m0"
    assert all(texts(model.replies(requests[:3])))  # a replica was started again


@pytest.mark.slow
def test_an_interrupted_stream_leaves_no_reply_to_the_next_one(
    bench: Bench, ray_model: Any, tmp_path: Path
) -> None:
    requests = bench.task("t", documents(60), plain)
    model = ray_model(
        engine="test_adapter_ray.Slow", unit_tokens=1, replicas=2, folder=str(tmp_path)
    )
    interrupted = model.stream(requests)
    while len(list(tmp_path.iterdir())) < 2:
        next(interrupted)
    for _ in range(4):  # both replicas have work now, and one is not done
        next(interrupted)
    interrupted.close()
    assert texts(model.replies(requests[:4][::-1])) == ["m3", "m2", "m1", "m0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicas": 0}, "`replicas` is 0, expected a number of at least 1."),
        (
            {"engine": "vlm2"},
            "`engine` is 'vlm2', expected vlm, vllm, baseline, or a class as package.module.Class",
        ),
        ({"engine": "json.Nothing"}, "module 'json' has no attribute 'Nothing'"),
        ({"engine": "json.JSONDecoder"}, "expected a subclass of MedtasksAdapter"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    arguments: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        MedtasksRay(**arguments)
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert message in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "nonsense"}, "policy is 'nonsense'"),
        (
            {"cpus": 10_000, "replicas": "2", "address": None},
            "2 replicas of 0 GPUs and 10000 cores do not fit on this machine",
        ),
        ({"address": "127.0.0.1:9"}, "no Ray cluster answers at address=127.0.0.1:9"),
    ],
)
def test_what_cannot_start_is_one_sentence(
    arguments: dict[str, Any],
    message: str,
    ray_model: Any,
    cluster: Any,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if (
        None in arguments.values()
    ):  # the cluster is this machine, as it is for a program that has started Ray
        import ray

        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    with pytest.raises(SystemExit):
        ray_model(**arguments)
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert message in line


@pytest.mark.slow
def test_a_run_starts_with_one_replica_and_others_join_as_the_cluster_grows(
    cluster: Any, ray_model: Any, bench: Bench, tmp_path: Path
) -> None:
    model = ray_model(
        engine="test_adapter_ray.Together",
        replicas="2",
        cpus=2,
        unit_tokens=1,
        folder=str(tmp_path),
        count=2,
    )
    arrived = []
    for finished in model.stream(bench.task("t", documents(8), plain)):
        if not arrived:
            assert len(list(tmp_path.glob("made-*"))) == 1
            cluster.add_node(**NODE)
        arrived += finished
    assert sorted(position for position, _ in arrived) == list(range(8))
    assert len({response.text for _, response in arrived}) == 2


COMMAND = """
import os, runpy, signal, sys, threading, time
from pathlib import Path
import medtasks.adapters.ray as ours

ours.HEAD_EVERY = 0.1
output, arguments, victim = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def kill():
    import psutil

    before = stored()
    while stored() == before:
        time.sleep(0.02)
    if victim == "command":
        os.kill(os.getpid(), signal.SIGKILL)
    for child in psutil.Process().children(recursive=True):
        if child.name() == victim:
            child.kill()
    ours.HEAD_SILENT = 0.3

def stored():
    return sum(path.stat().st_size for path in output.glob("*/*_unfinished/*.jsonl"))

if victim != "nobody":
    threading.Thread(target=kill, daemon=True).start()
sys.argv = ["lmms_eval", "--model", "medtasks_ray", "--model_args", arguments, "--tasks", "med_cmr_mcq"]
sys.argv += ["--output_path", str(output)]
runpy.run_module("lmms_eval", run_name="__main__")
"""


@pytest.mark.slow
def test_deaths_of_the_head_the_command_and_a_node_lose_nothing(
    cluster: Any, warm_python: Any, tmp_path: Path
) -> None:
    output = tmp_path / "fleet"
    given = "pretrained=tiny,device=cpu,unit_tokens=1"

    def stored() -> int:
        return sum(path.read_text().count("\n") for path in output.glob("*/*_unfinished/*.jsonl"))

    headless = warm_python("-c", COMMAND, str(output), given, "gcs_server")
    assert headless.returncode == 1, headless.stderr[-3000:]
    sentence = headless.stderr.strip().splitlines()[-1]
    assert (
        "the head of the Ray cluster does not answer; start the cluster again (replies are in "
        in sentence
    )
    kept = [stored()]
    killed = warm_python(
        "-c", COMMAND, str(output), f"{given},address={cluster.address}", "command"
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    kept.append(stored())
    assert 0 < kept[0] < kept[1] < 43

    node = next(iter(cluster.worker_nodes), None) or cluster.add_node(**NODE)
    removed = threading.Event()

    def remove() -> None:
        while stored() == kept[1]:
            time.sleep(0.02)
        cluster.remove_node(node, allow_graceful=False)
        removed.set()

    threading.Thread(target=remove, daemon=True).start()
    again = f"{given},replicas=2,cpus=2,address={cluster.address}"
    finished = warm_python("-c", COMMAND, str(output), again, "nobody")
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert removed.is_set()
    # requests, time left, answers/s and replicas in one place
    bar = r"medtasks_ray: +100%.*?/(\d+) \[[\d:]+<[\d:]+, .*?(?:sample/s|s/sample), replicas=\d\]"
    assert set(re.findall(bar, finished.stderr)) == {str(43 - kept[1])}

    (fleet,) = output.rglob("*_medtasks")
    alone = run_tasks(
        "medtasks_vlm", "pretrained=tiny,device=cpu", ["med_cmr_mcq"], tmp_path / "alone"
    )
    names = sorted(path.name for path in (alone / "samples").iterdir())
    assert names == sorted(path.name for path in (fleet / "samples").iterdir())
    for name in names:
        assert (alone / "samples" / name).read_bytes() == (fleet / "samples" / name).read_bytes()
    assert (alone / "scores.json").read_bytes() == (fleet / "scores.json").read_bytes()
    assert read_manifest(fleet).model["cluster"]["replicas"] == "2"
