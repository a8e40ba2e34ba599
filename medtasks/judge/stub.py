"""A stub judge for demo, tests and benchmarks, whose verdicts follow a simple word-overlap rule.

It is a real HTTP server of OpenAI's chat API on loopback. ``python -m medtasks.judge.stub`` runs it
in the foreground.

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
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import typer
from aiohttp import web

from medtasks.catalog.neutral_text import DELIMITER
from medtasks.runs.verdict import STUB

MODEL = STUB  # a request may name any
LARGEST_REQUEST = 64 * 2**20  # bytes; a window of frames as base64 stays well below
SPARE = 40  # extra words allowed in a candidate that contains the reference
_ARTICLES = frozenset({"a", "an", "the"})
_NEGATIONS = frozenset({
    "absence", "absent", "cannot", "neither", "never", "no", "none", "nor", "not", "nothing",
    "without",
})  # fmt: skip
_NOT = re.compile(r"n['’]t\b")  # isn't
_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS)}
_REFERENCE = re.compile(r"^(?:Reference|Expected) answer:(.*)$", re.MULTILINE)
# <b>, </b>, and <|user|> as quoting breaks it
_TAG = re.compile(r"<[^\w\s<>]{0,2}[^\W\d][^<>\n]{0,60}>")
_BLOCK = re.compile(
    rf"^=== BEGIN {DELIMITER} (?P<code>[0-9a-f]+) ===\n"
    r"(?P<text>.*?)\n"
    rf"=== END {DELIMITER} (?P=code) ===$",
    re.DOTALL | re.MULTILINE,
)
"""A delimited text as `quoting` writes it; the closing line has the code of the opening line."""


@dataclass(frozen=True)
class _Rating:
    """How well a candidate matches its reference: a fraction of every scale, and the reason."""

    fraction: Fraction
    reason: str


def rule_based(request: Mapping[str, Any]) -> str:
    """The default verdict on a rubric's prompt.

    The quoted texts are only compared: none can instruct the stub. The candidate is the first
    delimited text in a user message, the reference the last line before it that begins with
    "Reference answer:" or "Expected answer:". Words are compared casefolded, without punctuation,
    markup and articles, numbers in digits.

    A response gets the minimum of every scale if

    - it is empty, or the prompt has no candidate or no reference,
    - its numbers differ from those of the reference, or
    - only one of the two texts has a negation.

    Otherwise it gets the maximum if

    - it equals the reference,
    - it contains the whole reference, and has at most 40 further words, or
    - it has only words of the reference, with a token F1 above 1/2 (*one polyp counted*).

    Any other response gets the score at the fraction token F1 of the scale, rounded down, which is
    never the maximum. Without a schema (``response_format``) the answer is "correct" or
    "incorrect".
    """
    rating = _rating(request["messages"])
    response_format = request.get("response_format") or {}
    if response_format.get("type") != "json_schema":
        return "correct" if rating.fraction == 1 else "incorrect"
    verdict = _filled(response_format["json_schema"].get("schema"), rating)
    return json.dumps(verdict, ensure_ascii=False)


def _rating(messages: Iterable[Mapping[str, Any]]) -> _Rating:
    """The rating of the candidate in a prompt, as `rule_based` describes."""
    block = _first_block(messages)
    if block is None:
        return _Rating(Fraction(0), "stub: no candidate text in the prompt")
    candidate = _words(block["text"])
    if not candidate:
        return _Rating(Fraction(0), "stub: the text has no words")
    references = _REFERENCE.findall(block.string[: block.start()])
    reference = _words(references[-1]) if references else []
    if not reference:
        return _Rating(Fraction(0), "stub: no reference answer in the prompt")
    if _contradicts(candidate, reference):
        return _Rating(Fraction(0), "stub: the text has another number or negation")
    fraction = _overlap(candidate, reference)
    if fraction == 1:
        return _Rating(fraction, "stub: the text has the reference's words")
    return _Rating(fraction, f"stub: token F1 {float(fraction):.2f}")


def _first_block(messages: Iterable[Mapping[str, Any]]) -> re.Match[str] | None:
    """The first delimited text; in a repair request, the prompt is in an earlier message."""
    for message in messages:
        if message.get("role") == "user":
            block = _BLOCK.search(_message_text(message))
            if block is not None:
                return block
    return None


def _contradicts(candidate: list[str], reference: list[str]) -> bool:
    """Whether one text has a number, or any negation, that the other lacks."""
    if _numbers(candidate) != _numbers(reference):
        return True
    return _denies(candidate) != _denies(reference)


def _overlap(candidate: list[str], reference: list[str]) -> Fraction:
    """1 if one text has all of the other's words, as `rule_based` describes; else token F1."""
    is_short = len(candidate) <= len(reference) + SPARE
    if is_short and f" {' '.join(reference)} " in f" {' '.join(candidate)} ":
        return Fraction(1)
    counts, reference_counts = Counter(candidate), Counter(reference)
    shared = (counts & reference_counts).total()
    f1 = Fraction(2 * shared, len(candidate) + len(reference))
    has_only_reference_words = not counts - reference_counts
    return Fraction(1) if f1 > Fraction(1, 2) and has_only_reference_words else f1


def _filled(schema: Any, rating: _Rating) -> Any:
    """A document that follows the schema, with the rating on every scale."""
    match schema:
        case {"type": "object", "properties": dict(properties)}:
            return {name: _filled(inner, rating) for name, inner in properties.items()}
        case {"type": "integer", "enum": [*scale]}:
            return sorted(scale)[math.floor((len(scale) - 1) * rating.fraction)]
        case {"type": "string"}:
            return rating.reason
    raise LookupError(f"the stub judge cannot fill the schema {json.dumps(schema)[:200]}")


def _words(text: str) -> list[str]:
    """The words as they are compared: casefolded, without articles, numbers as digits."""
    text = _TAG.sub(" ", unicodedata.normalize("NFKC", text)).casefold()
    words = re.findall(r"[^\W_]+", _NOT.sub(" not", text))
    kept: list[str] = []
    for place, word in enumerate(words, start=1):
        # a final article is a name: "type A"
        if word not in _ARTICLES or place == len(words):
            kept.append(_DIGITS.get(word, word))
    return kept


def _numbers(words: list[str]) -> set[str]:
    """The numbers among the words."""
    return {word for word in words if word.isdecimal()}


def _denies(words: list[str]) -> bool:
    return not _NEGATIONS.isdisjoint(words)


def _message_text(message: Mapping[str, Any]) -> str:
    """The text of a message, with its content parts on lines of their own."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "\n".join(str(part.get("text", "")) for part in parts)
    if isinstance(content, str):
        return content
    return ""


class StubJudge:
    """The server, as a context manager; it runs in a thread with its own event loop.

    ``decide`` turns a request's body into the content of the answer; ``requests`` are the bodies,
    if they are kept. ``port`` 0 takes a free one.
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
        self._decide = decide
        self._latency = latency
        self._requested_port = port
        self._keep_requests = keep_requests

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
        """Serve until `_ended` is set; ``started`` gets the base URL, or why there is none."""
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.add_routes(self._routes())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)  # 0 would wait for ever
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self._requested_port, backlog=1024).start()
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
        """The response to a chat request, after the latency; tests make it misbehave."""
        await asyncio.sleep(self._latency)
        return web.json_response(completion(body, self._decide(body)))


def completion(
    body: Mapping[str, Any], content: str | None, refusal: str | None = None
) -> dict[str, Any]:
    """A chat completion, without a clock: the same request gets the same bytes."""
    prompt_tokens = 0
    for asked in body["messages"]:
        prompt_tokens += _token_count(_message_text(asked))
    completion_tokens = _token_count(content or refusal or "")
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def _token_count(text: str) -> int:
    """The number of words, as which the stub counts tokens."""
    return text.count(" ") + text.count("\n") + 1 if text else 0


def main(
    port: Annotated[int, typer.Option(help="Port; 0 is any free one.")] = 0,
    latency: Annotated[float, typer.Option(help="Seconds before every answer.")] = 0.0,
) -> None:
    """Serve a stub judge on loopback with OpenAI's chat API, and print its base URL.

    Its verdicts compare words by a simple rule and have no medical meaning.
    """
    stops = {signal.SIGINT, signal.SIGTERM}
    # also in the server's thread: they end the wait
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
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
