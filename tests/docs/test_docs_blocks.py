"""What README and docs show can be typed: blocks run, and what cannot run here names what
exists.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from blocks import NOT_RUN, PAGES, REPOSITORY, invocations, language, read, runs_here

WITH_SHELL = [
    path
    for path in PAGES
    for page in [read(path)]
    if any(language(region) != "python" and runs_here(page, region) for _, region in page.regions)
]


WITH_RUNS = {"python.md"}
"""Pages whose Python blocks evaluate, compare and draw whole runs, as shell blocks do."""


def name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path.name in WITH_RUNS else ())
        for path in PAGES
    ],
    ids=name,
)
def test_python_blocks_run(path: Path) -> None:
    page = read(path)
    for example in page:
        if language(example.region) != "python":
            continue
        if runs_here(page, example.region):
            example.evaluate()
        else:
            ast.parse(str(example.parsed))


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_SHELL, ids=name)
def test_shell_blocks_run_and_print_what_the_page_shows(path: Path, tmp_path: Path) -> None:
    page = read(path)
    page.namespace["directory"] = tmp_path
    for example in page:
        if language(example.region) != "python" and runs_here(page, example.region):
            example.evaluate()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_commands_options_tasks_and_back_ends_exist(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in invocations(read(path)):
        if words[0] == "medtasks":
            check_ours(words)
        else:
            check_harness(words, monkeypatch)


def check_ours(words: list[str]) -> None:
    import typer

    from medtasks.cli.app import app

    command: Any = typer.main.get_command(app)
    rest = words[1:]
    while rest and hasattr(command, "get_command"):
        name = rest.pop(0)
        command = command.get_command(typer.Context(command), name)
        assert command is not None or name.isupper() or name == "…", (
            f"{' '.join(words)}: no such command"
        )
    if command is None:
        return
    options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    unknown = [word for word in rest if word.startswith("--") and word not in options]
    assert not unknown, f"{' '.join(words)}: no such option"


def check_harness(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.__main__ import parse_eval_args
    from lmms_eval.models import MODEL_REGISTRY_V2

    from medtasks.catalog.contents import task_files

    monkeypatch.setattr(sys, "argv", [word for word in words if word != "…"])
    _, given = parse_eval_args()  # ends the process where an option does not exist
    if "--model" in words and given.model.islower():
        assert MODEL_REGISTRY_V2.resolve(given.model)
    known = set(task_files())
    known |= {path.stem for path in REPOSITORY.glob("examples/*/src/*/tasks/**/*.yaml")}
    wanted = [task for task in (given.tasks or "").split(",") if re.fullmatch(r"[a-z0-9_]+", task)]
    made_up = ("acme_", "my_")  # what pages create
    assert [task for task in wanted if task not in known and not task.startswith(made_up)] == []


def test_the_reason_why_a_block_is_not_run_is_given_above_it() -> None:
    pages = [read(path) for path in PAGES]
    found = sum(
        bool(NOT_RUN.search(page.text[: region.start]))
        for page in pages
        for _, region in page.regions
    )
    assert found == sum(page.text.count("<!-- not run") for page in pages) > 0
