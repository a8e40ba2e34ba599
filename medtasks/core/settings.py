"""Settings from the environment as one typed object; the only module that reads ``MEDTASKS_…``
variables.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
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
        names = {
            document["cluster"]: f"{self.seed}\0{document['cluster']}" for document in documents
        }
        hashes = {
            name: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            for name, text in names.items()
        }
        chosen = set(sorted(hashes, key=hashes.__getitem__)[: math.ceil(self.share * len(hashes))])
        return [document for document in documents if document["cluster"] in chosen]


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
    raise UsageError(
        f"MEDTASKS_SUBSET is {text!r}, expected a share of the clusters between 0 and 1, or share@seed (0.25@0)."
    )


@dataclass(frozen=True)
class Settings:
    """Settings of the process, on which documents, prompts and runs depend beside their options."""

    data: Path | None = None  # directory of prepared data (``MEDTASKS_DATA``); None for the default
    mini: bool = False  # whether miniature data are used (``MEDTASKS_DATA=mini``)
    miniature: frozenset[str] = (
        frozenset()
    )  # benchmarks whose miniature data a run was made on, used anyway
    cache: Path | None = (
        None  # for what can be rebuilt (``MEDTASKS_CACHE``); None for the user's cache directory
    )
    max_frames: int | None = None  # most frames per request (``MEDTASKS_MAX_FRAMES``); None for all
    subset: Subset | None = None  # share of the clusters (``MEDTASKS_SUBSET``); None for all
    blind: bool = False  # whether prompts omit their media (``MEDTASKS_BLIND=1``): what does text alone achieve?
    max_failed: float = MAX_FAILED  # share of requests that may fail before a run has failed (``MEDTASKS_MAX_FAILED``)
    templates: Path | None = (
        None  # directory of templates that precede the installed ones (``MEDTASKS_TEMPLATES``)
    )
    judge: str = ""  # the judges of a run (``MEDTASKS_JUDGE``, see :mod:`medtasks.judge.settings`); empty for none
    # checkpoints of learned metrics, and the layer that BERTScore compares
    # (``MEDTASKS_BERTSCORE_MODEL``, ``MEDTASKS_BLEURT_MODEL``, ``MEDTASKS_BERTSCORE_LAYER``); empty
    # or None for the metrics' own
    bertscore_model: str = ""
    bertscore_layer: int | None = None
    bleurt_model: str = ""
    # number of this process among those of the command, and how many there are, in all and on this
    # machine (``RANK``, ``WORLD_SIZE`` and ``LOCAL_WORLD_SIZE``, set by launchers)
    rank: int = 0
    processes: int = 1
    on_this_machine: int = 1
    # whether ``accelerate launch --cpu`` started one process, as it does for any
    # ``--num_processes``: it then sets ``MASTER_ADDR``, but no ``WORLD_SIZE``
    alone_on_cpu: bool = False
    debug: bool = (
        False  # whether errors are shown with a traceback (``--verbosity DEBUG`` of the harness)
    )


_CHANGED: ContextVar[Settings | None] = ContextVar("settings", default=None)
_VARIABLES = ("MEDTASKS_DATA", "MEDTASKS_CACHE", "MEDTASKS_MAX_FRAMES", "MEDTASKS_SUBSET", "MEDTASKS_BLIND",
              "MEDTASKS_MAX_FAILED", "MEDTASKS_TEMPLATES", "MEDTASKS_JUDGE",
              "MEDTASKS_BERTSCORE_MODEL", "MEDTASKS_BERTSCORE_LAYER", "MEDTASKS_BLEURT_MODEL", "RANK", "WORLD_SIZE",
              "LOCAL_WORLD_SIZE", "ACCELERATE_USE_CPU", "MASTER_ADDR", "VERBOSITY")  # fmt: skip


def current_settings() -> Settings:
    """The settings in force: those of the environment, unless a block :func:`using` others is
    running; raises `UsageError` if a variable has an invalid value.
    """
    return _CHANGED.get() or _read(*(os.environ.get(name, "").strip() for name in _VARIABLES))


@contextmanager
def using(**changes: Any) -> Iterator[None]:
    """Change these settings within the block, for this thread."""
    token = _CHANGED.set(replace(current_settings(), **changes))
    try:
        yield
    finally:
        _CHANGED.reset(token)


@functools.lru_cache(maxsize=8)
def _read(*values: str) -> Settings:
    given = dict(zip(_VARIABLES, values, strict=True))

    def count(variable: str) -> int | None:
        value = given[variable]
        if value and (not value.isdecimal() or int(value) < 1):
            raise UsageError(f"{variable} is {value!r}, expected a whole number of at least 1.")
        return int(value) if value else None

    def path(variable: str) -> Path | None:
        return Path(given[variable]).expanduser() if given[variable] else None

    blind, mini = given["MEDTASKS_BLIND"], given["MEDTASKS_DATA"] == "mini"
    if blind not in ("", "0", "1"):
        raise UsageError(f"MEDTASKS_BLIND is {blind!r}, expected 1 (prompts without media) or 0.")
    failed, max_failed = given["MEDTASKS_MAX_FAILED"] or str(MAX_FAILED), -1.0
    with suppress(ValueError):
        max_failed = float(failed)
    if not 0 <= max_failed <= 1:
        raise UsageError(
            f"MEDTASKS_MAX_FAILED is {failed!r}, expected a share from 0 to 1, for example 0.01."
        )
    return Settings(
        data=None if mini else path("MEDTASKS_DATA"),
        mini=mini,
        cache=path("MEDTASKS_CACHE"),
        max_frames=count("MEDTASKS_MAX_FRAMES"),
        subset=read_subset(given["MEDTASKS_SUBSET"]),
        blind=blind == "1",
        max_failed=max_failed,
        templates=path("MEDTASKS_TEMPLATES"),
        judge=given["MEDTASKS_JUDGE"],
        bertscore_model=given["MEDTASKS_BERTSCORE_MODEL"],
        bertscore_layer=count("MEDTASKS_BERTSCORE_LAYER"),
        bleurt_model=given["MEDTASKS_BLEURT_MODEL"],
        rank=int(given["RANK"] or 0),
        processes=int(given["WORLD_SIZE"] or 1),
        on_this_machine=int(given["LOCAL_WORLD_SIZE"] or 1),
        alone_on_cpu=given["ACCELERATE_USE_CPU"].lower() == "true"
        and given["MASTER_ADDR"] != ""
        and not given["WORLD_SIZE"],
        debug=given["VERBOSITY"] == "DEBUG",
    )


def stopped(kept: str) -> SystemExit:
    """Report an interrupted command, once for all processes, and return the exception to raise."""
    if current_settings().rank == 0:
        print(f"medtasks: stopped; {kept}.", file=sys.stderr, flush=True)
    return SystemExit(INTERRUPTED)
