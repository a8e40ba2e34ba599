"""One evaluation: the harness builds requests and writes logs; we send, score and write results.

Replies are on disk before anything else happens (:mod:`medtasks.runs.unfinished`), so a later
failure costs no inference: it is reported in one sentence, the exit code is not 0, and
``medtasks score`` continues from there.
"""

from __future__ import annotations

import atexit
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.filters import build_filter_ensemble

from medtasks.benchmarks.documents import SYSTEM_IN_TEXT
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.cache import cache_root
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.replacement import remove_abandoned
from medtasks.core.settings import current_settings, stopped
from medtasks.data.media.frame_store import FRAMES
from medtasks.data.media.images import IMAGES
from medtasks.data.store import open_prepared
from medtasks.judge.settings_sources import configured_judges
from medtasks.runs.decoding import decoding_warnings
from medtasks.runs.manifest import RunManifest, now
from medtasks.runs.times import Times
from medtasks.runs.unfinished import AnswerStore, RunPlan
from medtasks.runs.usage import RunUsage
from medtasks.scoring.declared_names import refuse_unknown_names
from medtasks.scoring.kept_runs import keep_finished
from medtasks.scoring.run_cache import user_store
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.summary import summary

from .collection import collected_run, collected_times, collected_usage, collected_work
from .endings import end_run, ending_of
from .memory import memory_of
from .model_fixes import take_no_media
from .presentation import SYSTEM_PROMPT, backend_name, task_presentation
from .processes import agree_with_first, leave_process_group
from .requests import Requests
from .results import (
    KEY,
    new_folder,
    replace_numbers,
    replace_samples,
    results_of_model,
    stamp_of,
)
from .run_plan import RunPlanner
from .stream_times import paced_rounds
from .system_turn import add_system_turn, refuse_system_turn
from .unscored import unscored_ending


@dataclass(frozen=True)
class _SavedRun:
    """A scored run, its result directory if it has one, and its scores as text."""

    run: RunRecord
    folder: Path | None
    text: str


@dataclass
class Evaluation:
    """One call of ``evaluate`` that includes our tasks.

    ``ours`` are the tasks by name, and ``groups`` those of them; ``asked`` are the arguments of
    ``simple_evaluate``.
    """

    call: inspect.BoundArguments
    ours: Mapping[str, tuple[TaskSpec, Any]]
    groups: Sequence[str]
    asked: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Check tasks, judges and options before the first request.

        Raises:
            MedtasksError: one of them is wrong, or the back-end does not support it.
        """
        self._lm = self.call.arguments["lm"]
        take_no_media(self._lm)
        self._is_logged = self.call.arguments["log_samples"]
        self._output = results_of_model(self.asked.get("evaluation_tracker"))
        self._instruction = str(self.asked.get("system_instruction") or "")
        self._judges = configured_judges()
        if self._judges is not None:
            for rubric in self._judges.rubrics:
                load_rubric(rubric)
        for name in (*self.ours, *self.groups):
            spec = load_spec(name)
            refuse_unknown_names(spec, spec.benchmark)
        for spec, task in self.ours.values():
            if self._instruction:
                refuse_system_turn(self._lm, spec)
            _refuse_repeats(spec, task)
        settings = current_settings()
        self._paced = paced_rounds(self.ours.values(), settings.pace, settings.processes)

    def run(self, evaluate: Callable[..., Any]) -> Any:
        """The harness's results with our scores; None on every process but the first."""
        if current_settings().rank == 0 and self._output is not None:
            remove_abandoned(self._output)
        for spec, task in self.ours.values():
            self._prepare_task(spec, task)
        plan, store = self._planned()
        memory = memory_of(self._lm)
        requests = Requests(store, memory, self.ours, self._is_logged, self._paced)
        self.call.arguments["response_cache"] = requests
        try:
            with self._errors_name_replies(store):
                results = self._evaluate(evaluate, store, plan)
                is_first = results is not None
                if self.asked.get("predict_only"):
                    self._report_responses(requests, first=is_first)
                    return results
                saved = self._save(requests, plan.manifest, first=is_first)
        finally:
            store.close()
        if saved is None:
            return None
        self._finish(saved, store)
        self._add_scores(results, saved)
        return results

    def _planned(self) -> tuple[RunPlan, AnswerStore]:
        """The plan of the run, and the store of its replies, with those of an interrupted run."""
        planner = RunPlanner(self._lm, self.ours, self.groups, self.asked)
        plan = planner.plan()
        folder = planner.reply_folder(plan.manifest, self._output or cache_root() / "unfinished")
        agree_with_first(folder)
        return plan, AnswerStore(folder, current_settings().rank)

    def _prepare_task(self, spec: TaskSpec, task: Any) -> None:
        """Have the harness only log the responses to a task, and send its prompts as we want them.

        The harness does not filter or score responses: a failure there would lose them all.
        """
        task._filters = [build_filter_ensemble(KEY, [["take_first", None]])]
        task.process_results = lambda doc, results, full_docs=None: {}  # noqa: ARG005
        # rounds are run by us, in batches, on every back-end
        if task.OUTPUT_TYPE != "generate_until":
            task.OUTPUT_TYPE = "generate_until_multi_round"
            task.config.output_type = "generate_until_multi_round"
        if self._instruction:
            add_system_turn(task, self._instruction)
        if SYSTEM_PROMPT in task_presentation(self._lm, spec):
            task.lmms_eval_specific_kwargs = {
                **task.lmms_eval_specific_kwargs,
                SYSTEM_IN_TEXT: True,
            }
            name = backend_name(self._lm)
            message = f"{name} takes no system prompt; the task's is put before the question."
            _print_note(f"{spec.name}: {message}")

    def _evaluate(self, evaluate: Callable[..., Any], store: AnswerStore, plan: RunPlan) -> Any:
        """The harness's own results, after all requests have been answered."""
        if current_settings().rank == 0:
            store.write_plan(plan)
            for warning in decoding_warnings(plan.manifest):
                _print_note(warning)
        for spec, _ in self.ours.values():
            # the harness has the documents
            open_prepared(spec.metadata.benchmark).forget_records()
        results = evaluate(*self.call.args, **self.call.kwargs)
        IMAGES.clear()
        FRAMES.clear()
        atexit.register(leave_process_group)
        return results

    @contextmanager
    def _errors_name_replies(self, store: AnswerStore) -> Iterator[None]:
        """Add to errors and interruptions where the replies are, and how to continue."""
        try:
            yield
        except Exception as error:
            if store.is_empty:
                store.remove()
                raise
            advice = (
                f"replies are in {store.folder}: repeat the command to continue, or score them "
                "with `medtasks score`"
            )
            if current_settings().debug and not isinstance(error, MedtasksError):
                _print_note(advice)
                raise
            raise MedtasksError(f"{first_line(error).rstrip('.')} ({advice}).") from error
        except KeyboardInterrupt as error:
            if not self._in_command:
                raise
            advice = "run the same command again to continue"
            if not store.is_empty:
                advice += f" from the replies so far ({store.folder})"
            raise stopped(advice) from error

    def _save(self, requests: Requests, planned: RunManifest, *, first: bool) -> _SavedRun | None:
        """The run of all processes, scored, and written to the harness's results if it has any.

        None on every process but the ``first``.
        """
        has_work = requests.memory is not None
        work = collected_work(requests.store.folder) if has_work else []
        usage = collected_usage(self._lm, work)
        times = collected_times(work, self.ours)
        del work
        run = collected_run(requests, self.ours, planned, self._judges, first=first)
        return None if run is None else self._write(run, usage, times)

    def _write(self, run: RunRecord, usage: RunUsage, times: Times) -> _SavedRun:
        """Write the result directory of a run if the harness writes results, and its summary."""
        stamp = str(self.asked.get("datetime_str") or "").replace(":", "-")
        update = {"created": now(), "harness_stamp": stamp, "usage": usage}
        finished = replace(run, manifest=run.manifest.model_copy(update=update))
        folder: Path | None = None
        if self._output is not None:
            folder = new_folder(self._output, stamp_of(self.asked))
            write_run(folder, finished, times)
            keep_finished(folder, finished, user_store())
        return _SavedRun(run, folder, summary(finished, folder))

    def _finish(self, saved: _SavedRun, store: AnswerStore) -> None:
        """Print the scores and the number of failed requests; delete replies no longer needed."""
        attempted = 0
        reasons = Counter[str]()
        for facts in saved.run.manifest.tasks.values():
            attempted += facts.attempted
            reasons.update(facts.failed)
        has_problems = bool(saved.run.manifest.problems)
        ending = ending_of(
            saved.text, attempted, reasons, store.folder, self._lm, problems=has_problems
        )
        end_run(ending, in_command=self._in_command)
        if _is_complete(saved.run, self.ours):
            store.remove()

    def _add_scores(self, results: dict[str, Any], saved: _SavedRun) -> None:
        """Replace the harness's scores and samples with ours, in its results and in W&B."""
        results[KEY] = {"folder": str(saved.folder) if saved.folder else None}
        replace_numbers(results, saved.run)
        if self._is_logged:
            replace_samples(results, saved.run)
        if getattr(self.asked.get("cli_args"), "wandb_args", ""):
            from .wandb_tables import log_to_wandb

            log_to_wandb(saved.run, self.asked.get("evaluation_tracker"))

    def _report_responses(self, requests: Requests, *, first: bool) -> None:
        """Print how many responses there are, in a run that scores none."""
        tasks = [task for _, task in self.ours.values()]
        ending = unscored_ending(requests, tasks, self._lm, first=first)
        if ending is not None:
            end_run(ending, in_command=self._in_command)

    @property
    def _in_command(self) -> bool:
        """Whether the command ``lmms-eval`` runs, not a program, which may continue afterwards."""
        return self.asked.get("cli_args") is not None


def _print_note(note: str) -> None:
    """Print a line of ours to standard error, beside the harness's log."""
    print(f"medtasks: {note}", file=sys.stderr, flush=True)


def _refuse_repeats(spec: TaskSpec, task: Any) -> None:
    """Refuse to ask a task several times whose benchmark scores each item once."""
    if not spec.benchmark.repeatable and (task.config.repeats or 1) > 1:
        raise UsageError(
            f"{spec.name}: repeats is {task.config.repeats}, expected 1: streaming items are "
            "scored once; run it again with another seed instead."
        )


def _is_complete(run: RunRecord, names: Collection[str]) -> bool:
    """Whether all tasks are scored, and no request has failed: no reply is needed any more."""
    if any(name not in run.samples for name in names):
        return False
    return not any(facts.failed for facts in run.manifest.tasks.values())
