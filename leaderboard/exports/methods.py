"""How a benchmark's headline scores were made: the methods section of a paper, and its references.

Everything is read from the board: signatures (`medtasks.runs.signature`), and the facts of the runs
in the headline table. The section names every part of every signature, so that a reader can tell
what would have to be equal.
"""

from __future__ import annotations

from ..schema.board import BenchmarkBoard, Board
from .methods_protocol import (
    data_paragraph,
    decoding_paragraph,
    extraction_paragraph,
    prompts_paragraph,
)
from .methods_scores import (
    judging_paragraph,
    scores_paragraph,
    signatures_paragraph,
    software_paragraph,
    statistics_paragraph,
)
from .methods_source import MethodsSource
from .prose import Paragraph, as_latex, as_markdown, citations
from .references import own_entry, paper_entry, paper_key, shipped_entries


def methods_of(board: Board, benchmark: BenchmarkBoard) -> list[Paragraph]:
    """The paragraphs of the methods section; one sentence if the headline table has no score."""
    source = MethodsSource.of(board, benchmark)
    if not source.scores:
        return [Paragraph("Methods", (("No comparable run has a headline score.",),))]
    paragraphs = [
        data_paragraph(source),
        prompts_paragraph(source),
        decoding_paragraph(source),
        extraction_paragraph(source),
        scores_paragraph(source),
        judging_paragraph(source),
        statistics_paragraph(source),
        software_paragraph(source),
        signatures_paragraph(source),
    ]
    return [paragraph for paragraph in paragraphs if paragraph.sentences or paragraph.items]


def methods_markdown(board: Board, benchmark: BenchmarkBoard) -> str:
    """The methods section in Markdown, with citations as Pandoc reads them."""
    return as_markdown(f"Methods: {benchmark.title}", methods_of(board, benchmark))


def methods_latex(board: Board, benchmark: BenchmarkBoard) -> str:
    """The methods section in LaTeX; it needs no package."""
    return as_latex(f"Methods: {benchmark.title}", methods_of(board, benchmark))


def references_of(board: Board, benchmark: BenchmarkBoard) -> str:
    """The BibTeX entries that the methods section cites, in the order of their mention."""
    entries = shipped_entries()
    entries[paper_key(benchmark)] = paper_entry(benchmark)
    entries["medtasks"] = own_entry(board)
    cited = citations(methods_of(board, benchmark))
    return "\n\n".join(entries[key] for key in cited) + "\n"
