"""S5: verdicts per second of `adjudicate` against what the endpoint can give, in one run.

The stub judge runs in a process of its own: so many requests at once, each after a fixed latency. Its capacity is
measured by a bare load generator (non-blocking sockets, requests as ready bytes, nothing read but the length) with the
same number of connections and bodies of the same size, without faults. Ours is everything: prompts rendered, openai
client, verdicts validated and stored. The denominator is that capacity also where there are faults; what these cost
the endpoint itself (requests that have to be repeated, slow answers) is in the column "ceiling". "Of nominal" is the
rate over connections / latency, which no client reaches: an endpoint also needs time to read, to write and to wake up.

``--soak`` kills the judging process three times on its way through the questions and starts it anew, and checks that
nothing that was stored was asked again.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import platform
import selectors
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ.setdefault("MEDTASKS_DATA", "mini")

FAULT_RATE = 0.05
KINDS = ("too_many", "server_error", "cut", "truncated_json", "prose", "wrong_keys", "refusal", "duplicate", "slow")
RETRY_AFTER = 0.2  # seconds
BARE_SECONDS = 10
KILLS = (0.25, 0.5, 0.75)  # of the verdicts


def questions(count: int) -> Iterator[Any]:
    """Distinct responses to one document."""
    from medtasks.benchmarks.documents import task_documents
    from medtasks.judge.judgement import Question

    document = task_documents("med_cmr_open_sod")[0]
    for number in range(count):
        answer = f"Response {number}: the pattern on the image speaks for it. " * 4 + document["target"]
        yield Question(f"s{number:06}", document, answer)


def decide(_: Mapping[str, Any]) -> str:
    """The same verdict for all: the benchmark is not about it."""
    return VERDICT


def _verdict() -> str:
    from medtasks.judge.rubric import load_rubric

    aspects = load_rubric("med_cmr_open").aspects
    return json.dumps(
        {one.name: {"reason": "A sentence of ordinary length, as judges give.", "score": 3} for one in aspects}
    )


VERDICT = _verdict()


def _serve(pipe: Connection, latency: float, capacity: int, faulty: bool) -> None:
    from medtasks.judge.stub import Faults, StubJudge

    rates: dict[str, Any] = dict.fromkeys(KINDS, FAULT_RATE / len(KINDS)) if faulty else {}
    faults = Faults(**rates, retry_after=RETRY_AFTER)
    with StubJudge(decide, latency=latency, capacity=capacity, faults=faults) as stub:
        pipe.send(stub.url)
        while pipe.recv() is not None:
            asked = [(one.body["messages"][0]["content"], len(one.body["messages"])) for one in stub.requests]
            pipe.send((dict(stub.counts), asked))
            stub.reset()


class Stub:
    """The stub's process: its address, and what it was asked since the last question about it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.url: str = pipe.recv()

    def asked(self) -> tuple[dict[str, int], list[tuple[str, int]]]:
        """Outcomes counted, and (prompt, number of messages) of each request; forgotten then."""
        self._pipe.send("asked")
        answer: tuple[dict[str, int], list[tuple[str, int]]] = self._pipe.recv()
        return answer


@contextmanager
def stub(latency: float, capacity: int, *, faulty: bool) -> Iterator[Stub]:
    """A stub judge in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, latency, capacity, faulty))
    process.start()
    try:
        yield Stub(here)
    finally:
        here.send(None)
        process.join()


def bare(url: str, body: bytes, count: int, connections: int) -> float:
    """Answers per second of the endpoint, asked with the least that HTTP takes."""
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body) + 6}\r\n\r\n".encode()
    begun = finished = 0

    def ask(connection: socket.socket) -> None:
        nonlocal begun
        connection.sendall(head + body.replace(b"@", b"%07d" % begun))
        begun += 1

    ready = selectors.DefaultSelector()
    for _ in range(connections):
        ready.register(socket.create_connection((host, int(port))), selectors.EVENT_READ, bytearray())
    started = time.perf_counter()
    for key in list(ready.get_map().values()):
        ask(key.fileobj)  # type: ignore[arg-type]
    while finished < count:
        for key, _ in ready.select():
            connection, got = key.fileobj, key.data
            got += connection.recv(2**16)  # type: ignore[union-attr]
            end = got.find(b"\r\n\r\n")
            if end < 0:
                continue
            length = int(got[: end + 2].lower().split(b"content-length:")[1].split(b"\r\n")[0])
            if len(got) == end + 4 + length:
                got.clear()
                finished += 1
                if begun < count:
                    ask(connection)  # type: ignore[arg-type]
    took = time.perf_counter() - started
    for key in list(ready.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    return count / took


def body_like_ours() -> bytes:
    """A request as the client sends it, with a place for a number."""
    from medtasks.judge.rubric import judge_prompt, load_rubric, verdict_schema

    rubric, (one,) = load_rubric("med_cmr_open"), questions(1)
    prompt = judge_prompt(rubric, one.document, one.response)
    form = {"name": "verdict", "schema": verdict_schema(rubric, one.document), "strict": True}
    body = {
        "model": "stub",
        "messages": [{"role": "user", "content": prompt.replace("@", "") + "@"}],
        "temperature": 0.0,
        "max_tokens": 1024,
        "response_format": {"type": "json_schema", "json_schema": form},
    }
    return json.dumps(body).encode()


def judge(url: str, store: Path, count: int, concurrency: int) -> tuple[Any, float, float]:
    """The adjudication of ``count`` questions, its seconds and how many of them this process computed."""
    from medtasks.judge.adjudicate import adjudicate
    from medtasks.judge.client import JudgeClient
    from medtasks.judge.rubric import load_rubric
    from medtasks.judge.settings import JudgeSettings
    from medtasks.judge.store import VerdictStore

    settings = JudgeSettings(base_url=url, model="stub", concurrency=concurrency)
    with VerdictStore(store) as opened:
        asked = list(questions(count))
        started, computed = time.perf_counter(), _computed()
        gc.freeze()  # as `medtasks judge` does
        result = asyncio.run(adjudicate(asked, load_rubric("med_cmr_open"), JudgeClient(settings), opened))
        gc.unfreeze()
        return result, time.perf_counter() - started, _computed() - computed


def _computed() -> float:
    """Seconds that this process computed."""
    return sum(os.times()[:2])


def throughput(latency: float, count: int, concurrency: int, folder: Path) -> Iterator[str]:
    """Rows of the table for one latency: without faults, and with."""
    with stub(latency, concurrency, faulty=False) as served:
        judge(served.url, folder / f"warm-{latency}", concurrency, concurrency)
        capacity = bare(
            served.url, body_like_ours(), min(count, int(BARE_SECONDS * concurrency / latency)), concurrency
        )
    for faulty in (False, True):
        with stub(latency, concurrency, faulty=faulty) as served:
            result, took, computed = judge(served.url, folder / f"{latency}-{faulty}", count, concurrency)
            outcomes, asked = served.asked()
        served_units = len(asked) - outcomes.get("too_many", 0) + 9 * outcomes.get("slow", 0)
        rate = len(result.judgements) / took
        assert len(result.judgements) == count
        yield (
            f"| {1000 * latency:.0f} | {'5 % mixed' if faulty else 'none'} | {concurrency / latency:,.0f} "
            f"| {capacity:,.0f} | {rate:,.0f} | {rate / capacity:.3f} | {rate * latency / concurrency:.3f} "
            f"| {count / served_units:.3f} | {len(asked):,} | {len(result.unjudged):,} | {result.repaired:,} "
            f"| {1e6 * computed / count:,.0f} |"
        )


def _soak_run(url: str, store: Path, count: int, concurrency: int, pipe: Connection) -> None:
    result, _, _ = judge(url, store, count, concurrency)
    pipe.send((len(result.judgements), len(result.verdicts), sorted(set(result.unjudged.values()))))


def _stored(store: Path) -> dict[str, tuple[str, bool]]:
    """Of each stored answer its prompt and whether it leaves nothing to ask."""
    if not store.exists():
        return {}
    with sqlite3.connect(store) as connection:
        rows = connection.execute(
            "SELECT key, prompt, parsed IS NOT NULL OR reason = 'refused' FROM verdicts"
        ).fetchall()
    return {key: (prompt, bool(settled) or key.endswith(":repair")) for key, prompt, settled in rows}


def soak(latency: float, count: int, concurrency: int, folder: Path) -> Iterator[str]:
    """Run, kill, run again; a line for each run."""
    context, store = multiprocessing.get_context("spawn"), folder / "soak"
    with stub(latency, concurrency, faulty=True) as served:
        for share in (*KILLS, None):
            before = _stored(store)
            here, there = context.Pipe()
            process = context.Process(target=_soak_run, args=(served.url, store, count, concurrency, there))
            process.start()
            if share is None:
                judged, verdicts, reasons = here.recv()
                assert judged == count
            else:
                while not store.exists() or len(_stored(store)) < share * count:
                    time.sleep(0.2)
                process.kill()
            process.join()
            _, asked = served.asked()
            settled = {prompt for prompt, done in before.values() if done}
            answered = {prompt for prompt, _ in before.values()}
            again = sum(prompt in settled or (number == 1 and prompt in answered) for prompt, number in asked)
            assert again == 0, f"{again} requests for what was stored"
            yield f"{len(before):,} answers stored before, {len(asked):,} requests, {again} of them for what was stored"
        yield f"{judged:,} samples: {verdicts:,} verdicts, {judged - verdicts:,} unjudged ({', '.join(reasons)})"


def main() -> None:
    """Print the table, or the soak's lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=16_000)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.05, 0.2], help="seconds")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--soak", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
        print(
            f"{platform.machine()}, {cores} cores, load before {load:.1f}, Python {platform.python_version()}; ", end=""
        )
        print(f"{asked.verdicts:,} verdicts, {asked.concurrency} at once\n")
        if asked.soak:
            for line in soak(asked.latency[0], asked.verdicts, asked.concurrency, Path(folder)):
                print(line, flush=True)
            return
        print(
            "| latency ms | faults | nominal /s | capacity /s | ours /s | ratio | of nominal | ceiling | requests "
            "| unjudged | repaired | CPU µs per verdict |"
        )
        print("|---:|---|" + "---:|" * 10)
        for latency in asked.latency:
            for row in throughput(latency, asked.verdicts, asked.concurrency, Path(folder)):
                print(row, flush=True)


if __name__ == "__main__":
    main()
