"""A subset of a task's documents: a share of its clusters, drawn with a seed (``MEDTASKS_SUBSET=0.25@0``)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from medtasks.catalog.benchmark import Document
from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings

VARIABLE = "MEDTASKS_SUBSET"


@dataclass(frozen=True)
class Subset:
    """A ``share`` of each task's clusters (patients, images, videos), whole ones, rounded up.

    Clusters are ordered by a hash of ``seed`` and name, and the first are taken. Hence every task is a stratum, a
    smaller share is part of a larger one, and tasks with the same clusters get the same ones.
    """

    share: float
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.share:g}@{self.seed}"

    def of(self, documents: Sequence[Document]) -> list[Document]:
        """The documents of the chosen clusters, in their order."""
        clusters = sorted({document["cluster"] for document in documents}, key=self._place)
        chosen = set(clusters[: math.ceil(self.share * len(clusters))])
        return [document for document in documents if document["cluster"] in chosen]

    def _place(self, cluster: str) -> str:
        return hashlib.sha256(f"{self.seed}\0{cluster}".encode("utf-8", "surrogatepass")).hexdigest()


def read_subset(text: str) -> Subset:
    """The subset that ``text`` describes: a share, or ``share@seed``.

    Raises:
        UsageError: it is neither.

    >>> str(read_subset("0.25")), str(read_subset("0.1@7"))
    ('0.25@0', '0.1@7')
    """
    share, _, seed = text.partition("@")
    try:
        found = Subset(float(share), int(seed or 0))
    except ValueError:
        found = Subset(math.nan)
    if not 0 < found.share < 1:
        raise UsageError(
            f"{VARIABLE} is {text!r}, expected a share of the clusters between 0 and 1, or share@seed (0.25@0)."
        )
    return found


def current_subset() -> Subset | None:
    """The subset in ``MEDTASKS_SUBSET``; None for all documents."""
    given = current_settings().subset
    return read_subset(given) if given else None
