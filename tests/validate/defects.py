"""Defects as text, each with what is printed of it: ``defects.txt`` and ``breaks.txt``.

A section has the name of the defect, the file (after ``>`` what is validated, if it is not the file itself), the lines
that are replaced (``-``) and what replaces them (``+``), and after an empty line what is printed. To write what is
printed again after a change of the wording: ``MEDTASKS_WRITE_DEFECTS=1 pytest tests/validate``, then read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Defect(NamedTuple):
    """A defect; ``where`` are the file and what is validated, ``old`` and ``new`` the lines that differ."""

    name: str
    where: str
    old: list[str]
    new: list[str]
    printed: str

    @property
    def file(self) -> str:
        return self.where.partition(" > ")[0]

    @property
    def checked(self) -> str:
        return self.where.partition(" > ")[2] or self.file

    def plant(self, folder: Path) -> None:
        """Change the file below ``folder``; a file that does not exist gets the new lines."""
        path = folder / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        old, new = ("".join(f"{line}\n" for line in lines) for lines in (self.old, self.new))
        assert f"\n{old}" in f"\n{text}", f"{path} does not have {old!r}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"\n{text}".replace(f"\n{old}", f"\n{new}", 1)[1:], encoding="utf-8")

    def check(self, path: Path, printed: str) -> None:
        """Compare what is printed with the section in ``path``."""
        if os.environ.get("MEDTASKS_WRITE_DEFECTS") and printed != self.printed:
            everything = [one if one.name != self.name else self._replace(printed=printed) for one in read(path)]
            path.write_text("\n\n".join(map(str, everything)) + "\n", encoding="utf-8")
        assert printed == self.printed

    def __str__(self) -> str:
        change = [*(f"-{line}" for line in self.old), *(f"+{line}" for line in self.new)]
        return "\n".join([f"## {self.name}", *([self.where] if self.where else []), *change, "", self.printed])


def read(path: Path) -> list[Defect]:
    """The defects in a file."""
    defects = []
    for section in path.read_text(encoding="utf-8").removeprefix("## ").split("\n\n## "):
        head, _, printed = section.partition("\n\n")
        name, *rest = head.split("\n")
        where, change = "".join(rest[:1]), rest[1:]
        old, new = ([line[1:] for line in change if line.startswith(sign)] for sign in "-+")
        defects.append(Defect(name, where, old, new, printed.strip()))
    return defects
