"""Settings from the environment as one typed object; the only module that reads ``MEDTASKS_…``
variables.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from medtasks.core.errors import INTERRUPTED, UsageError

MAX_FAILED = 0.01
"""Share of requests that may fail by default."""


@dataclass(frozen=True)
class Subset:
    """A ``share`` of each task's clusters (patients, images, videos), whole ones, rounded up.

    Clusters are ordered by a hash of ``seed`` and name, and the first are taken. Hence every task
    is a stratum, a smaller share is part of a larger one, and tasks with the same clusters get the
    same ones.
    """

    share: float
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.share:g}@{self.seed}"

    def of(self, documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The documents of the chosen clusters, in their order."""
        clusters = dict.fromkeys(document["cluster"] for document in documents)
        count = math.ceil(self.share * len(clusters))
        chosen = set(sorted(clusters, key=self._hash)[:count])
        return [document for document in documents if document["cluster"] in chosen]

    def _hash(self, cluster: str) -> bytes:
        text = f"{self.seed}\0{cluster}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def read_subset(text: str) -> Subset | None:
    """The subset that ``text`` describes: a share, or ``share@seed``; None for an empty one.

    >>> str(read_subset("0.25")), str(read_subset("0.1@7"))
    ('0.25@0', '0.1@7')
    """
    share, _, seed = text.partition("@")
    with suppress(ValueError):
        subset = Subset(float(share), int(seed or 0))
        if 0 < subset.share < 1:
            return subset
    if not text:
        return None
    expected = "a share of the clusters between 0 and 1, or share@seed (0.25@0)"
    raise UsageError(f"MEDTASKS_SUBSET is {text!r}, expected {expected}.")


@dataclass(frozen=True)
class Pace:
    """Rounds of streams are sent when they are due in real time.

    ``frames_per_second`` turns the times of image sequences, which are frame numbers, into seconds;
    without it, such streams cannot be paced.
    """

    frames_per_second: float | None = None

    def __str__(self) -> str:
        if self.frames_per_second is None:
            return "realtime"
        return f"realtime@{self.frames_per_second:.12g}"

    def seconds(self, duration: float, *, in_seconds: bool) -> float | None:
        """A duration of a stream in seconds; None if it is in frames of an unknown rate."""
        if in_seconds:
            return duration
        if self.frames_per_second is None:
            return None
        return duration / self.frames_per_second


def read_pace(text: str) -> Pace | None:
    """The pace that ``text`` describes: ``realtime``, or ``realtime@FPS``; None for an empty one.

    >>> [str(read_pace(f"realtime{rate}")) for rate in ("", "@25", "@23.976023976")]
    ['realtime', 'realtime@25', 'realtime@23.976023976']
    """
    if not text:
        return None
    name, separator, rate = text.partition("@")
    if name == "realtime" and not separator:
        return Pace()
    with suppress(ValueError):
        frames_per_second = float(rate)
        if name == "realtime" and 0 < frames_per_second < math.inf:
            return Pace(frames_per_second)
    expected = "realtime, or realtime@FPS with the frames per second of image sequences"
    raise UsageError(f"MEDTASKS_PACE is {text!r}, expected {expected} (realtime@25).")


class Consent(Enum):
    """Whether a run may download data that it needs (``MEDTASKS_DOWNLOAD``)."""

    YES = "yes"
    NO = "no"
    ASK = ""


@dataclass(frozen=True)
class Settings:
    """Settings of the process, on which documents, prompts and runs depend beside their options."""

    data: Path | None = None
    """Directory of prepared data (``MEDTASKS_DATA``); None for the default."""
    mini: bool = False
    """Whether miniature data are used (``MEDTASKS_DATA=mini``)."""
    miniature: frozenset[str] = frozenset()
    """Benchmarks whose miniature data are used anyway, because a run was made on them."""
    download: Consent = Consent.ASK
    """Whether a run may download data that it needs; by default, it asks on a terminal."""
    cache: Path | None = None
    """Directory for what can be rebuilt (``MEDTASKS_CACHE``); None for the user's cache."""
    max_frames: int | None = None
    """Maximum number of frames per request (``MEDTASKS_MAX_FRAMES``); None for all."""
    subset: Subset | None = None
    """Share of the clusters (``MEDTASKS_SUBSET``); None for all."""
    blind: bool = False
    """Whether prompts omit their media (``MEDTASKS_BLIND=1``): what does text alone achieve?"""
    pace: Pace | None = None
    """Whether rounds of streams are sent when they are due (``MEDTASKS_PACE=realtime``)."""
    max_failed: float = MAX_FAILED
    """Share of requests that may fail before a run has failed (``MEDTASKS_MAX_FAILED``)."""
    benchmarks: tuple[Path, ...] = ()
    """Benchmark folders of this process (``MEDTASKS_BENCHMARKS``), beside those that were added."""
    templates: Path | None = None
    """Directory of templates that precede the installed ones (``MEDTASKS_TEMPLATES``)."""
    judge: str = ""
    """The judges of a run (``MEDTASKS_JUDGE``, see :mod:`medtasks.judge.settings`), if any."""
    bertscore_layer: int | None = None
    """Layer that BERTScore compares (``MEDTASKS_BERTSCORE_LAYER``); None for the metric's own."""
    rank: int = 0
    """Number of this process among those of the command (``RANK``, set by launchers)."""
    processes: int = 1
    """Number of processes of the command (``WORLD_SIZE``)."""
    on_this_machine: int = 1
    """Number of processes of the command on this machine (``LOCAL_WORLD_SIZE``)."""
    alone_on_cpu: bool = False
    """Whether ``accelerate launch --cpu`` started one process, as it does for any
    ``--num_processes``: it then sets ``MASTER_ADDR``, but no ``WORLD_SIZE``.
    """
    debug: bool = False
    """Whether errors are shown with a traceback (``--verbosity DEBUG`` of the harness)."""


_CHANGED: ContextVar[Settings | None] = ContextVar("settings", default=None)
_VARIABLES = (
    "MEDTASKS_DATA",
    "MEDTASKS_DOWNLOAD",
    "MEDTASKS_CACHE",
    "MEDTASKS_MAX_FRAMES",
    "MEDTASKS_SUBSET",
    "MEDTASKS_BLIND",
    "MEDTASKS_PACE",
    "MEDTASKS_MAX_FAILED",
    "MEDTASKS_TEMPLATES",
    "MEDTASKS_BENCHMARKS",
    "MEDTASKS_JUDGE",
    "MEDTASKS_BERTSCORE_LAYER",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "ACCELERATE_USE_CPU",
    "MASTER_ADDR",
    "VERBOSITY",
)


def current_settings() -> Settings:
    """The settings in force: those of the environment, unless a block :func:`using` others is
    running; raises `UsageError` if a variable has an invalid value.
    """
    changed = _CHANGED.get()
    if changed is not None:
        return changed
    return _settings_of(*(os.environ.get(name, "").strip() for name in _VARIABLES))


def named_checkpoint(variable: str) -> str:
    """The checkpoint that an environment variable names for a learned metric; empty if none. The
    variables of packages have any names, so these are no fields of `Settings`.
    """
    return os.environ.get(variable, "").strip()


@contextmanager
def using(**changes: Any) -> Iterator[None]:
    """Change these settings within the block, for this thread."""
    token = _CHANGED.set(replace(current_settings(), **changes))
    try:
        yield
    finally:
        _CHANGED.reset(token)


@functools.lru_cache(maxsize=8)
def _settings_of(*values: str) -> Settings:
    """The settings of these values of `_VARIABLES`."""
    environment = dict(zip(_VARIABLES, values, strict=True))
    is_mini = environment["MEDTASKS_DATA"] == "mini"
    is_on_cpu = environment["ACCELERATE_USE_CPU"].lower() == "true"
    has_address = environment["MASTER_ADDR"] != ""
    return Settings(
        blind=_is_blind(environment["MEDTASKS_BLIND"]),
        pace=read_pace(environment["MEDTASKS_PACE"]),
        max_failed=_share_of_failures(environment["MEDTASKS_MAX_FAILED"]),
        data=None if is_mini else _directory(environment["MEDTASKS_DATA"]),
        mini=is_mini,
        download=_consent(environment["MEDTASKS_DOWNLOAD"]),
        cache=_directory(environment["MEDTASKS_CACHE"]),
        max_frames=_count(environment, "MEDTASKS_MAX_FRAMES"),
        subset=read_subset(environment["MEDTASKS_SUBSET"]),
        templates=_directory(environment["MEDTASKS_TEMPLATES"]),
        benchmarks=_directories(environment["MEDTASKS_BENCHMARKS"]),
        judge=environment["MEDTASKS_JUDGE"],
        bertscore_layer=_count(environment, "MEDTASKS_BERTSCORE_LAYER"),
        rank=int(environment["RANK"] or 0),
        processes=int(environment["WORLD_SIZE"] or 1),
        on_this_machine=int(environment["LOCAL_WORLD_SIZE"] or 1),
        alone_on_cpu=is_on_cpu and has_address and not environment["WORLD_SIZE"],
        debug=environment["VERBOSITY"] == "DEBUG",
    )


def _directory(value: str) -> Path | None:
    return Path(value).expanduser() if value else None


def _directories(value: str) -> tuple[Path, ...]:
    """The directories in a list such as that of ``PATH``."""
    names = [name.strip() for name in value.split(os.pathsep)]
    return tuple(Path(name).expanduser() for name in names if name)


def _count(environment: Mapping[str, str], variable: str) -> int | None:
    """The value of a variable that is a number of at least 1; None if it is empty."""
    value = environment[variable]
    if not value:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(f"{variable} is {value!r}, expected a whole number of at least 1.")
    return int(value)


def _consent(value: str) -> Consent:
    """The value of ``MEDTASKS_DOWNLOAD``."""
    try:
        return Consent(value.lower())
    except ValueError as error:
        expected = "yes (a run downloads data that it needs) or no (it never asks)"
        raise UsageError(f"MEDTASKS_DOWNLOAD is {value!r}, expected {expected}.") from error


def _is_blind(value: str) -> bool:
    """The value of ``MEDTASKS_BLIND``."""
    if value not in ("", "0", "1"):
        raise UsageError(f"MEDTASKS_BLIND is {value!r}, expected 1 (prompts without media) or 0.")
    return value == "1"


def _share_of_failures(value: str) -> float:
    """The value of ``MEDTASKS_MAX_FAILED``, by default `MAX_FAILED`."""
    if not value:
        return MAX_FAILED
    with suppress(ValueError):
        share = float(value)
        if 0 <= share <= 1:
            return share
    raise UsageError(
        f"MEDTASKS_MAX_FAILED is {value!r}, expected a share from 0 to 1, for example 0.01."
    )


def stopped(kept: str) -> SystemExit:
    """Report an interrupted command, once for all processes, and return the exception to raise."""
    if current_settings().rank == 0:
        print(f"medtasks: stopped; {kept}.", file=sys.stderr, flush=True)
    return SystemExit(INTERRUPTED)
