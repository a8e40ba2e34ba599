"""What a benchmark's package brings of its paper: published figures and the BibTeX entry."""

from __future__ import annotations

from dataclasses import dataclass

from medtasks.catalog.benchmark import Benchmark
from medtasks.core.errors import DataError
from medtasks.core.redaction import shown
from medtasks.data.sources import content_of, decoded

from ..schema.reference import Reference, load_reference
from .bibliography import entry_key


@dataclass(frozen=True)
class PaperFiles:
    """The published figures and the BibTeX entry of a benchmark.

    ``problem`` says why a file cannot be read; what it has is then left out.
    """

    reference: Reference
    bibtex: str
    problem: str


def read_paper_files(benchmark: Benchmark, *, with_figures: bool) -> PaperFiles:
    """What the benchmark's package has of its paper.

    A faulty file is a problem of one benchmark; it does not cost the board the others.
    """
    reference = Reference()
    bibtex = ""
    problems = []
    if with_figures:
        try:
            reference = load_reference(benchmark.name)
        except DataError as error:
            problems.append(shown(str(error)))
    try:
        bibtex = _bibtex(benchmark)
    except DataError as error:
        problems.append(shown(str(error)))
    return PaperFiles(reference, bibtex, problems[0] if problems else "")


def _bibtex(benchmark: Benchmark) -> str:
    """The BibTeX entry of the benchmark's paper; empty if the package has none.

    Raises:
        DataError: the file cannot be read, or is not one entry.
    """
    path = benchmark.publication.bibliography
    if path is None:
        return ""
    text = decoded(content_of(path), path.name).strip()
    if entry_key(text) is None:
        raise DataError(
            f"{path.name}: expected one BibTeX entry, such as @misc{{key, title = {{…}}}}; "
            "fix the file."
        )
    return text
