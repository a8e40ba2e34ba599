"""The only package that depends on lmms-eval's internals.

lmms-eval calls :func:`model_manifests` (entry-point group ``lmms_eval.models``) before any task
index exists. From there medtasks adds its task files to the index (:mod:`.task_index`) and wraps
the evaluator (:mod:`.evaluator`): the harness asks the model, medtasks stores the replies, scores
them and writes the result directory (:mod:`.evaluation`, imported only if our tasks are run). If
anything fails before that, it is reported in one sentence, and the harness continues without
medtasks.
"""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import medtasks
from medtasks.core.errors import HarnessError, errors_raised
from medtasks.core.extras import needs
from medtasks.harness.evaluator import wrap_evaluator
from medtasks.harness.task_index import step_aside, watch_task_manager
from medtasks.runs.our_back_ends import BACK_ENDS

SUPPORTED = ">=0.7.3,<0.8"


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
        watch_task_manager()
        check_this_process(harness_version)
        from lmms_eval.models.registry_v2 import ModelManifest

        return [
            ModelManifest(model_id=name, chat_class_path=back_end.path)
            for name, back_end in BACK_ENDS.items()
        ]
    except Exception as error:
        step_aside(error)
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

    Raises:
        MissingExtraError: lmms-eval or a package of the back-end is not installed.
    """
    with needs("harness", "running a model"):
        from lmms_eval import evaluator
        from lmms_eval.loggers import EvaluationTracker
        from lmms_eval.tasks import TaskManager

    wrap_evaluator()
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
