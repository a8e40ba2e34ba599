"""The BibTeX entries that a methods section can cite."""

from __future__ import annotations

from pathlib import Path

from ..board.bibliography import entry_key, made_entry
from ..schema.board import BenchmarkBoard, Board
from .latex_filters import latex_escaped


def paper_entry(benchmark: BenchmarkBoard) -> str:
    """The BibTeX entry of the benchmark's paper: its package's, or one made of title and paper."""
    if entry_key(benchmark.bibtex) is not None:
        return benchmark.bibtex
    return made_entry(
        benchmark.name, latex_escaped(benchmark.title), latex_escaped(benchmark.paper)
    )


def paper_key(benchmark: BenchmarkBoard) -> str:
    """The citation key of the benchmark's paper."""
    return entry_key(paper_entry(benchmark)) or benchmark.name


def shipped_entries() -> dict[str, str]:
    """The entries of ``references.bib`` by key."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in text.strip().split("\n\n")]
    return {entry_key(entry) or "": entry for entry in entries}


def own_entry(board: Board) -> str:
    """The entry of medtasks, with the version that made the board."""
    version = latex_escaped(board.medtasks)
    title = "{medtasks}: Medical Vision-Language Benchmarks as Task Plug-ins for {lmms-eval}"
    return (
        "@misc{medtasks,\n"
        "  key = {medtasks},\n"
        f"  title = {{{title}}},\n"
        f"  note = {{Version {version}}}\n"
        "}"
    )
