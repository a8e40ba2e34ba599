"""The same bytes from one process and from several, through the harness's own command line.

``accelerate launch --cpu --num_processes N`` starts one process only (accelerate 1.15), whatever N
is. Without GPUs, several are started by torchrun, the way the README says, or by ``accelerate
launch --multi_gpu``.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from runs import Run, baseline, random_vlm

TASKS = ["kvasir_vqa_x1_level3", "mi_cxr_icr", "mi_cxr_stagewise_icr", "mi_cxr_icr_sampled", "med_cmr_mcq",
         "medstreambench"]  # fmt: skip
pytestmark = pytest.mark.slow


def run_on_two_nodes(folder: Path, *arguments: str) -> Run:
    """A run with a launcher for each node, which has a home, caches and a working directory of its
    own.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def launched(number: int) -> subprocess.CompletedProcess[str]:
        node = folder / f"node{number}"
        own = {
            name: str(node / name)
            for name in ("HOME", "HF_HOME", "XDG_CACHE_HOME", "MEDTASKS_CACHE")
        }
        (node / "HOME").mkdir(parents=True)
        launcher = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "2", "--num_processes", "2",
                    "--machine_rank", str(number), "--main_process_ip", "127.0.0.1", "--main_process_port", port,
                    "--num_cpu_threads_per_process", "1"]  # fmt: skip
        return subprocess.run(
            [sys.executable, *launcher, "-m", "lmms_eval", *arguments, "--output_path", "output"],
            capture_output=True,
            text=True,
            cwd=node,
            env={**os.environ, **own, "ACCELERATE_USE_CPU": "true"},
            check=False,
        )

    with ThreadPoolExecutor(2) as both:
        done = list(both.map(launched, range(2)))
    assert [node.returncode for node in done] == [0, 0], done[0].stderr[-3000:]
    (finished,) = folder.rglob("*_medtasks")
    return Run(finished)


def test_a_model_on_two_nodes_gives_the_same_bytes(tmp_path: Path, one_process: Run) -> None:
    asked = (
        "--model",
        "medtasks_vlm",
        "--model_args",
        random_vlm(),
        "--gen_kwargs",
        "max_new_tokens=8",
    )
    several = run_on_two_nodes(tmp_path, *asked, "--tasks", ",".join(TASKS))
    assert several.manifest["processes"] == 2
    assert several.files() == one_process.files()
    assert several.manifest["model"] == one_process.manifest["model"]
    one, two = one_process.manifest["usage"], several.manifest["usage"]
    for counted in ("samples", "prompt_tokens", "vision_tokens", "output_tokens"):
        assert two[counted] == one[counted] == sum(task[counted] for task in two["tasks"].values())
    assert two["seconds"] < two["process_seconds"] <= 2 * two["seconds"]
    assert 0 < two["reused_tokens"] < two["prompt_tokens"]
    assert 0 < two["time_to_first_answer"] <= two["seconds"]


def test_fewer_documents_than_processes_give_the_same_bytes(python: Any, tmp_path: Path) -> None:
    tasks = ["kvasir_vqa_x1", "mi_cxr_gts", "med_cmr_open", "medstreambench"]
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    asked = (
        "--model",
        "medtasks_baseline",
        "--model_args",
        "policy=uniform",
        "--tasks",
        ",".join(tasks),
    )
    output = ("--limit", "1", "--output_path", str(tmp_path / "two"))
    done = python(*launcher, "-m", "lmms_eval", *asked, *output, ACCELERATE_USE_CPU="true")
    # torch may abort a process while the interpreter ends, after the folder was written; that
    # folder still counts
    aborted_at_exit = "terminate called without an active exception" in done.stderr
    assert done.returncode == 0 or aborted_at_exit, done.stderr[-3000:]
    (folder,) = (tmp_path / "two").rglob("*_medtasks")
    two = Run(folder)
    assert two.manifest["processes"] == 2, done.stdout[-3000:]
    assert two.files() == baseline("uniform", tasks, tmp_path / "one", limit=1).files()


def test_each_picture_is_decoded_once(one_process: Run) -> None:
    tasks = one_process.manifest["tasks"]
    distinct = {
        medium for task in tasks for line in one_process.samples(task) for medium in line["media"]
    }
    assert int((one_process.folder.parent.parent / "decoded").read_text()) <= len(distinct)


@pytest.fixture(scope="module")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> Run:
    from medtasks.data.media.images import IMAGES
    from medtasks.harness import run_tasks

    output = tmp_path_factory.mktemp("one")
    before = IMAGES.misses
    folder = run_tasks("medtasks_vlm", random_vlm(), TASKS, output, gen_kwargs="max_new_tokens=8")
    (output / "decoded").write_text(str(IMAGES.misses - before))
    return Run(folder)
