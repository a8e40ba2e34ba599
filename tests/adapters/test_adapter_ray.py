"""``medtasks_ray``: units, replicas on two nodes, deaths of replicas, nodes and the command, and its refusals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from adapter_bench import Bench, texts
from medtasks.adapters._requests import read_requests
from medtasks.adapters.ray import MedtasksRay, units_of

from medtasks.harness import run_tasks
from medtasks.runs.folder import read_manifest


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


@pytest.fixture
def ray_model(bench: Bench) -> Iterator[Any]:
    """Create a back-end of two baselines, which looks at the test's task dictionary."""
    made = []

    def create(**arguments: Any) -> MedtasksRay:
        model = MedtasksRay(**{"engine": "baseline", "replicas": "2", "cpus": 0.5, **arguments})
        model.task_dict = bench.task_dict
        made.append(model)
        return model

    yield create
    for model in made:
        model.clean()
    import ray

    ray.shutdown()  # also of a back-end that could not be made


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


def test_the_longest_unit_comes_first(bench: Bench) -> None:
    rows = documents(3)
    rows[1]["media"] = [f"{number}.png" for number in range(5)]
    units = units_of(read_requests(bench.task("t", rows, plain), bench.task_dict), 1)
    assert [unit.requests[0].sample_id for unit in units] == ["m1", "m0", "m2"]


@pytest.mark.slow
def test_a_request_that_kills_its_replicas_fails_and_the_others_are_answered(bench: Bench, ray_model: Any) -> None:
    def messages(doc: dict[str, Any]) -> list[dict[str, Any]]:
        content = Deadly() if doc["sample_id"] == "m3" else "text"
        return [{"role": "user", "content": content}]

    def broken(doc: dict[str, Any]) -> list[dict[str, Any]]:
        raise ValueError(f"no picture for {doc['sample_id']}")

    requests = [*bench.task("t", documents(6), messages), *bench.task("broken", documents(1), broken)]
    model = ray_model(policy="oracle", unit_tokens=1)
    answers = model.generate_until(requests)
    assert texts(answers) == ["A", "B", "C", "", "E", "A", ""]
    assert answers[3].failed.startswith("3 replicas died while they answered it")
    assert answers[6].failed == "ValueError: no picture for m0"
    assert texts(model.generate_until(requests[:3])) == ["A", "B", "C"]  # the replicas have been started again


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicas": "8..2"}, "`replicas` is '8..2', expected a number such as 8, or a range such as 4..32."),
        ({"policy": "nonsense"}, "policy is 'nonsense'"),
        ({"engine": "vlm2"}, "`engine` is 'vlm2', expected vlm, vllm, baseline, or a class as package.module.Class."),
        ({"engine": "nowhere.Engine"}, "engine=nowhere.Engine cannot be imported on this node"),
        ({"engine": "json.JSONDecoder"}, "engine=json.JSONDecoder is not derived from"),
        ({"cpus": 10_000}, "2 replicas of 0 GPUs and 10000 cores do not fit on this machine"),
        ({"address": "auto"}, "no Ray cluster answers at address=auto"),
    ],
)
def test_what_cannot_start_is_one_sentence(
    arguments: dict[str, Any], message: str, ray_model: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        ray_model(**arguments)
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    assert message in lines[0]


@pytest.mark.slow
def test_scores_do_not_depend_on_replicas_or_on_the_death_of_a_node(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    alone = run_tasks("medtasks_vlm", "pretrained=tiny,device=cpu", ["med_cmr_mcq"], tmp_path / "alone")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 10**8})
    try:
        node = cluster.add_node(num_cpus=1, object_store_memory=10**8)
        output = tmp_path / "fleet"
        killed = threading.Event()

        def kill() -> None:
            while not any(path.stat().st_size for path in output.rglob("*_unfinished/*.jsonl")):
                time.sleep(0.02)
            cluster.remove_node(node, allow_graceful=False)
            killed.set()

        threading.Thread(target=kill, daemon=True).start()
        arguments = f"pretrained=tiny,device=cpu,replicas=2,unit_tokens=1,address={cluster.address}"
        fleet = run_tasks("medtasks_ray", arguments, ["med_cmr_mcq"], output)
        assert killed.is_set()
    finally:
        cluster.shutdown()
    names = sorted(path.name for path in (alone / "samples").iterdir())
    assert names == sorted(path.name for path in (fleet / "samples").iterdir())
    for name in names:
        assert (alone / "samples" / name).read_bytes() == (fleet / "samples" / name).read_bytes()
    assert (alone / "scores.json").read_bytes() == (fleet / "scores.json").read_bytes()
    assert read_manifest(fleet).model["cluster"]["replicas"] == "2"


@pytest.mark.slow
def test_a_run_starts_with_the_least_replicas_and_others_join_as_the_cluster_grows(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    room = {"num_cpus": 1, "object_store_memory": 10**8}
    cluster = Cluster(initialize_head=True, head_node_args=room)

    def made() -> int:
        return len(list(tmp_path.glob("made-*")))

    arguments = {"replicas": "2..3", "cpus": 1, "unit_tokens": 1, "folder": str(tmp_path), "count": 3}
    try:
        with ThreadPoolExecutor(1) as apart:
            starting = apart.submit(MedtasksRay, engine="together.Together", address=cluster.address, **arguments)
            while made() < 1 and not starting.done():
                time.sleep(0.05)
            cluster.add_node(**room)
            model = starting.result()
        model.task_dict = bench.task_dict
        assert made() == 2
        arrived = []
        for finished in model.stream(bench.task("t", documents(8), plain)):
            if not arrived:
                cluster.add_node(**room)
                cluster.add_node(**room)
            arrived += finished
        assert sorted(position for position, _ in arrived) == list(range(8))
        assert len({response.text for _, response in arrived}) == made() == 3
    finally:
        ray.shutdown()
        cluster.shutdown()


COMMAND = """
import sys
from pathlib import Path
from medtasks.harness import run_tasks
run_tasks("medtasks_ray", "pretrained=tiny,device=cpu,replicas=1,unit_tokens=1", ["med_cmr_mcq"], Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_killed_command_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", COMMAND, str(tmp_path)], stderr=subprocess.PIPE, text=True)

    first = start()
    while not any(path.stat().st_size for path in tmp_path.rglob("*_unfinished/*.jsonl")):
        assert first.poll() is None, first.communicate()[1]
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = sum(len(path.read_text().splitlines()) for path in tmp_path.rglob("*_unfinished/*.jsonl"))
    second = start()
    _, printed = second.communicate()
    assert second.returncode == 0, printed
    # requests, time left, answers/s and replicas in one place
    shown = re.findall(r"medtasks_ray: +100%.*?/(\d+) \[[\d:]+<[\d:]+, .*?(?:sample/s|s/sample), replicas=1\]", printed)
    assert {int(total) for total in shown} == {43 - kept}
