"""BibTeX entries as text: their keys, and entries for papers without one."""

from __future__ import annotations

import re

from medtasks.core.files import short_hash

_ENTRY = re.compile(r"@(?P<kind>[A-Za-z]+)\{\s*(?P<key>[A-Za-z0-9][A-Za-z0-9.:-]*)\s*,")
_ARXIV = re.compile(r"arXiv[: ]\s*(?P<number>\d{4}\.\d{4,5})(?:v\d+)?")
_UNSAFE = re.compile(r"[^a-z0-9]+")


def entry_key(text: str) -> str | None:
    """The citation key of a text that is one BibTeX entry; None if it is not one.

    >>> entry_key("@misc{cho2026, title = {MI-CXR}}")
    'cho2026'
    >>> entry_key("@misc{a, title = {{x}}"), entry_key("see the paper")
    (None, None)
    """
    head = _ENTRY.match(text)
    if head is None:
        return None
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "}" and depth == 0:
            return head["key"] if place == len(text) - 1 else None
    return None


def made_entry(name: str, title: str, paper: str) -> str:
    """A BibTeX entry of the benchmark ``name``. ``title`` and ``paper`` must be escaped for LaTeX.

    >>> print(made_entry("pond_vqa", "PondVQA", "arXiv 2601.01234"))
    @misc{pondvqa,
      title = {{PondVQA}},
      eprint = {2601.01234},
      archivePrefix = {arXiv}
    }
    """
    key = _UNSAFE.sub("", name.casefold())
    fields = [f"title = {{{{{title}}}}}"]
    number = _ARXIV.fullmatch(paper.strip())
    if number is not None:
        fields += [f"eprint = {{{number['number']}}}", "archivePrefix = {arXiv}"]
    elif paper:
        fields.append(f"howpublished = {{{paper}}}")
    body = ",\n  ".join(fields)
    return f"@misc{{{key or short_hash(name)},\n  {body}\n}}"
