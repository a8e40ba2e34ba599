"""The only package that depends on lmms-eval's internals.

lmms-eval calls :func:`model_manifests` (entry-point group ``lmms_eval.models``) before any task
index exists. From there medtasks adds its task files to the index and wraps the evaluator's
``simple_evaluate`` (checks before, one sentence after an error) and ``evaluate``: the harness asks
the model, medtasks stores the replies, scores them and writes the result directory
(:mod:`medtasks.harness.evaluation`, imported only if our tasks are run). If anything fails before
that, it is reported in one sentence, and the harness continues without medtasks.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import medtasks
from medtasks.catalog.contents import kind_of, task_files
from medtasks.core.cache import can_be_written, writable_cache
from medtasks.core.errors import (
    HarnessError,
    MedtasksError,
    errors_raised,
    exit_with_sentence,
    first_line,
    interrupts_arrive,
)
from medtasks.core.settings import current_settings, stopped

SUPPORTED = ">=0.7.3,<0.8"
_WRAPPED = "__medtasks__"
_DATASETS = "LMMS_EVAL_DATASETS_CACHE"
_ARGUMENTS: ContextVar[Mapping[str, Any]] = ContextVar("arguments", default=MappingProxyType({}))
"""The arguments of ``simple_evaluate``, because ``evaluate`` does not receive all of them."""

BACK_ENDS = {
    "medtasks_vlm": "medtasks.adapters.vlm.MedtasksVLM",
    "medtasks_vllm": "medtasks.adapters.vllm.MedtasksVLLM",
    "medtasks_baseline": "medtasks.adapters.baseline.MedtasksBaseline",
    "medtasks_ray": "medtasks.adapters.ray.MedtasksRay",
    "medtasks_replay": "medtasks.adapters.replay.MedtasksReplay",
}


def model_manifests() -> list[Any]:
    """The entry point: registers our tasks and returns our back-ends' manifests.

    A command line that cannot work ends the process; any other failure is reported on standard
    error, and lmms-eval runs without medtasks.
    """
    try:
        from medtasks.harness.command_line import check_this_process

        harness_version = version("lmms-eval")
        _refuse_version(harness_version)
        _refuse_hidden_package()
        _watch_task_manager()
        check_this_process(harness_version)
        from lmms_eval.models.registry_v2 import ModelManifest

        return [
            ModelManifest(model_id=name, chat_class_path=path) for name, path in BACK_ENDS.items()
        ]
    except Exception as error:
        _step_aside(error)
        return []


def _refuse_version(harness_version: str) -> None:
    """Refuse a version of lmms-eval whose internals may differ."""
    from packaging.specifiers import SpecifierSet

    if not SpecifierSet(SUPPORTED).contains(harness_version, prereleases=True):
        raise HarnessError(
            f"medtasks works with lmms-eval {SUPPORTED}, but {harness_version} is installed; "
            f'install one that fits: pip install "lmms-eval{SUPPORTED}"'
        )


def _refuse_hidden_package() -> None:
    """Refuse a clone of medtasks in the working directory in place of the installed package.

    An editable installation is found by an import hook, and Python asks hooks last.
    """
    if medtasks.__file__ is None:
        folder = next(iter(medtasks.__path__))
        raise HarnessError(
            f"{folder} hides the installed package of that name, because `python -m` looks in the "
            "working directory first; start in another directory, or use the command lmms-eval"
        )


def task_index() -> dict[str, dict[str, Any]]:
    """Our entries of the harness's task index, from the directory layout without parsing YAML."""
    index: dict[str, dict[str, Any]] = {}
    for name, path in task_files().items():
        index[name] = {"type": kind_of(path), "yaml_path": str(path)}
        if kind_of(path) == "group":
            index[name]["task"] = -1  # tells the harness to read the members from the file
    return index


def run_tasks(
    model: Any,
    model_args: str,
    tasks: list[str],
    output: Path,
    *,
    limit: int | None = None,
    gen_kwargs: str | None = None,
    batch_size: int = 1,
) -> Path:
    """Evaluate ``tasks`` (all ours) with the harness in this process; return the result directory.

    ``model`` is a back-end, or the name of one; ``model_args`` are its arguments, or identify it.
    """
    from lmms_eval import evaluator
    from lmms_eval.loggers import EvaluationTracker
    from lmms_eval.tasks import TaskManager

    _wrap_evaluator()
    with errors_raised():
        results = evaluator.simple_evaluate(
            model=model,
            model_args=model_args,
            tasks=tasks,
            batch_size=batch_size,
            limit=limit,
            gen_kwargs=gen_kwargs,
            log_samples=False,
            bootstrap_iters=0,
            evaluation_tracker=EvaluationTracker(output_path=str(output)),
            task_manager=TaskManager("WARNING", include_defaults=False, model_name=model),
            verbosity="WARNING",
            datetime_str=datetime.now().strftime("%Y%m%d_%H%M%S"),
        )
    return Path(results["medtasks"]["folder"])


def _step_aside(error: BaseException) -> None:
    print(
        f"medtasks: {first_line(error)} (lmms-eval continues without medtasks)",
        file=sys.stderr,
        flush=True,
    )


@functools.cache
def _watch_task_manager() -> None:
    from lmms_eval.tasks import TaskManager

    original = TaskManager.initialize_tasks

    @functools.wraps(original)
    def initialize_tasks(self: Any, include_path: Any = None, include_defaults: bool = True) -> Any:
        with _parsed_by_libyaml():
            index = original(self, include_path=include_path, include_defaults=include_defaults)
        try:
            # without either, the index would be empty
            if include_defaults or include_path is None:
                _add_our_tasks(index)
            _wrap_evaluator()
        except Exception as error:
            _step_aside(error)
        return index

    TaskManager.initialize_tasks = initialize_tasks


def _add_our_tasks(index: dict[str, dict[str, Any]]) -> None:
    """Add our tasks to the harness's index, except those whose names are taken."""
    for name, entry in task_index().items():
        taken = str(index.setdefault(name, entry)["yaml_path"])
        ours = str(entry["yaml_path"])
        if Path(taken).resolve() != Path(ours).resolve():
            print(
                f"medtasks: task {name} is already defined by {taken}; that one is used, "
                f"not {ours}; rename one of them.",
                file=sys.stderr,
                flush=True,
            )


@contextmanager
def _parsed_by_libyaml() -> Iterator[None]:
    """Have the harness's index parse its 3,200 task files in C.

    Parsing them takes half of the time in which lmms-eval starts.
    """
    from lmms_eval.utils import ignore_constructor

    yaml: Any = import_module("yaml")
    original = yaml.full_load
    base = getattr(yaml, "CFullLoader", yaml.FullLoader)
    loader: Any = type("Loader", (base,), {})
    loader.add_constructor("!function", ignore_constructor)

    def full_load(file: Any) -> Any:
        try:
            return yaml.load(file, loader)
        except yaml.YAMLError:  # the parsers differ in details
            file.seek(0)
            return original(file)

    yaml.full_load = full_load
    try:
        yield
    finally:
        yaml.full_load = original


def _wrap_evaluator() -> None:
    """Wrap the evaluator's functions once it is completely imported."""
    evaluator: Any = sys.modules.get("lmms_eval.evaluator")
    imported = hasattr(evaluator, "request_caching_arg_to_dict")  # its last definition
    if imported and not hasattr(evaluator, _WRAPPED):
        evaluator.evaluate = wrapped(evaluator.evaluate, with_our_scores)
        evaluator.simple_evaluate = wrapped(evaluator.simple_evaluate, with_checks)
        setattr(evaluator, _WRAPPED, True)


def wrapped(
    original: Callable[..., Any], ours: Callable[[Callable[..., Any], inspect.BoundArguments], Any]
) -> Callable[..., Any]:
    """A function called as ``original``, which passes ``original`` and the call to ``ours``."""

    @exit_with_sentence
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        return ours(original, call)

    return function


def with_checks(original: Callable[..., Any], call: inspect.BoundArguments) -> Any:
    """``simple_evaluate`` after our checks; its arguments are kept for :func:`with_our_scores`."""
    asked = call.arguments
    if not asked["tasks"]:
        asked["tasks"] = _tasks_named_like_folders()
    ours = _our_names(asked["tasks"])
    token = _ARGUMENTS.set(asked)
    try:
        with interrupts_arrive():
            if ours:
                _check(asked, ours)
            return original(*call.args, **call.kwargs)
    except Exception as error:
        if isinstance(error, MedtasksError) or current_settings().debug:
            raise
        cause = _our_error_behind(error)
        if cause is None and not ours:
            raise
        sentence = (
            f"the harness ended the run: {first_line(error).rstrip('.')} "
            "(--verbosity DEBUG shows where)."
        )
        raise MedtasksError(str(cause or sentence)) from error
    # before or after the evaluation, for example while the model is loaded
    except KeyboardInterrupt as error:
        if not ours or asked["cli_args"] is None:
            raise
        raise stopped("run the same command again") from error
    finally:
        _ARGUMENTS.reset(token)


def _tasks_named_like_folders() -> list[str]:
    """Our task on the command line that has the name of a directory in the working directory.

    The harness takes such a name for that directory, and runs nothing.
    """
    values: list[str] = []
    for word, following in zip(sys.argv, [*sys.argv[1:], None], strict=True):
        if word.startswith("--tasks="):
            values.append(word.removeprefix("--tasks="))
        elif word == "--tasks" and following is not None:
            values.append(following)
    names = [name for name in values if Path(name).is_dir() and name in task_files()]
    return names[:1]


def _our_names(tasks: Iterable[Any]) -> list[str]:
    from medtasks.catalog.spec import load_spec

    names: list[str] = []
    for task in tasks:
        if isinstance(task, str) and task in task_files():
            names.append(load_spec(task).name)
    return names


def _check(asked: Mapping[str, Any], ours: list[str]) -> None:
    """Check a run of our tasks, and prepare the harness for it."""
    from datasets.config import HF_DATASETS_CACHE

    from medtasks.harness.options import name_those_without_effect, refuse

    refuse(asked, ours)
    name_those_without_effect(asked, our_back_end=asked["model"] in BACK_ENDS)
    # the harness loads the one-row dataset of our task files through a cache
    if not os.environ.get(_DATASETS) and not can_be_written(Path(HF_DATASETS_CACHE)):
        os.environ[_DATASETS] = str(writable_cache() / "datasets")
    if isinstance(asked["model"], str):
        from medtasks.harness.model_fixes import load_what_generates

        load_what_generates(asked["model"], force_simple=bool(asked["force_simple"]))


def _our_error_behind(error: BaseException) -> MedtasksError | None:
    """The error of ours that caused ``error``, as when a package cannot be imported."""
    cause = error.__cause__ or error.__context__
    while cause is not None and not isinstance(cause, MedtasksError):
        cause = cause.__cause__ or cause.__context__
    return cause


def with_our_scores(original: Callable[..., Any], call: inspect.BoundArguments) -> Any:
    """``evaluate``, where medtasks handles our tasks' requests, scores and result directory."""
    tasks: dict[str, tuple[Any, Any]] = {}
    groups: dict[str, None] = {}  # an ordered set
    for entry in _our_entries(call.arguments["task_dict"]):
        if entry.task is None:
            groups[entry.name] = None
        else:
            tasks[entry.name] = (entry.spec, entry.task)
    if not tasks:
        return original(*call.args, **call.kwargs)
    from medtasks.harness.evaluation import Evaluation

    return Evaluation(call, tasks, list(groups), _ARGUMENTS.get()).run(original)


class _Entry(NamedTuple):
    """A task or group of ours; ``task`` is the harness's object, None for a group."""

    name: str
    spec: Any
    task: Any


def _our_entries(task_dict: Mapping[Any, Any]) -> Iterator[_Entry]:
    """Yield our tasks and groups in a (nested) task dictionary."""
    from medtasks.catalog.spec import load_specs

    specs = load_specs()
    for key, value in task_dict.items():
        name = getattr(key, "group_name", key)
        if isinstance(value, Mapping):
            if name in specs:
                yield _Entry(name, specs[name], None)
            yield from _our_entries(value)
        elif name in specs:
            config = getattr(value, "config", None)
            metadata = getattr(config, "metadata", None)
            # without it, this is the harness's own task of that name
            if isinstance(metadata, dict) and "benchmark" in metadata:
                yield _Entry(name, specs[name], value)
