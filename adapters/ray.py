"""``medtasks_ray``: another back-end of ours, in replicas on a Ray cluster or on this machine.

Ray starts the replicas and moves pictures. This module divides requests into units and gives each
idle replica the next one; a new replica takes the place of one that died. Replies are passed on as
units finish, so the harness stores them at once. Nodes need the package and the checkpoint, but
neither prepared data nor a shared file system.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from itertools import count, islice
from typing import Annotated, Any, ClassVar

from loguru import logger
from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError
from tqdm import tqdm

from medtasks.core.errors import MedtasksError, UsageError, exit_with_sentence, first_line
from medtasks.core.settings import current_settings
from medtasks.runs.our_back_ends import BACK_ENDS, require_packages_of
from medtasks.runs.replies import Reply

from ._base import MedtasksAdapter
from ._ray_cluster import described_nodes, refuse_too_many_replicas, started_ray
from ._ray_replica import Replica
from ._ray_units import UNITS_EACH, Unit, payload_of, units_of
from ._requests import read_requests
from ._settings import BackEndSettings, Count, NonNegative

ENGINES = {
    name.removeprefix("medtasks_"): back_end.path
    for name, back_end in BACK_ENDS.items()
    if back_end.in_replicas
}
ATTEMPTS = 3
"""Replicas that die on a unit before its requests fail, or while loading before one is given up."""
HEAD_EVERY = 5.0
"""Seconds between requests to the cluster's head."""
HEAD_SILENT = 30.0
"""Seconds without an answer of the head after which the run ends.

After 60, Ray would end the process itself, without a message that says how to go on.
"""


def _engine(name: str) -> Any:
    """The class of the back-end ``name``, one of ours or the path of a class.

    Raises:
        MissingExtraError: packages of a back-end of ours are not installed.
    """
    require_packages_of(f"medtasks_{name}")
    try:
        module, _, kind = ENGINES.get(str(name), str(name)).rpartition(".")
        return getattr(import_module(module), kind)
    except Exception as error:  # a module may raise anything
        names = ", ".join(ENGINES)
        words = f"{names}, or a class as package.module.Class ({first_line(error)})"
        raise PydanticCustomError("expected", "{words}", {"words": words}) from error


class RayArguments(BackEndSettings):
    """Arguments of ``medtasks_ray``; all others are those of the engine."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    # the back-end that each replica runs
    engine: Annotated[type[MedtasksAdapter], BeforeValidator(_engine)] = Field(
        "vlm", validate_default=True
    )
    # the run starts with the first that is loaded; others join as the cluster has room
    replicas: Count = 1
    # of each replica, on one node; by default 1 if the cluster has any, else 0
    gpus: NonNegative | None = None
    # cores that Ray reserves for each replica
    cpus: NonNegative = 1
    # ``auto``, or that of a running cluster; by default Ray starts on this machine alone
    address: str | None = None
    # most of a unit, roughly: what a replica that dies or is slow at the end costs
    unit_tokens: Count = 32_768


class MedtasksRay(MedtasksAdapter):
    """Answers with several replicas of another back-end (:class:`RayArguments`).

    Errors in arguments, and an engine that cannot be started, end the process with one sentence and
    exit code 1.
    """

    runs_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        """Start the replicas that `RayArguments` ask for, and wait for the first one."""
        settings = RayArguments.read(arguments)
        if current_settings().processes > 1:
            raise UsageError(
                "medtasks_ray runs as one process; start it without accelerate and torchrun."
            )
        super().__init__()
        self._arguments = settings
        self._ray = started_ray(settings.address)
        self._head_seen = time.monotonic()
        threading.Thread(target=self._watch_head, daemon=True).start()
        gpus = self._gpus_per_replica()
        self._cluster = {
            "ray": self._ray.__version__,
            "replicas": str(settings.replicas),
            "nodes": described_nodes(self._ray),
        }
        self.devices = settings.replicas * max(1, int(gpus))
        self._facts: dict[str, Any] = {}
        self._usage: dict[Any, dict[str, int]] = {}
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="medtasks-units")

        self._new_replica = self._replica_factory(gpus)
        self._idle: list[Any] = []
        # the replica and its unit, by Ray's reference to their result
        self._running: dict[Any, tuple[Any, Unit]] = {}
        self._left = settings.replicas
        for _ in range(self._left):
            self._load(Unit([]))
        self._wait_for_first_replica()

    def _gpus_per_replica(self) -> float:
        """The GPUs of each replica, by default 1 if the cluster has any, else 0.

        Raises:
            UsageError: the replicas do not fit on this machine, where Ray was started.
        """
        settings = self._arguments
        resources = self._ray.cluster_resources()
        gpus = settings.gpus
        if gpus is None:
            gpus = 1.0 if resources.get("GPU") else 0.0
        if settings.address is None:
            refuse_too_many_replicas(settings.replicas, gpus, settings.cpus, resources)
        return gpus

    def _replica_factory(self, gpus: float) -> Callable[[], Any]:
        """A function that has Ray create a replica of the engine with so many GPUs."""
        settings = self._arguments
        actor = self._ray.remote(num_gpus=gpus, num_cpus=settings.cpus)(Replica)
        engine = f"{settings.engine.__module__}.{settings.engine.__qualname__}"
        return functools.partial(actor.remote, engine, settings.model_extra or {})

    def _wait_for_first_replica(self) -> None:
        """Return once a replica has loaded its model; report twice a minute that none has."""
        for wait_number in count(1):
            self._next_replies(deque())
            if self._idle:
                return
            if wait_number % 6 == 0:  # about every half minute
                logger.info(
                    f"medtasks_ray: none of {self._arguments.replicas} replicas is loaded yet"
                )

    def _watch_head(self) -> None:
        """Note when the cluster's head has answered, until this process leaves the cluster."""
        with contextlib.suppress(Exception):
            while True:
                self._ray.nodes()
                self._head_seen = time.monotonic()
                time.sleep(HEAD_EVERY)

    def _load(self, unit: Unit) -> None:
        """Start a replica on any node that has room, and load its model.

        ``unit`` counts the replicas that died while they loaded.
        """
        replica = self._new_replica()
        self._running[replica.answer.remote(([], {}))] = (replica, unit)

    def _next_replies(self, waiting: deque[Unit]) -> list[tuple[int, Reply]]:
        """The replies of the replica that is done first.

        There are none after a while, or if a replica has loaded its model or died. A unit on which
        a replica died is put back into ``waiting``.
        """
        self._refuse_silent_head()
        finished, _ = self._ray.wait([*self._running], timeout=HEAD_EVERY)
        if not finished:
            return []
        replica, unit = self._running.pop(finished[0])
        try:
            replies, facts, self.takes_system_prompt = self._ray.get(finished[0])
        except self._ray.exceptions.RayTaskError as error:
            raise UsageError(str(error.cause)) from None
        except self._ray.exceptions.RayError as error:  # the replica or its node died
            return self._replace_replica(unit, waiting, error)
        self._usage[replica] = facts.get("usage", {})
        self._idle.append(replica)
        if not unit.requests:
            self._facts = self._facts or facts
            return []
        self._facts = facts
        return [(position, _sent_later(reply, unit.sent)) for position, reply in replies]

    def _refuse_silent_head(self) -> None:
        """End the run if the cluster's head has not answered for `HEAD_SILENT` seconds."""
        if time.monotonic() - self._head_seen > HEAD_SILENT:
            raise MedtasksError(
                "the head of the Ray cluster does not answer; start the cluster again."
            )

    def _replace_replica(
        self, unit: Unit, waiting: deque[Unit], error: Exception
    ) -> list[tuple[int, Reply]]:
        """Replace a replica that died on ``unit``; return failed replies if too many did."""
        unit.attempts += 1
        if not unit.requests:
            self._load_again(unit, error)
            return []
        self._load(Unit([]))
        return self._send_again(unit, waiting, error)

    def _load_again(self, unit: Unit, error: Exception) -> None:
        """Replace a replica that died while it loaded, unless too many did."""
        if unit.attempts < ATTEMPTS:
            self._load(unit)
            return
        self._left -= 1
        logger.warning(
            f"medtasks_ray: a replica died {ATTEMPTS} times while it loaded "
            f"({type(error).__name__})"
        )
        if not self._left:
            raise MedtasksError(
                "all replicas died while they loaded the model; look at Ray's logs, or give each "
                "more memory."
            ) from error

    def _send_again(
        self, unit: Unit, waiting: deque[Unit], error: Exception
    ) -> list[tuple[int, Reply]]:
        """Put a unit on which a replica died first in line; fail its requests if too many did."""
        if unit.attempts < ATTEMPTS:
            waiting.appendleft(unit)
            return []
        reason = f"{ATTEMPTS} replicas died while they answered it ({type(error).__name__})"
        return [(request.position, Reply.failure(reason)) for request in unit.requests]

    def describe(self) -> dict[str, Any]:
        """The engine's description with the summed usage of all replicas, and the cluster.

        The cluster is described as it was at the beginning.
        """
        usage: Counter[str] = Counter()
        for counts in self._usage.values():
            usage.update(counts)
        return {**self._facts, "cluster": self._cluster, "usage": dict(usage)}

    def stream(self, requests: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        """Yield positions and replies of each unit as it finishes, without padding."""
        for _, unit in self._running.values():
            # Left by a stream that was interrupted: its positions are not those of this one.
            unit.requests = []
        chat_requests = read_requests(requests, self.task_dict)
        least = UNITS_EACH * self._left
        waiting = deque(units_of(chat_requests, self._arguments.unit_tokens, least))
        unanswered = len(chat_requests)
        with tqdm(total=unanswered, desc="medtasks_ray", unit="sample") as bar:
            while unanswered:
                self._prepare_payloads(waiting)
                if self._idle and waiting:
                    self._send(waiting.popleft(), self._idle.pop())
                    continue
                replies = self._next_replies(waiting)
                if replies:
                    bar.set_postfix(replicas=self._left - self._number_loading(), refresh=False)
                    bar.update(len(replies))
                    unanswered -= len(replies)
                    yield replies

    def _prepare_payloads(self, waiting: deque[Unit]) -> None:
        """Have the payloads of the next two units prepared: they are ready when a replica is."""
        for unit in islice(waiting, 2):
            if unit.payload is None:
                unit.payload = self._preparing.submit(payload_of, unit.requests, self.task_dict)

    def _send(self, unit: Unit, replica: Any) -> None:
        """Have an idle replica answer a unit."""
        unit.sent = time.monotonic()
        result = replica.answer.remote(unit.payload.result())
        self._running[result] = (replica, unit)

    def _number_loading(self) -> int:
        """The number of replicas that load their model."""
        return sum(not unit.requests for _, unit in self._running.values())

    def clean(self) -> None:
        """Stop the replicas; the harness calls this once it has all answers."""
        self._idle.clear()
        self._running.clear()
        self._ray.shutdown()
        super().clean()


def _sent_later(reply: Reply, seconds: float) -> Reply:
    """The reply with a timing that was sent so many seconds later."""
    if reply.timing is None:
        return reply
    return replace(reply, timing=replace(reply.timing, sent=reply.timing.sent + seconds))
