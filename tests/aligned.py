"""Reading a table that a command printed into a pipe."""

from __future__ import annotations

import re


def cells(header: str, line: str) -> dict[str, str]:
    """The cells of a line by column; columns begin where their headings do, two blanks or more
    apart.
    """
    begins = [match.start() for match in re.finditer(r"(?<!\S)\S+(?: \S+)*", header)]
    names = re.split(r" {2,}", header.strip())
    ends = [*begins[1:], None]
    return {
        name: line[begin:end].strip() for name, begin, end in zip(names, begins, ends, strict=True)
    }
