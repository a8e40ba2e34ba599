"""A text of paragraphs, lists, names in typewriter type and citations, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from medtasks.core.text import one_line

from .latex_filters import latex_escaped
from .markdown_filters import markdown_escaped


@dataclass(frozen=True)
class Code:
    """A name, hash or signature, in typewriter type."""

    text: str


@dataclass(frozen=True)
class Citation:
    """A reference to a BibTeX entry by its key."""

    key: str


Sentence: TypeAlias = "tuple[str | Code | Citation, ...]"


@dataclass(frozen=True)
class Paragraph:
    """Sentences under a heading within the line, then a list of further sentences."""

    heading: str
    sentences: tuple[Sentence, ...]
    items: tuple[Sentence, ...] = ()


def enumerated(names: Sequence[Sentence]) -> Sentence:
    """The parts as a list in a sentence, separated by semicolons."""
    joined: list[str | Code | Citation] = []
    for number, name in enumerate(names):
        if number:
            joined.append("; ")
        joined.extend(name)
    return tuple(joined)


def citations(paragraphs: Sequence[Paragraph]) -> list[str]:
    """The keys that the text cites, in the order of their first mention."""
    keys: dict[str, None] = {}
    for paragraph in paragraphs:
        for sentence in (*paragraph.sentences, *paragraph.items):
            for piece in sentence:
                if isinstance(piece, Citation):
                    keys[piece.key] = None
    return list(keys)


# --- Markdown ---

_PLAIN_CODE = re.compile(r"[\w .,:;=+()/@*%|-]+", re.ASCII)
"""Text that a code span shows as it is."""


def as_markdown(title: str, paragraphs: Sequence[Paragraph]) -> str:
    """The text under a heading; citations are as Pandoc reads them: ``[@key]``."""
    return "\n\n".join([f"# {markdown_escaped(title)}", *_markdown_blocks(paragraphs)]) + "\n"


def _markdown_blocks(paragraphs: Sequence[Paragraph]) -> Iterator[str]:
    """The paragraphs and list items, a block each."""
    for paragraph in paragraphs:
        heading = f"**{markdown_escaped(paragraph.heading)}.**"
        lines = [heading, *map(_markdown_sentence, paragraph.sentences)]
        yield "\n".join(lines)
        for item in paragraph.items:
            yield f"- {_markdown_sentence(item)}"


def _markdown_sentence(sentence: Sentence) -> str:
    return _rendered(sentence, _markdown_code, _markdown_citation, markdown_escaped)


def _markdown_code(code: Code) -> str:
    """A name in typewriter type; escaped text where a code span would change it."""
    if _PLAIN_CODE.fullmatch(code.text):
        return f"`{code.text}`"
    return markdown_escaped(code.text)


def _markdown_citation(citation: Citation) -> str:
    return f"[@{citation.key}]"


# --- LaTeX ---

_BREAKS = re.compile(r"(?<=[|:,;=/@_])(?=.)|(?<=[0-9a-f]{8})(?=[0-9a-f]{8})")
"""Where a line may end within a name: after punctuation, and within hashes."""


def as_latex(title: str, paragraphs: Sequence[Paragraph]) -> str:
    """The text as an unnumbered subsection; citations are ``\\cite``."""
    heading = rf"\subsection*{{{latex_escaped(title)}}}"
    return "\n\n".join([heading, *_latex_blocks(paragraphs)]) + "\n"


def _latex_blocks(paragraphs: Sequence[Paragraph]) -> Iterator[str]:
    """The paragraphs, each with its list, a block each."""
    for paragraph in paragraphs:
        lines = [r"\begin{sloppypar}", rf"\paragraph{{{latex_escaped(paragraph.heading)}.}}"]
        lines.extend(map(_latex_sentence, paragraph.sentences))
        if paragraph.items:
            items = [rf"\item {_latex_sentence(item)}" for item in paragraph.items]
            lines += [r"\begin{itemize}", r"\raggedright", *items, r"\end{itemize}"]
        lines.append(r"\end{sloppypar}")
        yield "\n".join(lines)


def _latex_sentence(sentence: Sentence) -> str:
    return _rendered(sentence, _latex_code, _latex_citation, latex_escaped)


def _latex_code(code: Code) -> str:
    """A name in typewriter type that may be broken after punctuation."""
    parts = _BREAKS.split(one_line(code.text))
    breakable = r"\allowbreak{}".join(latex_escaped(part) for part in parts)
    return rf"\texttt{{{breakable}}}"


def _latex_citation(citation: Citation) -> str:
    return rf"\cite{{{citation.key}}}"


# --- Both ---


def _rendered(
    sentence: Sentence,
    code_markup: Callable[[Code], str],
    citation_markup: Callable[[Citation], str],
    escaped: Callable[[str], str],
) -> str:
    """The sentence as markup; text keeps the space around it, which escaping removes."""
    rendered: list[str] = []
    for piece in sentence:
        if isinstance(piece, Citation):
            rendered.append(citation_markup(piece))
        elif isinstance(piece, Code):
            rendered.append(code_markup(piece))
        else:
            rendered.append(_spaced(piece, escaped))
    return "".join(rendered)


def _spaced(text: str, escaped: Callable[[str], str]) -> str:
    """The escaped text with the space before and after it."""
    before = " " if text[:1].isspace() else ""
    after = " " if text.strip() and text[-1:].isspace() else ""
    return f"{before}{escaped(text)}{after}"
