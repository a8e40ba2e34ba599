"""A stub judge: a real HTTP server of OpenAI's chat API on loopback, whose verdicts follow a simple word-overlap rule.

For ``medtasks demo``, tests and benchmarks; its verdicts say nothing about medicine. It serves
``POST /v1/chat/completions`` and ``GET /v1/models``. ``python -m medtasks.judge.stub`` runs it in the foreground.

>>> with StubJudge(latency=0.05) as stub:
...     stub.url.startswith("http://127.0.0.1:"), stub.requests
(True, [])
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Annotated, Any, NamedTuple

import typer
from aiohttp import web

from medtasks.core.errors import UsageError
from medtasks.judge.settings import STUB
from medtasks.judge.stub_rule import rule_based as rule_based
from medtasks.judge.stub_rule import text_of

MODEL = STUB  # the one that ``/v1/models`` lists; a request may name any
LARGEST_REQUEST = 64 * 2**20  # bytes; a window of frames as base64 stays well below


class Received(NamedTuple):
    """One chat request, without the API key."""

    body: Mapping[str, Any]
    with_key: bool


class StubJudge:
    """The server, as a context manager; it runs in a thread with its own event loop.

    Args:
        decide: request body -> content of the answer. Runs on the server's loop, so it must be fast. If it raises, the
            client gets a 500, and leaving the context raises the first such error.
        latency: seconds before every answer.
        port: on 127.0.0.1; 0 takes a free one. Entering raises ``OSError`` if it is not available.
        keep_requests: ``False`` leaves ``requests`` empty, for long-running servers.

    Attributes:
        url: base URL for OpenAI clients, once entered.
        requests: the chat requests in order of arrival.
        counts: finished chat requests by outcome: "ok", "bad_request", "decide_failed".
    """

    def __init__(
        self,
        decide: Callable[[Mapping[str, Any]], str] = rule_based,
        *,
        latency: float = 0.0,
        port: int = 0,
        keep_requests: bool = True,
    ) -> None:
        self.requests: list[Received] = []
        self.counts: Counter[str] = Counter()
        self._decide, self._latency = decide, latency
        self._wanted_port, self._keep_requests = port, keep_requests
        self._failure: Exception | None = None

    def __enter__(self) -> StubJudge:
        started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="medtasks-stub-judge", daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{started.result()}/v1"
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None and kind is None:
            raise failure

    def _run(self, started: Future[int]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:  # for example a port in use: raised in the caller's thread
            if started.done():
                raise
            started.set_exception(error)

    async def _serve(self, started: Future[int]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.add_routes(self._routes())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)  # 0 would wait for ever
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self._wanted_port, backlog=1024).start()
            started.set_result(runner.addresses[0][1])
            await self._stop.wait()
        finally:
            await runner.cleanup()

    def _routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/chat/completions", self._chat), web.get("/v1/models", self._models)]

    async def _models(self, _: web.Request) -> web.Response:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "medtasks"}
        return web.json_response({"object": "list", "data": [model]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw)
        try:
            if self._keep_requests:
                self.requests.append(Received(body, "Authorization" in request.headers))
            return await self._respond(request, raw, body)
        except UsageError as error:
            self.counts["bad_request"] += 1
            return _problem(400, str(error), "invalid_request_error")

    async def _respond(self, request: web.Request, raw: bytes, body: Mapping[str, Any]) -> web.StreamResponse:  # noqa: ARG002
        """The response to a chat request, after the latency; tests override it to make it misbehave."""
        await asyncio.sleep(self._latency)
        try:
            document = completion(body, self._decide(body))
        except UsageError:  # the request's fault
            raise
        except Exception as error:  # the caller's function may raise anything
            self._failure = self._failure or error
            self.counts["decide_failed"] += 1
            return _problem(500, "decide raised an error", "server_error")
        self.counts["ok"] += 1
        return web.json_response(document)


def completion(body: Mapping[str, Any], content: str | None, refusal: str | None = None) -> dict[str, Any]:
    prompt = sum(_tokens(text_of(message)) for message in body["messages"])
    completed = _tokens(content or refusal or "")
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 0,  # no clock: the same request gets the same bytes
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completed, "total_tokens": prompt + completed},
    }


def _tokens(text: str) -> int:
    """A cheap measure of length: spaces and line ends."""
    return text.count(" ") + text.count("\n") + 1 if text else 0


def _problem(status: int, message: str, kind: str) -> web.Response:
    error = {"message": f"stub judge: {message}", "type": kind, "param": None, "code": None}
    return web.json_response({"error": error}, status=status)


def main(
    port: Annotated[int, typer.Option(help="Port; 0 is any free one.")] = 0,
    latency: Annotated[float, typer.Option(help="Seconds before every answer.")] = 0.0,
) -> None:
    """Serve a stub judge on loopback with OpenAI's chat API, and print its base URL.

    Its verdicts compare words by a simple rule and have no medical meaning.
    """
    stops = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)  # also in the server's thread: they end the wait
    try:
        with StubJudge(port=port, latency=latency, keep_requests=False) as stub:
            print(stub.url, flush=True)
            signal.sigwait(stops)
    except (OSError, OverflowError) as error:
        raise typer.BadParameter(
            f"port {port} cannot be used ({error}); choose another, or 0 for any free port"
        ) from error


if __name__ == "__main__":
    typer.run(main)
