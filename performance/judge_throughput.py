"""S5: verdicts per second of `judge_questions` against what the endpoint can give and against plain
openai clients.

The stub judge runs in a process of its own and answers each request after a fixed latency. Its
capacity is measured by a bare load generator (non-blocking sockets, requests as ready bytes,
nothing read but the length) with as many connections as the others have requests in flight.
"openai" and "openai, aiohttp" are `openai.AsyncOpenAI` with its two HTTP clients, asked as many
questions at a time by as many tasks: prompts ready, answers not read. Ours is everything: prompts
rendered, requests, verdicts validated and stored. All are measured in turn, several times; medians
count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ.setdefault("MEDTASKS_DATA", "mini")


def questions(count: int) -> list[Any]:
    """Distinct responses to one document."""
    from medtasks.benchmarks.documents import task_documents
    from medtasks.judge.pipeline import Question

    document = task_documents("med_cmr_open_sod")[0]
    answer = "Response {}: the pattern on the image speaks for it. " * 4 + document["target"]
    return [
        Question(f"s{number:06}", document, answer.replace("{}", str(number)))
        for number in range(count)
    ]


def _verdict() -> str:
    from medtasks.catalog.rubric_files import load_rubric

    aspects = load_rubric("med_cmr_open").aspects
    return json.dumps(
        {
            aspect.name: {"reason": "A sentence of ordinary length, as judges give.", "score": 3}
            for aspect in aspects
        }
    )


VERDICT = _verdict()


def decide(_: Mapping[str, Any]) -> str:
    """The same verdict for all: the benchmark is not about it."""
    return VERDICT


def _serve(pipe: Connection, latency: float) -> None:
    from medtasks.judge.stub import StubJudge

    with StubJudge(decide, latency=latency, keep_requests=False) as stub:
        pipe.send(stub.url)
        pipe.recv()


@contextmanager
def stub(latency: float) -> Iterator[str]:
    """The address of a stub judge in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, latency))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def request_body(number: int | str) -> dict[str, Any]:
    """A request as ours sends it."""
    from medtasks.catalog.judge_prompt import judge_prompt, verdict_schema
    from medtasks.catalog.rubric_files import load_rubric

    rubric, (question,) = load_rubric("med_cmr_open"), questions(1)
    prompt = judge_prompt(rubric, question.document, question.response)
    form = {"name": "verdict", "schema": verdict_schema(rubric, question.document), "strict": True}
    return {
        "model": "stub",
        "messages": [{"role": "user", "content": f"{prompt.replace('@', '')}{number}"}],
        "temperature": 0.0,
        "max_tokens": 1024,
        "response_format": {"type": "json_schema", "json_schema": form},
    }


def bare(url: str, count: int, connections: int) -> None:
    """Ask with the least that HTTP takes."""
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    body = json.dumps(request_body("@")).encode()
    length = len(body) + 6
    lines = ("POST /v1/chat/completions HTTP/1.1", f"Host: {host}", f"Content-Length: {length}")
    head = "".join(f"{line}\r\n" for line in (*lines, "")).encode()
    begun = finished = 0

    def ask(connection: socket.socket) -> None:
        nonlocal begun
        connection.sendall(head + body.replace(b"@", b"%07d" % begun))
        begun += 1

    ready = selectors.DefaultSelector()
    for _ in range(connections):
        ready.register(
            socket.create_connection((host, int(port))), selectors.EVENT_READ, bytearray()
        )
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
    for key in list(ready.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]


def plain_openai(url: str, count: int, concurrency: int, *, aiohttp: bool) -> None:
    """Ask with openai's client, as its documentation shows it."""
    import openai

    async def main() -> None:
        bodies = iter([request_body("@")] * count)
        kind = openai.DefaultAioHttpClient if aiohttp else openai.DefaultAsyncHttpxClient
        limits = {"limits": openai.DEFAULT_CONNECTION_LIMITS} if aiohttp else {}
        async with openai.AsyncOpenAI(
            base_url=url, api_key="none", http_client=kind(**limits)
        ) as client:

            async def work() -> None:
                for body in bodies:
                    await client.chat.completions.create(**body)

            await asyncio.gather(*(work() for _ in range(concurrency)))

    asyncio.run(main())


def ours(url: str, count: int, concurrency: int) -> None:
    """Judge new questions into a new store."""
    from medtasks.catalog.rubric_files import load_rubric
    from medtasks.judge.client import JudgeClient
    from medtasks.judge.pipeline import judge_questions
    from medtasks.judge.settings import JudgeSettings
    from medtasks.judge.store import VerdictStore

    settings = JudgeSettings(base_url=url, model="stub", concurrency=concurrency)
    with tempfile.TemporaryDirectory() as folder, VerdictStore(Path(folder) / "store") as store:
        result = asyncio.run(
            judge_questions(
                questions(count), load_rubric("med_cmr_open"), JudgeClient(settings), store
            )
        )
    assert all(verdict.scores for verdict in result.values())


def measured(work: Callable[[], None], count: int) -> tuple[float, float]:
    """Answers per second, and microseconds that this process computed for each."""
    started, computed = time.perf_counter(), time.process_time()
    work()
    return count / (time.perf_counter() - started), 1e6 * (time.process_time() - computed) / count


def rows(latency: float, count: int, concurrency: int, repeats: int) -> Iterator[str]:
    """The table's rows for one latency."""
    runs_of: dict[str, list[tuple[float, float]]] = {}
    with stub(latency) as url:
        clients: dict[str, Callable[[int], None]] = {
            "endpoint's capacity": lambda count: bare(url, count, concurrency),
            "openai": lambda count: plain_openai(url, count, concurrency, aiohttp=False),
            "openai, aiohttp": lambda count: plain_openai(url, count, concurrency, aiohttp=True),
            "medtasks": lambda count: ours(url, count, concurrency),
        }
        for ask in clients.values():
            ask(concurrency)  # imports and connections
        for _ in range(repeats):
            for name, ask in clients.items():
                runs_of.setdefault(name, []).append(measured(lambda ask=ask: ask(count), count))  # type: ignore[misc]
    capacity = statistics.median(rate for rate, _ in runs_of["endpoint's capacity"])
    for name, runs in runs_of.items():
        rate, computed = (statistics.median(column) for column in zip(*runs, strict=True))
        share = [
            direct / whole
            for (direct, _), (whole, _) in zip(runs, runs_of["endpoint's capacity"], strict=True)
        ]
        yield (
            f"| {1000 * latency:.0f} | {name} | {rate:,.0f} | {rate / capacity:.3f} | "
            f"{min(share):.3f} to {max(share):.3f} | {computed:,.0f} |"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=4_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.2, 0.05], help="seconds")
    parser.add_argument("--concurrency", type=int, default=64)
    asked = parser.parse_args()
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(
        f"{platform.machine()}, {cores} cores, load before {load:.1f}, Python "
        f"{platform.python_version()}; ",
        end="",
    )
    print(
        f"{asked.verdicts:,} verdicts, {asked.concurrency} in flight, medians of {asked.repeats}\n"
    )
    print(
        "| latency, ms | client | answers/s | of capacity | of capacity, runs | CPU µs per answer |"
    )
    print("|---:|---|---:|---:|---:|---:|")
    for latency in asked.latency:
        for row in rows(latency, asked.verdicts, asked.concurrency, asked.repeats):
            print(row, flush=True)


if __name__ == "__main__":
    main()
