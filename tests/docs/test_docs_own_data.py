"""The mistakes on the page about one's own data: each is made in the page's table, and the message
is printed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blocks import REPOSITORY

PAGE = (REPOSITORY / "docs" / "your-own-data.md").read_text(encoding="utf-8")
Lines = list[list[str]]


def messages() -> dict[str, str]:
    """The page's messages by the mistakes that cause them."""
    section = PAGE.split("<!-- mistakes: ")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)
    return dict(rows[1:])


def changed(line: int, column: int, text: str) -> Callable[[Lines], None]:
    """A change of one cell; lines and columns count from 0."""

    def change(lines: Lines) -> None:
        lines[line][column] = text

    return change


def with_ids(lines: Lines) -> None:
    for number, line in enumerate(lines):
        line.insert(0, "id" if number == 0 else f"q{max(number, 2)}")


def without_an_image(_: Lines) -> None:
    Path("scans/1.png").write_text("not an image")


MISTAKES: dict[str, Callable[[Lines], None]] = {
    "a letter without an option": changed(2, 6, "E"),
    "an image that does not exist": changed(2, 1, "111.png"),
    "a file that is not an image": without_an_image,
    "an empty question": changed(2, 2, " "),
    "the same option twice": changed(2, 3, "two"),
    "two rows with one id": with_ids,
    "a cell too many": changed(2, 7, "MRI,"),
    "an error value of a spreadsheet": changed(2, 6, "#N/A"),
    "a column name used twice": changed(0, 0, "picture"),
    "two columns that could be the answer": changed(0, 7, "label"),
    "an encoding other than UTF-8": changed(1, 2, "Wie viele S\xe4ulen?"),
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table and the images that the page's script draws."""
    folder = tmp_path_factory.mktemp("drawn")
    script = PAGE.split("python - <<'END'\n")[1].split("\nEND\n")[0]
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)
    return folder


def test_every_mistake_of_the_page_is_made() -> None:
    assert messages().keys() == MISTAKES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_is_the_one_on_the_page(mistake: str, drawn: Path, medtasks: Any) -> None:
    shutil.copytree(drawn / "scans", "scans")
    lines = [line.split(",") for line in (drawn / "rows.csv").read_text().splitlines()]
    MISTAKES[mistake](lines)
    text = "".join(",".join(line) + "\n" for line in lines)
    Path("rows.csv").write_text(text, encoding="latin-1")
    done = medtasks("new", "my_vqa", "--from", "rows.csv")
    wanted = re.escape(messages()[mistake]).replace("…", ".*")
    assert re.search(f"medtasks: {wanted}", done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode != 0
    assert not Path("my_vqa").exists()
