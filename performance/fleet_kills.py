"""Random kills (SIGKILL) of replicas, nodes and the command on a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet_command import NODE, REQUESTS, SECONDS, UNIT, cluster, command, result, seconds_of
from kill_outcome import Outcome, contents, differing
from memory import prepared

from medtasks.runs.find import run_folders
from medtasks.runs.unfinished import read_answers
from medtasks.scoring.run_folder import read_manifest


@dataclass
class Kills(Outcome):
    """A command that is started again until it has finished, on a cluster whose nodes are
    replaced.
    """

    work: Path
    data: Path
    nodes: Any
    draw: random.Random

    def start(self) -> None:
        """Start the command, or start it again."""
        work = f"seconds={SECONDS / 2},replicas=3,unit_tokens={UNIT}"
        arguments = f"{work},log={self.log},address={self.nodes.address}"
        self._process = command(self.output, self.data, arguments)

    @property
    def output(self) -> Path:
        return self.work / f"killed-{self.finished}"

    @property
    def log(self) -> Path:
        return self.work / f"asked-{self.finished}"

    def asked(self) -> list[list[str]]:
        """Sample and process of each request that reached a replica."""
        if not self.log.exists():
            return []
        return [line.split() for line in self.log.read_text().splitlines()]

    def stored(self) -> set[str]:
        """Samples whose answer is on disk."""
        samples = set()
        for folder in self.output.rglob("*_unfinished"):
            for answer in read_answers(folder):
                if answer.reply.failed is None:
                    samples.add(answer.reply.text)
        return samples

    def run_once(self, most: int, expected: dict[str, Any]) -> None:
        """Run the command until it has finished, with at most so many kills."""
        self.start()
        moments: list[tuple[set[str], int]] = []
        while True:
            self._wait(most)
            stored = self.stored()
            if self._process.poll() is None and self.kills.total() < most:
                moments.append((stored, len(self.asked())))
                self._kill()
                if not run_folders(self.output):
                    self.lost += len(stored - self.stored())
                    if self._process.poll() is not None:
                        self.start()
                    continue
            self._process.wait()
            manifest = read_manifest(result(self.output))
            if not any(facts.failed for facts in manifest.tasks.values()):
                break
            self.start()  # three replicas were killed while they answered the same unit
        asked = [sample for sample, _ in self.asked()]
        self.again += sum(len(on_disk & set(asked[position:])) for on_disk, position in moments)
        self.in_flight += len(asked) - len(set(asked))
        self.lost += REQUESTS - len(set(asked))
        self.differing += differing(expected, contents(self.output))
        self.finished += 1

    def _wait(self, most: int) -> None:
        """Until a random moment, or the end of the command."""
        if self.kills.total() == most:
            self._process.wait()
            return
        if self.draw.random() < 0.75:  # while requests are answered
            before = len(self.asked())
            while len(self.asked()) == before and self._process.poll() is None:
                time.sleep(0.02)
        until = time.monotonic() + self.draw.uniform(0, 5)
        while time.monotonic() < until and self._process.poll() is None:
            time.sleep(0.02)

    def _kill(self) -> None:
        what = self.draw.choice(("replica", "node", "command"))
        replicas = [int(process) for _, process in self.asked()[-10:]]
        if what == "replica" and replicas:
            with contextlib.suppress(ProcessLookupError):  # killed before, and not replaced yet
                os.kill(self.draw.choice(replicas), signal.SIGKILL)
                self.kills[what] += 1
        elif what == "node":
            nodes = sorted(self.nodes.worker_nodes, key=lambda node: str(node.unique_id))
            self.nodes.remove_node(self.draw.choice(nodes), allow_graceful=False)
            self.nodes.add_node(**NODE)
            self.kills[what] += 1
        elif what == "command":
            self._process.kill()
            self._process.wait()
            self.kills[what] += 1


def kills(work: Path, count: int, seed: int) -> bool:
    """Print the outcome of ``count`` kills; whether nothing was lost, asked again, or different."""
    data = prepared(work / "kills", REQUESTS)
    seconds_of(work / "whole", data, "replicas=1")
    expected = contents(work / "whole")
    with cluster(3) as nodes:
        case = Kills(work, data, nodes, random.Random(seed))
        while case.kills.total() < count:
            case.run_once(count, expected)
    print(
        f"\n{count} kills, seed {seed}: {dict(case.kills)}; {case.finished} runs finished, "
        f"{REQUESTS} requests each"
    )
    print(
        f"lost: {case.lost}; on disk and asked again: {case.again}; "
        f"in flight and asked again: {case.in_flight}; files that differ: {case.differing}"
    )
    return case.flawless
