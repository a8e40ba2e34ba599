"""The fenced code blocks of README and docs, read by Sybil, and how shell blocks are run.

A block that cannot run here (hub, GPU, credentials, files of the reader's) has ``<!-- not run: why
-->`` in the line above its fence. What it names has to exist all the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from quiet import noise
from sybil import Document, Example, Region
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")])
NOT_RUN = re.compile(r"<!-- not run: .{10,} -->\n\Z")
RUN_ELSEWHERE = re.compile(r"<!-- (?:demo|test|tutorial) commands? -->\n\Z")
"""Above blocks that ``.ci/run`` or another test takes from the page."""
INLINE = re.compile(r"`(medtasks [a-z][^`]*)`")
PROGRAMS = """
medtasks() { "$PYTHON" -m medtasks "$@"; }
lmms-eval() { "$PYTHON" -m lmms_eval "$@"; }
torchrun() { "$PYTHON" -m torch.distributed.run "$@"; }
python() { "$PYTHON" "$@"; }
"""


def read(path: Path) -> Document:
    """The page with its ``bash``, ``console`` and ``python`` blocks."""
    shell = [CodeBlockParser(language, run_shell) for language in ("bash", "console")]
    return Document.parse(str(path), *shell, PythonCodeBlockParser())


def language(region: Region) -> str:
    assert region.lexemes is not None
    return str(region.lexemes["arguments"])


def runs_here(page: Document, region: Region) -> bool:
    above = page.text[: region.start]
    return not (NOT_RUN.search(above) or RUN_ELSEWHERE.search(above))


def invocations(page: Document) -> Iterator[list[str]]:
    """The words of every call of ``medtasks`` or ``lmms-eval``, in shell blocks and within
    sentences.
    """
    scripts = [str(region.parsed) for _, region in page.regions if language(region) != "python"]
    lines = "\n".join(scripts).replace("\\\n", " ").splitlines()
    for line in [*lines, *(" ".join(found.split()) for found in INLINE.findall(page.text))]:
        words = line.removeprefix("$ ").partition(" #")[0].split()
        while words and re.match(r"\w+=", words[0]):
            words = words[1:]  # a variable of this call
        if "lmms_eval" in words:
            words = ["lmms-eval", *words[words.index("lmms_eval") + 1 :]]
        if words and words[0] in ("medtasks", "lmms-eval"):
            yield words[: words.index("|")] if "|" in words else words


def run_shell(example: Example) -> str | None:
    """Run a block in its page's directory; what went wrong, for ``console`` also a line that was
    not printed.
    """
    script = str(example.parsed)
    calls = re.split(r"^\$ ", script, flags=re.MULTILINE)[
        1:
    ]  # of a console: a command and what it prints
    if calls:
        script = "".join(f"echo @@\n{call.partition(chr(10))[0]}\n" for call in calls)
    directory = example.namespace["directory"]
    added = {"XDG_CONFIG_HOME": str(directory / ".config")}  # the benchmarks that the page adds
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", PROGRAMS + script],
        cwd=directory,
        env={**os.environ, **added, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}"
    if unexpected := noise(done.stdout, done.stderr):
        return f"neither ours nor the harness's: {unexpected[:20]}"
    printed = re.split(r"^@@\n", done.stdout, flags=re.MULTILINE)[1:]
    pairs = zip(calls, printed, strict=True)
    return next(
        filter(None, (unlike(call.splitlines()[1:], output) for call, output in pairs)), None
    )


def unlike(shown: list[str], printed: str) -> str | None:
    """The first line of ``shown`` that was not printed, in order; ``…`` is anything, blanks count
    as one.
    """
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in shown:
        wanted = re.escape(" ".join(line.split())).replace("…", ".*")
        if not any(re.fullmatch(wanted, one) for one in lines):
            return f"not printed: {line}\n{printed[-3000:]}"
    return None
