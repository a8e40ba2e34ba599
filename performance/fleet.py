"""``medtasks_ray`` on a local Ray cluster of several nodes, with a back-end that sleeps instead of
computing.

    scaling     answers/s of 1, 2 and 4 replicas against the ideal, and with one of four replicas
                four times slower: units taken by idle replicas, against static shares
    driver      requests/s with a back-end that answers at once, with and without pictures
    kills       random kills (SIGKILL) of replicas, nodes and the command: no answer on disk is
                lost or asked for again, and the result is that of a run that was not killed

Work is Kvasir-shaped: 24 questions about each picture of 720 × 576. Each run is a command in a
process of its own, with storing and scoring; answers/s are those of its manifest, from the first
request to the last answer on disk.

    python performance/fleet.py [scaling] [driver] [kills] [--kills 30] [--seed 0]

Exits with 1 if an answer was lost or asked for again, or a result differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from fleet_command import MOST, REQUESTS, SECONDS, SLOWER, UNIT, cluster, command, seconds_of
from fleet_kills import kills
from memory import prepared
from yardstick import speed


def scaling(work: Path) -> None:
    """Print answers/s by number of replicas, and with a slow one."""
    data = prepared(work / "scaling", REQUESTS)
    print(f"\n{REQUESTS} requests of {SECONDS} s\n")
    print("| replicas | shares | s | answers/s | ideal | of ideal |")
    print("|---|---|---:|---:|---:|---:|")
    slower = f"{MOST}, one {SLOWER} times slower"
    ideal_with_slower = (MOST - 1 + 1 / SLOWER) / SECONDS
    for replicas in (1, 2, 4):
        with cluster(replicas) as ray_cluster:
            units = f"replicas={replicas},unit_tokens={UNIT},address={ray_cluster.address}"
            arguments = f"seconds={SECONDS},{units}"
            seconds = seconds_of(work / f"{replicas}", data, arguments)
            print_row(str(replicas), "units", seconds, replicas / SECONDS)
            if replicas == MOST:
                arguments += f",slow={work}/claimed"
                seconds = seconds_of(work / "slow", data, arguments)
                print_row(slower, "units", seconds, ideal_with_slower)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(MOST))
    static = f"seconds={SECONDS},slow={work}/claimed-too"
    seconds = seconds_of(work / "static", data, static, launcher, ACCELERATE_USE_CPU="true")
    print_row(slower, "static", seconds, ideal_with_slower)


def print_row(replicas: str, shares: str, seconds: float, ideal: float) -> None:
    rate = REQUESTS / seconds
    cells = [replicas, shares, f"{seconds:.2f}", f"{rate:.1f}", f"{ideal:.1f}"]
    print(f"| {' | '.join(cells)} | {rate / ideal:.3f} |", flush=True)


def driver(work: Path) -> None:
    """Print requests/s of the command, with replicas that answer at once."""
    requests = 16_022
    data = prepared(work / "driver", requests)
    rates = "requests/s | CPU s of the command | requests per CPU s"
    print(f"\n| {requests:,} requests | replicas | s | {rates} |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, blind in (("without pictures", "1"), ("668 pictures", "0")):
        for replicas in (1, 2):
            output = work / f"driver-{blind}-{replicas}"
            arguments = f"replicas={replicas},cpus=0.5"
            command(output, data, arguments, how="--asking", MEDTASKS_BLIND=blind).wait()
            seconds, cpu = json.loads((output / "printed").read_text().splitlines()[-1])
            times = f"{seconds:.2f} | {requests / seconds:,.0f} | {cpu:.2f} | {requests / cpu:,.0f}"
            print(f"| {name} | {replicas} | {times} |", flush=True)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["scaling", "driver", "kills"])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(speed())
    with tempfile.TemporaryDirectory(prefix="medtasks-fleet-") as folder:
        if "scaling" in options.parts:
            scaling(Path(folder))
        if "driver" in options.parts:
            driver(Path(folder))
        if "kills" not in options.parts:
            return 0
        return int(not kills(Path(folder), options.kills, options.seed))


if __name__ == "__main__":
    sys.exit(main())
