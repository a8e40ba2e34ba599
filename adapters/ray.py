"""``medtasks_ray``: another back-end of ours, in replicas on a Ray cluster or on this machine.

Ray starts the replicas and moves pictures. This module divides requests into units and gives each
idle replica the next one; a new replica takes the place of one that died. Replies are passed on as
units finish, so the harness stores them at once. Nodes need the package and the checkpoint, but
neither prepared data nor a shared file system.
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
from pydantic import BeforeValidator, ConfigDict, Field
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

from ._base import (
    ChatRequest,
    Count,
    MedtasksAdapter,
    NonNegative,
    Settings,
    read_documents,
    read_requests,
)
from .baseline import FIELDS

ENGINES = {name: BACK_ENDS[f"medtasks_{name}"] for name in ("vlm", "vllm", "baseline")}
ATTEMPTS = 3  # replicas that die on a unit before its requests fail, or while they load before one is left out
UNITS_EACH = 4  # least units for each replica, so that none is idle for long at the end
PICTURE_TOKENS, ANSWER_TOKENS, CHARACTERS = 1_024, 512, 4
"""Rough tokens of a picture and of an answer, and characters of a token: they decide the sizes of
units alone.
"""
HEAD_EVERY, HEAD_SILENT = 5.0, 30.0
"""Seconds between questions to the cluster's head, and without an answer after which the run ends:
after 60, Ray would end the process itself, and nobody would learn how to go on.
"""


def _engine(name: str) -> Any:
    try:
        module, _, kind = ENGINES.get(str(name), str(name)).rpartition(".")
        return getattr(import_module(module), kind)
    except Exception as error:  # a module may raise anything
        words = f"vlm, vllm, baseline, or a class as package.module.Class ({first_line(error)})"
        raise PydanticCustomError("expected", "{words}", {"words": words}) from error


class RayArguments(Settings):
    """Arguments of ``medtasks_ray``; all others are those of the engine."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    # the back-end that each replica runs
    engine: Annotated[type[MedtasksAdapter], BeforeValidator(_engine)] = Field(
        "vlm", validate_default=True
    )
    replicas: Count = (
        1  # the run starts with the first that is loaded; others join as the cluster has room
    )
    gpus: NonNegative | None = (
        None  # of each replica, on one node; by default 1 if the cluster has any, else 0
    )
    cpus: NonNegative = 1  # cores that Ray reserves for each replica
    address: str | None = (
        None  # ``auto``, or that of a running cluster; by default Ray starts on this machine alone
    )
    unit_tokens: Count = (
        32_768  # most of a unit, roughly: what a replica that dies or is slow at the end costs
    )


Payload = tuple[list[ChatRequest], dict[str, dict[str, list[Any]]]]
"""Requests as they travel to a replica, with their messages (pictures of several requests travel
once), and their documents by task and split.
"""


class Replica:
    """The engine, in a Ray actor; it is imported where it runs."""

    def __init__(self, engine: str, arguments: dict[str, Any]) -> None:
        self._engine, self._arguments = engine, arguments
        self._model: Any = None

    def answer(self, unit: Payload) -> tuple[list[tuple[int, Reply]], dict[str, Any], bool]:
        """The replies to a unit (of no requests while the model is loaded) with the positions of
        their requests; the engine's description, whose usage grows; whether it takes a system
        prompt.
        """
        module, _, kind = self._engine.rpartition(".")
        try:
            engine = getattr(import_module(module), kind)
        except Exception as error:  # a module may raise anything
            why = first_line(error)
            raise UsageError(
                f"engine={self._engine} cannot be imported on this node ({why})."
            ) from None
        try:
            self._model = self._model or engine(**self._arguments)
        except SystemExit as end:  # back-ends end their process with one sentence
            raise UsageError(str(end.__cause__ or end)) from None
        requests, self._model.task_dict = unit
        answered = isolated(self._model.batches(requests), self._model.answer)
        replies = [(request.position, reply) for request, reply in chain.from_iterable(answered)]
        return replies, self._model.describe(), takes_system_prompt(self._model)


def _decoded(messages: list[dict[str, Any]] | str, _: Any) -> list[dict[str, Any]]:
    """Messages as they travel, with their pictures decoded; a text is why there are none."""
    if isinstance(messages, str):
        raise MedtasksError(messages)
    decoded = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            content = [
                {**part, "url": part["url"].image}
                if isinstance(part.get("url"), EncodedPicture)
                else part
                for part in content
            ]
        decoded.append({**message, "content": content})
    return decoded


@dataclass
class Unit:
    """Requests that a replica answers together, none while its model is loaded; ``attempts``
    replicas died on them.
    """

    requests: list[ChatRequest]
    cost: int = 0
    attempts: int = 0
    payload: Any = None  # a future of the `Payload`


def units_of(requests: Sequence[ChatRequest], tokens: int, least: int = 1) -> list[Unit]:
    """The requests in units of at most ``tokens`` tokens, or a single request, longest first; those
    that share media are together, and a picture costs its tokens once. Units are made smaller where
    there are fewer than ``least``.
    """
    units: list[Unit] = []
    media: tuple[str, ...] = ()
    for request in sorted(
        requests, key=lambda one: (one.media, one.item_id, one.task, one.sample_id, one.repeat)
    ):
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
    """Answers with several replicas of another back-end (:class:`RayArguments`). Errors in
    arguments, and an engine that cannot be started, end the process with one sentence and exit code
    1.
    """

    runs_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        self._given = given = RayArguments.read(arguments)
        if current_settings().processes > 1:
            raise UsageError(
                "medtasks_ray runs as one process; start it without accelerate and torchrun."
            )
        super().__init__()
        self._ray = ray = _started(given.address)
        self._head_seen = time.monotonic()
        threading.Thread(target=self._watch_head, daemon=True).start()
        has, nodes = (
            ray.cluster_resources(),
            [node["Resources"] for node in ray.nodes() if node["Alive"]],
        )
        gpus = float(bool(has.get("GPU"))) if given.gpus is None else given.gpus
        fitting = [
            int(has.get(what, 0) // each)
            for what, each in (("GPU", gpus), ("CPU", given.cpus))
            if each
        ]
        if given.address is None and min(fitting, default=given.replicas) < given.replicas:
            raise UsageError(
                f"model_args: {given.replicas} replicas of {gpus:g} GPUs and {given.cpus:g} cores do not fit on "
                f"this machine, which has {has.get('GPU', 0):g} and {has.get('CPU', 0):g}; lower replicas, gpus or "
                "cpus, or give the address of a cluster."
            )
        self._cluster = {
            "ray": ray.__version__,
            "replicas": str(given.replicas),
            "nodes": sorted(
                f"{one.get('CPU', 0):g} CPU, {one.get('GPU', 0):g} GPU" for one in nodes
            ),
        }
        self.devices = given.replicas * max(1, int(gpus))
        self._facts: dict[str, Any] = {}
        self._usage: dict[Any, dict[str, int]] = {}
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="medtasks-units")

        kind = ray.remote(num_gpus=gpus, num_cpus=given.cpus)(Replica)
        engine = f"{given.engine.__module__}.{given.engine.__qualname__}"
        self._new = functools.partial(kind.remote, engine, given.model_extra or {})
        self._idle: list[Any] = []
        self._running: dict[Any, tuple[Any, Unit]] = {}
        self._left = given.replicas
        for _ in range(self._left):
            self._load(Unit([]))
        for waited in count(1):
            self._finished(deque())
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

    def _load(self, unit: Unit) -> None:
        """Start a replica, on whatever node has room; ``unit`` counts those that died while they
        loaded.
        """
        replica = self._new()
        self._running[replica.answer.remote(([], {}))] = (replica, unit)

    def _finished(self, waiting: deque[Unit]) -> list[tuple[int, Reply]]:
        """The replies of the replica that is done first; none after a while, or if it has loaded
        its model or died.
        """
        if time.monotonic() - self._head_seen > HEAD_SILENT:
            raise MedtasksError(
                "the head of the Ray cluster does not answer; start the cluster again."
            )
        done, _ = self._ray.wait([*self._running], timeout=HEAD_EVERY)
        if not done:
            return []
        replica, unit = self._running.pop(done[0])
        try:
            replies, facts, self.takes_system_prompt = self._ray.get(done[0])
        except self._ray.exceptions.RayTaskError as error:
            raise UsageError(str(error.cause)) from None
        except self._ray.exceptions.RayError as error:  # the replica or its node died
            unit.attempts += 1
            again = unit.attempts < ATTEMPTS
            if unit.requests:
                self._load(Unit([]))
                reason = f"{ATTEMPTS} replicas died while they answered it ({type(error).__name__})"
                waiting.extendleft([unit] * again)
                return (
                    []
                    if again
                    else [(request.position, Reply.failure(reason)) for request in unit.requests]
                )
            if again:
                self._load(unit)
                return []
            self._left -= 1
            logger.warning(
                f"medtasks_ray: a replica died {ATTEMPTS} times while it loaded ({type(error).__name__})"
            )
            if not self._left:
                raise MedtasksError(
                    "all replicas died while they loaded the model; look at Ray's logs, or give each more memory."
                ) from error
            return []
        self._facts = facts if unit.requests else self._facts or facts
        self._usage[replica] = facts.get("usage", {})
        self._idle.append(replica)
        return list(replies) if unit.requests else []

    def describe(self) -> dict[str, Any]:
        """The engine's description, with the usage of all replicas summed, and the cluster at the
        beginning.
        """
        usage: Counter[str] = Counter()
        for counts in self._usage.values():
            usage.update(counts)
        return {**self._facts, "cluster": self._cluster, "usage": dict(usage)}

    def stream(self, requests: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        """Yield positions and replies of each unit as it finishes, in any order; padding requests
        are left out.
        """
        for _, unit in self._running.values():
            unit.requests = []  # of a stream that was interrupted: its positions are not those of this one
        read = read_requests(requests, self.task_dict)
        waiting = deque(units_of(read, self._given.unit_tokens, UNITS_EACH * self._left))
        left = len(read)
        with tqdm(total=left, desc="medtasks_ray", unit="sample") as bar:
            while left:
                for unit in islice(waiting, 2):  # the next units are ready when a replica is
                    unit.payload = unit.payload or self._preparing.submit(
                        self._payload, unit.requests
                    )
                if self._idle and waiting:
                    unit, replica = waiting.popleft(), self._idle.pop()
                    self._running[replica.answer.remote(unit.payload.result())] = (replica, unit)
                elif answered := self._finished(waiting):
                    loading = sum(not unit.requests for _, unit in self._running.values())
                    bar.set_postfix(replicas=self._left - loading, refresh=False)
                    bar.update(len(answered))
                    left -= len(answered)
                    yield answered

    def _payload(self, requests: Sequence[ChatRequest]) -> Payload:
        travelling: list[ChatRequest] = []
        documents: dict[str, dict[str, list[Any]]] = {}
        with using(), encoded_pictures():  # the environment is read once
            for (task, split), group in groupby(
                requests, key=lambda request: (request.task, request.split)
            ):
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
                    made = functools.partial(_decoded, messages)
                    travelling.append(replace(request, doc_id=len(placed), to_messages=made))
                    placed.append({name: document[name] for name in FIELDS if name in document})
        return travelling, documents

    def clean(self) -> None:
        """Stop the replicas; the harness calls this once it has all answers."""
        self._idle.clear()
        self._running.clear()
        self._ray.shutdown()
        super().clean()


def _started(address: str | None) -> Any:
    """Ray, connected to the cluster at ``address`` or, without one, started on this machine,
    without its dashboard.
    """
    for name in (
        "RAY_USAGE_STATS_ENABLED",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO",
    ):  # both make Ray print warnings
        os.environ.setdefault(name, "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            f"medtasks_ray needs Ray ({first_line(error)}): pip install 'medtasks[ray]'."
        ) from None
    own = {"include_dashboard": False} if address is None else {}
    host, _, port = (address or "").rpartition(":")
    try:
        if host and port.isdecimal():  # Ray tries for ten minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(
            address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            ignore_reinit_error=True,
            **own,
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"model_args: no Ray cluster answers at address={address} ({first_line(error)}); start one with "
            "`ray start --head`, with RAY_AUTH_MODE and RAY_AUTH_TOKEN as here, or leave address out."
        ) from error
    return ray
