"""The base of the metrics that RadEval computes (Delbrouck et al., `radeval` on PyPI)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, ClassVar

from medtasks.api import LearnedMetric, MedtasksError, MetricFacts, package_version, sign

PREFIX = "medtasks_radiology"
DEFAULT_TASKS = "mi_cxr_report"
INSTALL = "pip install 'medtasks-radiology[radeval]'"
LIBRARIES = ("radeval", "transformers")
"""The distributions whose versions can change a score."""


def tasks_to_score() -> tuple[str, ...]:
    """The tasks to which the metrics are added: those in ``MEDTASKS_RADIOLOGY_TASKS``, separated by
    commas.
    """
    names = os.environ.get("MEDTASKS_RADIOLOGY_TASKS", DEFAULT_TASKS)
    return tuple(name.strip() for name in names.split(",") if name.strip())


class RadEvalMetric(LearnedMetric):
    """A metric that RadEval's classes compute with a checkpoint on this machine.

    RadEval's own adapters download their weights. Here its classes get a local checkpoint instead,
    and a metric without one is not computed. A subclass names its ``checkpoint_hint``: what
    messages say about a checkpoint that no variable names.

    Attributes:
        libraries: the distributions whose versions are in the signature.
        choices: what else can change a score, for the signature.
        sees: the kinds of `medtasks_radiology.probes` that should lower the score, by the metric's
            publication.
    """

    install = INSTALL
    packages: tuple[str, ...] = ("radeval", "torch", "transformers")
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES
    choices: Mapping[str, str]
    sees: frozenset[str]

    def __init__(self, name: str, label: str, model: str = "") -> None:
        super().__init__(model)
        self.name = f"{PREFIX}_{name}"
        self.facts = MetricFacts(label=label, item_bounds=(0.0, 1.0))
        self.tasks = tasks_to_score()

    @property
    def signature(self) -> str:
        """The metric, its checkpoint (fingerprint or hub id), its choices and library versions."""
        versions = {name: package_version(name) for name in self.libraries}
        return sign(self.name, model=self.label() or "none", **self.choices, **versions)


def radeval_module(name: str) -> ModuleType:
    """A module below ``radeval``, imported without downloads.

    Three habits of radeval 2.2.1 are kept from our users: it fetches NLTK's sentence tokenizer when
    it is imported; its copy of RadGraph imports itself as ``RadEval``, which does not exist where
    the case of file names matters (jbdel/RadEval, issue 27); and it prints to standard output.

    Raises:
        MedtasksError: the module cannot be imported.
    """
    try:
        with printing_to_standard_error(), without_downloads():
            library = importlib.import_module("radeval")
            if importlib.util.find_spec("RadEval") is None:
                sys.modules["RadEval"] = library
            return importlib.import_module(f"radeval.{name}")
    except Exception as error:  # compiled libraries raise anything, such as ValueError for numpy
        raise MedtasksError(
            f"radeval.{name} cannot be imported ({type(error).__name__}: {error}); see the README "
            "of medtasks-radiology for the versions that fit together."
        ) from error


@contextlib.contextmanager
def printing_to_standard_error() -> Iterator[None]:
    """Keep what libraries print out of the output of commands."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def without_downloads() -> Iterator[None]:
    """Disable NLTK's downloads inside the block; the setting is process-wide."""
    import nltk

    download = nltk.download
    nltk.download = _refuse_download
    try:
        yield
    finally:
        nltk.download = download


def _refuse_download(*_: Any, **__: Any) -> bool:
    return False


def device() -> str:
    """``cuda`` if there is a GPU, else ``cpu``."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
