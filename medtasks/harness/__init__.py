"""The only package that depends on lmms-eval's internals.

lmms-eval calls :func:`model_manifests` (entry-point group ``lmms_eval.models``) before any task index exists. From
there medtasks adds its task files to the index and wraps the evaluator: the harness asks the model, medtasks stores the
replies, scores them and writes the result directory (:mod:`medtasks.harness.evaluation`). If anything fails before
that, it is reported in one sentence, and the harness continues without medtasks.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import medtasks
from medtasks.catalog.contents import kind_of, task_files
from medtasks.core.errors import HarnessError, errors_raised, first_line

__all__ = ["BACK_ENDS", "SUPPORTED", "model_manifests", "run_tasks", "task_index"]

SUPPORTED = ">=0.7.3,<0.8"
_WRAPPED = "__medtasks__"

BACK_ENDS = {
    "medtasks_vlm": "medtasks.adapters.vlm.MedtasksVLM",
    "medtasks_vllm": "medtasks.adapters.vllm.MedtasksVLLM",
    "medtasks_baseline": "medtasks.adapters.baseline.MedtasksBaseline",
    "medtasks_ray": "medtasks.adapters.ray.MedtasksRay",
    "medtasks_replay": "medtasks.adapters.replay.MedtasksReplay",
}


def model_manifests() -> list[Any]:
    """The entry point: registers our tasks and returns our back-ends' manifests. Never raises: a failure is reported on
    standard error and lmms-eval runs without medtasks."""
    try:
        from packaging.specifiers import SpecifierSet

        found = version("lmms-eval")
        if not SpecifierSet(SUPPORTED).contains(found, prereleases=True):  # its internals may differ
            raise HarnessError(
                f"medtasks works with lmms-eval {SUPPORTED}, but {found} is installed; "
                f'install one that fits: pip install "lmms-eval{SUPPORTED}"'
            )
        # A clone in the working directory: an editable installation is found by an import hook, and Python asks hooks
        # last.
        if medtasks.__file__ is None:
            raise HarnessError(
                f"{next(iter(medtasks.__path__))} hides the installed package of that name, because `python -m` looks "
                "in the working directory first; start in another directory, or use the command lmms-eval"
            )
        _watch_task_manager()
        from lmms_eval.models.registry_v2 import ModelManifest

        return [ModelManifest(model_id=name, chat_class_path=path) for name, path in BACK_ENDS.items()]
    except Exception as error:
        _step_aside(error)
        return []


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
    """Evaluate ``tasks`` (all ours) with the harness in this process, and return the result directory. ``model`` is a
    back-end, or the name of one; ``model_args`` are its arguments, or what identifies it."""
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
    print(f"medtasks: {first_line(error)} (lmms-eval continues without medtasks)", file=sys.stderr, flush=True)


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
            for name, entry in task_index().items() if include_defaults or include_path is None else ():
                taken, ours = index.setdefault(name, entry)["yaml_path"], entry["yaml_path"]
                if Path(str(taken)).resolve() != Path(ours).resolve():
                    print(
                        f"medtasks: task {name} is already defined by {taken}; that one is used, not {ours}; rename "
                        "one of them.",
                        file=sys.stderr,
                        flush=True,
                    )
            _wrap_evaluator()
        except Exception as error:
            _step_aside(error)
        return index

    TaskManager.initialize_tasks = initialize_tasks


@contextmanager
def _parsed_by_libyaml() -> Iterator[None]:
    """Have the index of tasks parse its 3,200 files in C: half of the time in which lmms-eval starts goes into them."""
    from lmms_eval.utils import ignore_constructor

    yaml: Any = import_module("yaml")
    original = yaml.full_load
    if not yaml.__with_libyaml__:
        yield
        return
    loader: Any = type("Loader", (yaml.CFullLoader,), {})
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
        from medtasks.harness.hooks import noting_arguments, with_our_scores

        evaluator.evaluate = with_our_scores(evaluator.evaluate)
        evaluator.simple_evaluate = noting_arguments(evaluator.simple_evaluate)
        setattr(evaluator, _WRAPPED, True)
