"""The command line of lmms-eval, checked before the harness acts on it.

The harness answers an unknown task with a traceback and exit code 0, and other mistakes only when
the model is loaded. ``medtasks run`` checks its arguments before the harness is imported.
``lmms-eval`` itself imports torch before it calls any plug-in; the entry point is the first moment
at which medtasks can look: no task is indexed yet, no logger started, no model loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medtasks.catalog.benchmark_folder import is_benchmark_folder, load_benchmark_folder
from medtasks.catalog.contents import forget_packages, task_files
from medtasks.catalog.folders_in_use import include
from medtasks.core.errors import MedtasksError, UsageError, reading
from medtasks.core.extras import require
from medtasks.core.schema import suggestion
from medtasks.core.settings import current_settings
from medtasks.core.text import first_names
from medtasks.core.yaml_files import MarkedLoader, read_yaml
from medtasks.runs.our_back_ends import require_packages_of

from .options import REASONING_TAGS, refuse_incomplete, refuse_options

_LISTINGS = ("list", "list_groups", "list_tags", "list_subtasks")
_FLAGS = (
    "apply_chat_template",
    "check_integrity",
    "fewshot_as_multiturn",
    "log_samples",
    "power-analysis",
    "swanlab_log_samples",
    "wandb_log_samples",
)
_TEXTS = (
    "baseline",
    "cache_requests",
    "config",
    "hf_hub_log_args",
    "include_path",
    "launcher_args",
    "model",
    "output_path",
    "tasks",
    "wandb_args",
)
_IGNORED = frozenset({"__pycache__", ".ipynb_checkpoints"})
"""Directories of ``--include_path`` that the harness does not look into."""
_NUMBERS = {"limit": float, "max_tokens": int, "num_fewshot": int, "offset": int}


@dataclass(frozen=True)
class Command:
    """One evaluation of a command line: its options by name, and its tasks."""

    options: Mapping[str, Any]
    tasks: tuple[str, ...]

    @property
    def ours(self) -> list[str]:
        """The tasks and groups of medtasks that the names or patterns select."""
        return [name for name in task_files() if self._selects(name)]

    def _selects(self, name: str) -> bool:
        """Whether a name or pattern of the command matches the task ``name``."""
        return any(fnmatch(name, pattern) for pattern in self.tasks)

    @property
    def missing(self) -> list[str]:
        """The names that neither lmms-eval nor an installed or included package defines."""
        from .task_names import harness_names, names_in_folder

        unknown = [task for task in self.tasks if not _is_known(task)]
        if not unknown or os.environ.get("LMMS_EVAL_PLUGINS"):  # whose tasks only the harness finds
            return []
        names = harness_names()
        include_path = self.options["include_path"]
        if include_path:
            names |= names_in_folder(Path(include_path))
        return [task for task in unknown if task not in names]


def _is_known(task: str) -> bool:
    """Whether a name is ours, a listing, a pattern or a path."""
    return task in task_files() or task in _LISTINGS or "*" in task or Path(task).exists()


def _parser() -> argparse.ArgumentParser:
    """A parser of the options that are checked, as lmms-eval's own reads them."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    for name in _FLAGS:
        parser.add_argument(f"--{name}", action="store_true")
    for name in _TEXTS:
        parser.add_argument(f"--{name}")
    for name, kind in _NUMBERS.items():
        parser.add_argument(f"--{name}", type=kind)
    parser.add_argument("--reasoning_tags", default=REASONING_TAGS)
    parser.add_argument("--predict_only", "-x", action="store_true")
    parser.add_argument("--use_cache", "-c")
    return parser


def read_commands(arguments: Sequence[str]) -> list[Command]:
    """The evaluations in arguments of ``lmms-eval``: one, or those of a ``--config`` file.

    Raises:
        UsageError: the file cannot be read.
    """
    parser = _parser()
    try:
        parsed, _ = parser.parse_known_args([*arguments])
    except (argparse.ArgumentError, SystemExit):  # lmms-eval's parser will report it
        return []
    defaults = vars(parser.parse_args([]))
    explicit = {name: value for name, value in vars(parsed).items() if value != defaults[name]}
    commands: list[Command] = []
    for entry in _configured(parsed.config):
        options = {**defaults, **entry, **explicit}
        commands.append(Command(options, _task_names(options["tasks"])))
    return commands


def _configured(path: str | None) -> Iterator[Mapping[str, Any]]:
    """The options in a ``--config`` file, for each evaluation in it; none without a file."""
    if not path:
        yield {}
        return
    import yaml

    with reading(Path(path), "give --config a file that exists", UsageError):
        text = Path(path).read_bytes()
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not valid YAML ({' '.join(str(error).split())}).") from error
    for entry in content if isinstance(content, list) else [content]:
        if not isinstance(entry, Mapping):
            raise UsageError(
                f"{path}: an evaluation is {type(entry).__name__}, expected options by name."
            )
        yield entry


def _task_names(tasks: Any) -> tuple[str, ...]:
    """The names or patterns in the option ``--tasks``."""
    if not isinstance(tasks, (str, type(None))):
        raise UsageError(
            f"tasks is {type(tasks).__name__}, expected names with commas between them."
        )
    return tuple(name for name in (tasks or "").split(",") if name)


class _TagBlindLoader(MarkedLoader):
    """Reads tags such as ``!function`` as nothing: only the harness resolves them."""


_TagBlindLoader.add_multi_constructor("!", lambda *_: None)


def _include(path: Path) -> None:
    """Use the benchmark folder at ``path``, or else check the task files there."""
    if not is_benchmark_folder(path):
        _check_included(path)
        return
    try:
        load_benchmark_folder(path)  # otherwise its tasks would only be unknown
    except MedtasksError as error:
        raise UsageError(str(error)) from error
    include(path)
    forget_packages()


def _check_included(folder: Path) -> None:
    """Refuse YAML files that would stop the harness when it indexes ``--include_path``."""
    for path in sorted(folder.rglob("*.yaml")):
        if _IGNORED.isdisjoint(path.relative_to(folder).parts):
            content = read_yaml(path, UsageError, _TagBlindLoader)
            if not isinstance(content, Mapping):
                kind = "empty" if content is None else f"a {type(content).__name__}"
                raise UsageError(
                    f"{path}: is {kind}, expected the keys of a task or group; fix it, or move it "
                    "out of --include_path."
                )


def check_command(arguments: Sequence[str]) -> list[str]:
    """Check the arguments of ``lmms-eval``; return the tasks of medtasks that they select.

    Raises:
        UsageError: a task does not exist, a file of ``--include_path`` cannot be read, packages of
            our back-end are absent, or a command with our tasks has options that cannot work.
    """
    selected: list[str] = []
    for command in read_commands(arguments):
        if command.options["include_path"]:
            _include(Path(command.options["include_path"]))
        for task in command.tasks:
            if task not in task_files() and is_benchmark_folder(Path(task)):
                raise UsageError(
                    f"--tasks: {task} is a benchmark folder that is not in use; run: "
                    f"medtasks add {task}"
                )
        missing = command.missing
        if missing:
            raise _no_such_task(missing[0])
        require_packages_of(command.options["model"])
        if command.ours and not command.options["power_analysis"]:
            refuse_incomplete(command.options)
            refuse_options(command.options, command.ours)
        selected += command.ours
    return selected


def _no_such_task(name: str) -> UsageError:
    """The error of a task that does not exist, with a similar name if there is one."""
    from .task_names import harness_names

    near = suggestion(name, [*harness_names(), *task_files()])
    return UsageError(
        f"--tasks: there is no task {name!r}{near}; `lmms-eval --tasks list` and `medtasks list` "
        "print all names."
    )


def run_harness(arguments: Sequence[str]) -> None:
    """Run lmms-eval with these arguments in this process, after they were checked.

    Nothing of lmms-eval, and neither torch nor transformers, is imported before.

    Raises:
        UsageError: see :func:`check_command`; or no argument was given.
    """
    if not arguments:
        raise UsageError(
            "no tasks; give lmms-eval's options, such as `--model MODEL --tasks NAME` "
            "(`medtasks list` prints the names)."
        )
    require("harness", "medtasks run")
    _announce(check_command(arguments), version("lmms-eval"))
    sys.argv = ["lmms-eval", *arguments]  # the harness reads it in several places
    from lmms_eval.__main__ import cli_evaluate

    cli_evaluate()


def check_this_process(harness_version: str) -> None:
    """If this process is about to run ``lmms-eval``, check its arguments, and print what it loads.

    A command that cannot work ends the process with one sentence and exit code 2.
    """
    # both are imported by its command, the second one alone by `run_harness`
    if not {"lmms_eval.cli.dispatch", "lmms_eval.__main__"} <= sys.modules.keys():
        return
    try:
        ours = check_command(sys.argv[1:])
    except UsageError as error:
        if _is_first_process():
            print(f"medtasks: {error}", file=sys.stderr, flush=True)
        raise SystemExit(2) from error
    _announce(ours, harness_version)


def _announce(ours: Sequence[str], harness_version: str) -> None:
    """Print that lmms-eval is being loaded for these tasks, once."""
    if ours and _is_first_process():
        print(
            f"medtasks: loading lmms-eval {harness_version} for {first_names(ours, 3)} …",
            file=sys.stderr,
            flush=True,
        )


def _is_first_process() -> bool:
    """Whether this process is the one that prints messages of the command."""
    try:
        return current_settings().rank == 0
    except UsageError:  # of another variable, which will be reported when the tasks are run
        return True
