"""A stub judge for demo, tests and benchmarks: a real HTTP server of OpenAI's chat API on loopback,
whose verdicts follow a simple word-overlap rule. ``python -m medtasks.judge.stub`` runs it in the
foreground.

>>> with StubJudge(latency=0.05) as stub:
...     stub.url.startswith("http://127.0.0.1:"), stub.requests
(True, [])
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import signal
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from fractions import Fraction
from typing import Annotated, Any

import typer
from aiohttp import web

from medtasks.catalog.rubric import DELIMITER
from medtasks.runs.verdict import STUB

MODEL = STUB  # a request may name any
LARGEST_REQUEST = 64 * 2**20  # bytes; a window of frames as base64 stays well below
SPARE = 40  # extra words allowed in a candidate that contains the reference
_ARTICLES = frozenset({"a", "an", "the"})
_NEGATIONS = frozenset(
    {
        "absence",
        "absent",
        "cannot",
        "neither",
        "never",
        "no",
        "none",
        "nor",
        "not",
        "nothing",
        "without",
    }
)
_NOT = re.compile(r"n['’]t\b")  # isn't
_NUMBERS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS)}
_REFERENCE = re.compile(r"^(?:Reference|Expected) answer:(.*)$", re.MULTILINE)
_TAG = re.compile(
    r"<[^\w\s<>]{0,2}[^\W\d][^<>\n]{0,60}>"
)  # <b>, </b>, and <|user|> as quoting breaks it
_BLOCK = re.compile(
    rf"^=== BEGIN {DELIMITER} (?P<code>[0-9a-f]+) ===\n(?P<text>.*?)\n=== END {DELIMITER} (?P=code) ===$",
    re.DOTALL | re.MULTILINE,
)
"""A delimited text as `quoting` writes it; the closing line has the code of the opening line."""


def rule_based(request: Mapping[str, Any]) -> str:
    """The default verdict on a rubric's prompt, whose quoted texts are only compared: none can
    instruct the stub.

    The candidate is the first delimited text in a user message, the reference the last line before
    it that begins with "Reference answer:" or "Expected answer:". Words are compared casefolded,
    without punctuation, markup and articles, numbers in digits. The minimum is for an empty
    response, for one with other numbers than the reference or a negation that the reference lacks,
    or the other way round, and for a prompt without candidate or reference. The maximum on every
    scale is for equal texts, for a response that contains the reference as a whole and has at most
    40 words more, and for one that has only words of the reference, with a token F1 above 1/2 (*one
    polyp counted*). Any other response gets the score at the fraction token F1 of the scale,
    rounded down, which is never the maximum. Without a schema (``response_format``) the answer is
    "correct" or "incorrect".
    """
    # in a repair request the prompt is in an earlier message
    asked = (_text_of(message) for message in request["messages"] if message.get("role") == "user")
    candidate = next(filter(None, map(_BLOCK.search, asked)), None)
    references = _REFERENCE.findall(candidate.string[: candidate.start()]) if candidate else []
    given = _words(candidate["text"]) if candidate else []
    expected = _words(references[-1]) if references else []
    mark = Fraction(0)
    contradicts = _numbers(given) != _numbers(expected) or _denies(given) != _denies(expected)
    if expected and contradicts:
        mark = Fraction(0)
    elif (
        expected
        and len(given) <= len(expected) + SPARE
        and f" {' '.join(expected)} " in f" {' '.join(given)} "
    ):
        mark = Fraction(1)
    elif expected:
        mark = Fraction(
            2 * (Counter(given) & Counter(expected)).total(), len(given) + len(expected)
        )
        if mark > Fraction(1, 2) and not Counter(given) - Counter(expected):
            mark = Fraction(1)
    wanted = request.get("response_format") or {}
    if wanted.get("type") != "json_schema":
        return "correct" if mark == 1 else "incorrect"
    if candidate is None:
        reason = "stub: no candidate text in the prompt"
    elif not given:
        reason = "stub: the text has no words"
    elif not expected:
        reason = "stub: no reference answer in the prompt"
    elif contradicts:
        reason = "stub: the text has another number or negation"
    else:
        reason = (
            "stub: the text has the reference's words"
            if mark == 1
            else f"stub: token F1 {float(mark):.2f}"
        )

    def filled(schema: Any) -> Any:
        match schema:
            case {"type": "object", "properties": dict(properties)}:
                return {name: filled(one) for name, one in properties.items()}
            case {"type": "integer", "enum": [*scale]}:
                return sorted(scale)[math.floor((len(scale) - 1) * mark)]
            case {"type": "string"}:
                return reason
        raise LookupError(f"the stub judge cannot fill the schema {json.dumps(schema)[:200]}")

    return json.dumps(filled(wanted["json_schema"].get("schema")), ensure_ascii=False)


def _words(text: str) -> list[str]:
    text = _TAG.sub(" ", unicodedata.normalize("NFKC", text)).casefold()
    words = [_DIGITS.get(word, word) for word in re.findall(r"[^\W_]+", _NOT.sub(" not", text))]
    # a final article is a name: "type A"
    return [word for word in words[:-1] if word not in _ARTICLES] + words[-1:]


def _numbers(words: list[str]) -> set[str]:
    """The numbers among the words."""
    return {word for word in words if word.isdecimal()}


def _denies(words: list[str]) -> bool:
    return not _NEGATIONS.isdisjoint(words)


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


class StubJudge:
    """The server, as a context manager; it runs in a thread with its own event loop. ``decide``
    turns a request's body into the content of the answer; ``requests`` are the bodies, if they are
    kept. ``port`` 0 takes a free one.
    """

    def __init__(
        self,
        decide: Callable[[Mapping[str, Any]], str] = rule_based,
        *,
        latency: float = 0.0,
        port: int = 0,
        keep_requests: bool = True,
    ) -> None:
        self.requests: list[Mapping[str, Any]] = []
        self._decide, self._latency = decide, latency
        self._wanted_port, self._keep_requests = port, keep_requests

    def __enter__(self) -> StubJudge:
        started: Future[str] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)),
            name="medtasks-stub-judge",
            daemon=True,
        )
        self._thread.start()
        self.url = started.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _serve(self, started: Future[str]) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.add_routes(self._routes())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)  # 0 would wait for ever
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self._wanted_port, backlog=1024).start()
        except Exception as error:  # for example a port in use
            started.set_exception(error)
        else:
            started.set_result(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
            await self._ended.wait()
        finally:
            await runner.cleanup()

    def _routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/chat/completions", self._chat)]

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self._keep_requests:
            self.requests.append(body)
        return await self._respond(request, body)

    async def _respond(self, request: web.Request, body: Mapping[str, Any]) -> web.StreamResponse:  # noqa: ARG002
        """The response to a chat request, after the latency; tests override it to make it
        misbehave.
        """
        await asyncio.sleep(self._latency)
        return web.json_response(completion(body, self._decide(body)))


def completion(
    body: Mapping[str, Any], content: str | None, refusal: str | None = None
) -> dict[str, Any]:
    """A chat completion, without a clock: the same request gets the same bytes. A word counts as a
    token.
    """
    texts = [*map(_text_of, body["messages"]), content or refusal or ""]
    *prompt, completed = (text.count(" ") + text.count("\n") + 1 if text else 0 for text in texts)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": sum(prompt),
            "completion_tokens": completed,
            "total_tokens": sum(prompt) + completed,
        },
    }


def main(
    port: Annotated[int, typer.Option(help="Port; 0 is any free one.")] = 0,
    latency: Annotated[float, typer.Option(help="Seconds before every answer.")] = 0.0,
) -> None:
    """Serve a stub judge on loopback with OpenAI's chat API, and print its base URL.

    Its verdicts compare words by a simple rule and have no medical meaning.
    """
    stops = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(
        signal.SIG_BLOCK, stops
    )  # also in the server's thread: they end the wait
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
