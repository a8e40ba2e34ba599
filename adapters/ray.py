"""``medtasks_ray``: another back-end of ours, in replicas on a Ray cluster or on this machine.

Ray starts the replicas and moves pictures. This module divides requests into units and gives each idle replica the next
one; a new replica takes the place of one that died. Replies are passed on as units finish, so the harness stores them
at once. Nodes need the package and the checkpoint, but neither prepared data nor a shared file system.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain, count, groupby, islice
from typing import Annotated, Any, ClassVar

from loguru import logger
from pydantic import AfterValidator, ConfigDict
from pydantic_core import PydanticCustomError
from tqdm import tqdm

from medtasks.benchmarks.documents import encoded_pictures
from medtasks.core.errors import MedtasksError, UsageError, exit_with_sentence, first_line
from medtasks.core.settings import current_settings, using
from medtasks.data.media.images import EncodedPicture
from medtasks.harness import BACK_ENDS
from medtasks.harness.backends import takes_system_prompt
from medtasks.harness.requests import isolated
from medtasks.runs.replies import Reply

from ._base import ChatRequest, Count, MedtasksAdapter, NonNegative, Settings, read_documents, read_requests
from .baseline import FIELDS

ENGINES = {name: BACK_ENDS[f"medtasks_{name}"] for name in ("vlm", "vllm", "baseline")}
ATTEMPTS = 3  # replicas that die on a unit before its requests fail, or while they load before one is left out
UNITS_EACH = 4  # least units for each replica, so that none is idle for long at the end
PICTURE_TOKENS, ANSWER_TOKENS, CHARACTERS = 1_024, 512, 4
"""Rough tokens of a picture and of an answer, and characters of a token: they decide the sizes of units alone."""
HEAD_EVERY, HEAD_SILENT = 5.0, 30.0
"""Seconds between questions to the cluster's head, and without an answer after which the run ends: after 60, Ray would
end the process itself, and nobody would learn how to go on."""
_MESSAGES = "medtasks_messages"


def _checked_engine(text: str) -> str:
    if text not in ENGINES and "." not in text:
        raise PydanticCustomError("expected", "vlm, vllm, baseline, or a class as package.module.Class")
    return ENGINES.get(text, text)


class RayArguments(Settings):
    """Arguments of ``medtasks_ray``; all others are those of the engine."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    engine: Annotated[str, AfterValidator(_checked_engine)] = ENGINES["vlm"]  # the back-end that each replica runs
    replicas: Count = 1  # the run starts with the first that is loaded; others join as the cluster has room
    gpus: NonNegative | None = None  # of each replica, on one node; by default 1 if the cluster has any, else 0
    cpus: NonNegative = 1  # cores that Ray reserves for each replica
    address: str | None = None  # ``auto``, or that of a running cluster; by default Ray starts on this machine alone
    unit_tokens: Count = 32_768  # most of a unit, roughly: what a replica that dies or is slow at the end costs


Payload = tuple[list[ChatRequest], dict[str, dict[str, list[Any]]]]
"""Requests as they travel to a replica, and their documents by task and split, with their messages; pictures of several
requests of a unit travel once."""


class Replica:
    """The engine, in a Ray actor."""

    def __init__(self, engine: str, arguments: dict[str, Any]) -> None:
        self._engine, self._arguments = engine, arguments

    def load(self) -> tuple[dict[str, Any], bool]:
        """Load the model; return its description and whether it takes a system prompt."""
        module, _, name = self._engine.rpartition(".")
        try:
            kind = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"engine={self._engine} cannot be imported on this node ({first_line(error)}).") from error
        if not (isinstance(kind, type) and issubclass(kind, MedtasksAdapter)):
            raise UsageError(f"engine={self._engine} is not derived from medtasks.adapters._base.MedtasksAdapter.")
        try:
            self._model: Any = kind(**self._arguments)
        except SystemExit as end:  # back-ends end their process with one sentence
            raise UsageError(str(end.__cause__ or end)) from None
        return self._model.describe(), takes_system_prompt(self._model)

    def answer(self, unit: Payload) -> tuple[list[tuple[int, Reply]], dict[str, Any]]:
        """The replies to a unit with the positions of their requests; the engine's description, whose usage grows."""
        requests, self._model.task_dict = unit
        answered = isolated(self._model.batches(requests), lambda request: request.task, self._model.answer)
        replies = [(request.position, reply) for request, reply in chain.from_iterable(answered)]
        return replies, self._model.describe()


def _messages(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages in a document as it travels, with their pictures decoded."""
    if isinstance(document[_MESSAGES], str):  # why there are none
        raise MedtasksError(document[_MESSAGES])
    decoded = []
    for message in document[_MESSAGES]:
        content = message["content"]
        if isinstance(content, list):
            content = [
                {**part, "url": part["url"].image} if isinstance(part.get("url"), EncodedPicture) else part
                for part in content
            ]
        decoded.append({**message, "content": content})
    return decoded


@dataclass
class Unit:
    """Requests that one replica answers together; ``attempts`` counts the replicas that died on them."""

    requests: list[ChatRequest]
    cost: int = 0
    attempts: int = 0
    payload: Any = None  # a future of the `Payload`


def units_of(requests: Sequence[ChatRequest], tokens: int, least: int = 1) -> list[Unit]:
    """The requests in units of at most ``tokens`` tokens, or a single request, longest first; those that share media
    are together, and a picture costs its tokens once. Units are made smaller where there are fewer than ``least``."""
    units: list[Unit] = []
    media: tuple[str, ...] = ()
    for request in sorted(requests, key=lambda one: (one.media, one.item_id, one.task, one.sample_id, one.repeat)):
        text = len(request.prompt) // CHARACTERS + ANSWER_TOKENS
        pictures = PICTURE_TOKENS * len(request.media)
        if not units or units[-1].cost + text + (request.media != media) * pictures > tokens:
            units.append(Unit([]))
            media = ()
        units[-1].requests.append(request)
        units[-1].cost += text + (request.media != media) * pictures
        media = request.media
    smaller = sum(unit.cost for unit in units) // least
    if len(units) < least and smaller < tokens:
        return units_of(requests, smaller)
    return sorted(units, key=lambda unit: -unit.cost)


class MedtasksRay(MedtasksAdapter):
    """Answers with several replicas of another back-end (:class:`RayArguments`). Errors in arguments, and an engine
    that cannot be started, end the process with one sentence and exit code 1."""

    runs_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self._given = given = RayArguments.read(arguments)
        if current_settings().processes > 1:
            raise UsageError("medtasks_ray runs as one process; start it without accelerate and torchrun.")
        self.join_replicas("cpu")
        self._ray = ray = _started(given.address)
        self._head_seen = time.monotonic()
        threading.Thread(target=self._watch_head, daemon=True).start()
        has, nodes = ray.cluster_resources(), [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus = float(bool(has.get("GPU"))) if given.gpus is None else given.gpus
        fitting = [int(has.get(what, 0) // each) for what, each in (("GPU", gpus), ("CPU", given.cpus)) if each]
        if given.address is None and min(fitting, default=given.replicas) < given.replicas:
            raise UsageError(
                f"model_args: {given.replicas} replicas of {gpus:g} GPUs and {given.cpus:g} cores do not fit on "
                f"this machine, which has {has.get('GPU', 0):g} and {has.get('CPU', 0):g}; lower replicas, gpus or "
                "cpus, or give the address of a cluster."
            )
        self._cluster = {
            "ray": ray.__version__,
            "replicas": str(given.replicas),
            "nodes": sorted(f"{one.get('CPU', 0):g} CPU, {one.get('GPU', 0):g} GPU" for one in nodes),
        }
        self.devices = given.replicas * max(1, int(gpus))
        self._facts: dict[str, Any] = {}
        self._usage: dict[Any, dict[str, int]] = {}
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="medtasks-units")

        kind = ray.remote(num_gpus=gpus, num_cpus=given.cpus)(Replica)
        self._new = functools.partial(kind.remote, given.engine, given.model_extra or {})
        self._idle: list[Any] = []
        self._loading: dict[Any, tuple[Any, int]] = {}
        self._left = given.replicas
        for _ in range(self._left):
            self._load()
        for waited in count(1):
            for reference in self._first_done(list(self._loading)):
                self._loaded(reference)
            if self._idle:
                break
            if waited % 6 == 0:  # about every half minute
                logger.info(f"medtasks_ray: none of {given.replicas} replicas is loaded yet")

    def _watch_head(self) -> None:
        """Note when the cluster's head has answered, until this process leaves the cluster."""
        with contextlib.suppress(Exception):
            while True:
                self._ray.nodes()
                self._head_seen = time.monotonic()
                time.sleep(HEAD_EVERY)

    def _first_done(self, references: list[Any]) -> list[Any]:
        """The first of ``references`` that is done; none after a while."""
        if time.monotonic() - self._head_seen > HEAD_SILENT:
            raise MedtasksError("the head of the Ray cluster does not answer; start the cluster again.")
        done, _ = self._ray.wait(references, timeout=HEAD_EVERY)
        return list(done)

    def _load(self, died: int = 0) -> None:
        """Start a replica, on whatever node has room; as many have ``died`` in its place while they loaded."""
        replica = self._new()
        self._loading[replica.load.remote()] = (replica, died)

    def _loaded(self, reference: Any) -> None:
        replica, died = self._loading.pop(reference)
        try:
            facts, self.takes_system_prompt = self._ray.get(reference)
        except self._ray.exceptions.RayActorError as error:
            if died + 1 < ATTEMPTS:
                self._load(died + 1)
                return
            self._left -= 1
            logger.warning(f"medtasks_ray: a replica died {ATTEMPTS} times while it loaded ({type(error).__name__})")
            if not self._left:
                raise MedtasksError(
                    "all replicas died while they loaded the model; look at Ray's logs, or give each more memory."
                ) from error
        except self._ray.exceptions.RayTaskError as error:
            raise UsageError(str(error.cause)) from None
        else:
            self._facts = self._facts or facts
            self._idle.append(replica)

    def describe(self) -> dict[str, Any]:
        """The engine's description, with the usage of all replicas summed, and the cluster at the beginning."""
        usage: Counter[str] = Counter()
        for counts in self._usage.values():
            usage.update(counts)
        return {**self._facts, "cluster": self._cluster, "usage": dict(usage)}

    def stream(self, requests: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        """Yield positions and replies of each unit as it finishes, in any order; padding requests are left out."""
        read = read_requests(requests, self.task_dict)
        with tqdm(total=len(read), desc="medtasks_ray", unit="sample") as bar:
            for answered in self._answered(read):
                bar.set_postfix(replicas=self._left - len(self._loading), refresh=False)
                bar.update(len(answered))
                yield answered

    def _answered(self, requests: Sequence[ChatRequest]) -> Iterator[list[tuple[int, Reply]]]:
        waiting = deque(units_of(requests, self._given.unit_tokens, UNITS_EACH * self._left))
        running: dict[Any, tuple[Any, Unit]] = {}
        while waiting or running:
            for unit in islice(waiting, 2):  # the next units are ready when a replica is
                unit.payload = unit.payload or self._preparing.submit(self._payload, unit.requests)
            if self._idle and waiting:
                unit, replica = waiting.popleft(), self._idle.pop()
                running[replica.answer.remote(unit.payload.result())] = (replica, unit)
                continue
            for reference in self._first_done([*running, *self._loading]):
                if reference in self._loading:
                    self._loaded(reference)
                    continue
                replica, unit = running.pop(reference)
                try:
                    replies, self._facts = self._ray.get(reference)
                except self._ray.exceptions.RayTaskError as error:
                    raise UsageError(str(error.cause)) from None
                except self._ray.exceptions.RayError as error:  # the replica or its node died
                    self._load()
                    unit.attempts += 1
                    if unit.attempts < ATTEMPTS:
                        waiting.appendleft(unit)
                        continue
                    reason = f"{ATTEMPTS} replicas died while they answered it ({type(error).__name__})"
                    replies = [(request.position, Reply.failure(reason)) for request in unit.requests]
                else:
                    self._usage[replica] = self._facts.get("usage", {})
                    self._idle.append(replica)
                yield replies

    def _payload(self, requests: Sequence[ChatRequest]) -> Payload:
        travelling: list[ChatRequest] = []
        documents: dict[str, dict[str, list[Any]]] = {}
        with using(), encoded_pictures():  # the environment is read once
            for (task, split), group in groupby(requests, key=lambda request: (request.task, request.split)):
                together, rows = list(group), self.task_dict[task][split]
                placed = documents.setdefault(task, {}).setdefault(split, [])
                numbers = [request.doc_id for request in together]
                read = read_documents(rows, getattr(rows, "column_names", ()), numbers)
                for request, document in zip(together, read, strict=True):
                    messages: Any
                    try:
                        messages = request.to_messages(document)
                    except Exception as error:  # a package's prompts raise anything
                        messages = first_line(error)
                    travelling.append(replace(request, doc_id=len(placed), to_messages=_messages))
                    kept = {name: document[name] for name in FIELDS if name in document}
                    placed.append({**kept, _MESSAGES: messages})
        return travelling, documents

    def clean(self) -> None:
        """Stop the replicas; the harness calls this once it has all answers."""
        self._idle.clear()
        self._loading.clear()
        self._ray.shutdown()
        super().clean()


def _started(address: str | None) -> Any:
    """Ray, connected to the cluster at ``address`` or, without one, started on this machine, without its dashboard."""
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):  # both make Ray print warnings
        os.environ.setdefault(name, "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"medtasks_ray needs Ray ({first_line(error)}): pip install 'medtasks[ray]'.") from None
    own = {"include_dashboard": False} if address is None else {}
    host, _, port = (address or "").rpartition(":")
    try:
        if host and port.isdecimal():  # Ray tries for ten minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True, **own)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"model_args: no Ray cluster answers at address={address} ({first_line(error)}); start one with "
            "`ray start --head`, with RAY_AUTH_MODE and RAY_AUTH_TOKEN as here, or leave address out."
        ) from error
    return ray
