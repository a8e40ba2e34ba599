"""One evaluation: the harness builds requests and writes logs; we send, score and write the result directory.

Replies are on disk before anything else happens (:mod:`medtasks.runs.reply_files`), so a later failure costs no
inference: it is reported in one sentence, the exit code is not 0, and ``medtasks score`` continues from there.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from medtasks.benchmarks.documents import SYSTEM_IN_TEXT
from medtasks.catalog.packages import warn
from medtasks.catalog.rubric import load_rubric
from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec
from medtasks.core.cache import cache_root
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.exits import stopped
from medtasks.core.files import remove_abandoned
from medtasks.core.settings import current_settings
from medtasks.data.media.images import IMAGES
from medtasks.data.media.video import FRAMES
from medtasks.data.store import open_prepared
from medtasks.judge.settings import configured_judges
from medtasks.runs.folder import write_run
from medtasks.runs.judge import PlainProgress, judge_all, report_lines
from medtasks.runs.manifest import RunManifest, TaskFacts, local_stamp, now, task_facts, versions
from medtasks.runs.record import RunRecord
from medtasks.runs.reply_files import SUFFIX, AnswerStore, Plan, drop_other_runs, folder_key, name_run, run_of
from medtasks.runs.run import collect_run, data_facts
from medtasks.runs.scored import Answered
from medtasks.runs.summary import summary
from medtasks.runs.table import refuse_unknown_names
from medtasks.runs.usage import RunUsage, run_usage
from medtasks.verify.scored import keep_finished, user_store

from .backends import SYSTEM_PROMPT, backend_name, take_no_media, task_presentation
from .model import described, run_arguments, settings
from .numbers import KEY, replace_numbers, replace_samples
from .requests import Requests, taken_from
from .sending import Sender, gathered, memory_of, work_so_far


class Evaluation:
    """One call of ``evaluate`` that includes our tasks."""

    def __init__(
        self,
        call: inspect.BoundArguments,
        ours: Mapping[str, tuple[TaskSpec, Any]],
        groups: Sequence[str],
        asked: Mapping[str, Any],
    ) -> None:
        self._call = call
        self._ours = ours
        self._lm = call.arguments["lm"]
        take_no_media(self._lm)
        self._asked = asked
        self._groups = groups
        self._settings = settings(self._asked, self._lm)
        self._model = {
            key: value for key, value in described(self._lm, self._settings["model_args"]).items() if key != "usage"
        }
        self._log_samples = call.arguments["log_samples"]
        self._judges = configured_judges()

    def run(self, evaluate: Callable[..., Any]) -> Any:
        """The harness's results with our scores; None on every process but the first."""
        self._refuse_early()
        directory = self._directory()
        if current_settings().rank == 0 and directory is not None:
            remove_abandoned(directory)
        for spec, task in self._ours.values():
            _leave_scoring_to_us(task)
            if SYSTEM_PROMPT in task_presentation(self._lm, spec):
                task.lmms_eval_specific_kwargs = {**task.lmms_eval_specific_kwargs, SYSTEM_IN_TEXT: True}
                name = backend_name(self._lm)
                warn(f"{spec.name}: {name} takes no system prompt; the task's is put before the question.")
        folder = self._checkpoint()
        _agree_with_first(folder)
        store = AnswerStore(folder, current_settings().rank)
        memory = memory_of(self._lm)
        requests = Requests(Sender(store, memory), self._ours, logged=self._log_samples)
        self._call.arguments["response_cache"] = requests
        try:
            if current_settings().rank == 0:
                self._planned = self._manifest()
                numbers = {name: _asked_numbers(task, self._asked) for name, (_, task) in self._ours.items()}
                store.write_plan(Plan(manifest=self._planned, documents=numbers))
            for spec, _ in self._ours.values():
                open_prepared(spec.metadata.benchmark).forget_records()  # the harness has the documents
            results = evaluate(*self._call.args, **self._call.kwargs)
            IMAGES.clear()
            FRAMES.clear()
            own = self._lm.describe().get("usage", {}) if hasattr(self._lm, "describe") else {}
            counters = Counter[str]()
            for replica in gathered(own):
                counters.update(replica)
            work = {} if memory is None else work_so_far(store.folder)
            spent = [part for known in gathered(work) for _, part in sorted(known.items())]
            usage = run_usage(spent, devices=getattr(self._lm, "devices", 1), counters=counters)
            del work, spent
            # The harness never leaves the process group, whose thread aborts the process if it outlives the
            # interpreter: a finished run would exit with a failure code.
            atexit.register(_leave_process_group)
            run = self._collect(requests, store.folder, first=results is not None)
            if run is None:
                return None
            written, text = self._write(run, usage)
        except Exception as error:
            if store.is_empty:
                store.remove()
                raise
            kept = f"replies are in {store.folder}: repeat the command to continue, or score them with `medtasks score`"
            if current_settings().debug and not isinstance(error, MedtasksError):
                print(f"medtasks: {kept}", file=sys.stderr, flush=True)
                raise
            raise MedtasksError(f"{first_line(error).rstrip('.')} ({kept}).") from error
        except KeyboardInterrupt as error:
            if self._asked.get("cli_args") is None:  # called by a program, which may continue
                raise
            kept = "" if store.is_empty else f" from the replies so far ({store.folder})"
            raise stopped(f"run the same command again to continue{kept}") from error
        finally:
            store.close()
        self._report(run, text, store.folder)
        unscored = self._ours.keys() - run.samples.keys()
        if not unscored and not any(facts.failed for facts in run.manifest.tasks.values()):
            store.remove()
        replace_numbers(results, run)
        if self._log_samples:
            replace_samples(results, run)
        results[KEY] = {"folder": str(written) if written else None, "intervals": run.intervals()}
        return results

    def _refuse_early(self) -> None:
        """Reject settings that cannot work before the model is called."""
        for rubric in self._judges.rubrics if self._judges is not None else ():
            load_rubric(rubric)
        for name in (*self._ours, *self._groups):
            spec = load_spec(name)
            refuse_unknown_names(spec, spec.benchmark)
        for name, (spec, task) in self._ours.items():
            if not spec.benchmark.repeatable and (task.config.repeats or 1) > 1:
                raise UsageError(
                    f"{name}: repeats is {task.config.repeats}, expected 1: streaming items are scored once; run it "
                    "again with another seed instead."
                )

    def _directory(self) -> Path | None:
        """Where the harness writes this model's results; None if it writes none."""
        tracker = self._asked.get("evaluation_tracker")
        if tracker is None or not tracker.output_path:
            return None
        return Path(tracker.output_path) / (tracker.general_config_tracker.model_name_sanitized or "")

    def _checkpoint(self) -> Path:
        """The directory of this command's replies, which does not depend on the number of processes."""
        kept = ("model", "limit", "offset", "gen_kwargs", "system_instruction", "apply_chat_template", "num_fewshot",
                "repeats", "torch_seed")  # fmt: skip
        identity = {
            **{name: self._settings[name] for name in kept},
            "backend": self._settings["model_backend"],
            "model_args": run_arguments(self._asked.get("model_args")),
            "tasks": {
                name: f"{self._facts(name).protocol_hash}-{_data_state(spec)}" for name, (spec, _) in self._ours.items()
            },
        }
        root = self._directory() or cache_root() / "unfinished"
        return root / f"{folder_key(identity)}{SUFFIX}"

    def _facts(self, name: str) -> TaskFacts:
        spec, task = self._ours[name]
        return task_facts(
            spec,
            dict(task.config.generation_kwargs or {}),
            len(task.eval_docs),
            blind=current_settings().blind or bool(self._model.get("blind")),
            presentation=task_presentation(self._lm, spec),
        )

    def _manifest(self) -> RunManifest:
        """The run before any reply: with the replies, everything needed to score it without this process."""
        benchmarks = sorted({spec.metadata.benchmark for spec, _ in self._ours.values()})
        return RunManifest(
            created=now(),
            processes=current_settings().processes,
            usage=RunUsage(devices=getattr(self._lm, "devices", 1)),
            versions=versions(),
            model=self._model,
            settings=self._settings,
            tasks={name: self._facts(name) for name in self._ours},
            groups={name: tuple(leaf for leaf in leaf_tasks(name) if leaf in self._ours) for name in self._groups},
            data={name: data_facts(name) for name in benchmarks},
        )

    def _collect(self, requests: Requests, folder: Path, *, first: bool) -> RunRecord | None:
        """The run, scored and judged; None on every process but the ``first``, which gathers the others' answers."""
        asked = {name: taken_from(task) for name, (_, task) in self._ours.items()}
        several = current_settings().processes > 1
        processes = gathered({name: requests.answers(one) for name, one in asked.items()}) if several else []
        if not first:
            return None

        def answered(name: str) -> list[Answered]:
            spec, task = self._ours[name]
            parts = [own.pop(name) for own in processes] if several else [requests.answers(asked.pop(name))]
            answers = sorted((entry for part in parts for entry in part), key=lambda entry: entry[0])
            documents = task.eval_docs.select([number for number, _, _ in answers]).to_list()
            return [
                Answered(document, replies, prompt, spec.prompt_hash or "")
                for document, (_, prompt, replies) in zip(documents, answers, strict=True)
            ]

        judging = None if self._judges is None else functools.partial(_judged, self._judges, self._planned)
        run = collect_run(self._planned, ((name, answered(name)) for name in self._ours), judging, folder)
        if not run.samples:
            raise MedtasksError(" ".join(run.manifest.problems) or "no task of the run has an answer")
        return run

    def _write(self, run: RunRecord, usage: RunUsage) -> tuple[Path | None, str]:
        """Write the result directory; return it, and the scores as text."""
        directory = self._directory()
        stamp = str(self._asked.get("datetime_str") or "").replace(":", "-")
        folder = None
        if directory is not None:  # two runs may end within one second
            names = (f"{local_stamp()}{suffix}_medtasks" for suffix in ("", *(f"-{n}" for n in range(2, 1000))))
            folder = next(directory / name for name in names if not (directory / name).exists())
        update = {"created": now(), "harness_stamp": stamp, "usage": usage}
        finished = replace(run, manifest=run.manifest.model_copy(update=update))
        if folder is not None:
            write_run(folder, finished)
            keep_finished(folder, finished, user_store())
        return folder, summary(finished, folder)

    def _report(self, run: RunRecord, text: str, kept: Path) -> None:
        """Print the scores and the number of failed requests, after the harness's own tables in a command; beyond the
        limit, the process ends with exit code 1."""
        asked = sum(facts.attempted for facts in run.manifest.tasks.values())
        failed = sum(sum(facts.failed.values()) for facts in run.manifest.tasks.values())
        limit = current_settings().max_failed
        too_many = failed > limit * asked
        exceeded = f" More than {100 * limit:g} % failed (MEDTASKS_MAX_FAILED), so the run counts as failed."
        problem = ""
        if failed:
            problem = (
                f"medtasks: {failed:,} of {asked:,} requests have no response and are not scored. Run the same command "
                f"again to send only these ({kept}).{exceeded * too_many}"
            )
        if self._asked.get("cli_args") is None:
            _show(text, problem)
            return
        if not _ENDINGS:
            atexit.register(_end_command)
        _ENDINGS.append((text, problem, bool(run.manifest.problems or too_many)))


_ENDINGS: list[tuple[str, str, bool]] = []
"""Of the runs of this command, which may evaluate several models: scores, problem, whether the run counts as failed."""


def _end_command() -> None:
    """The harness has printed its tables and written its files."""
    for text, problem, _ in _ENDINGS:
        _show(text, problem)
    if any(failed for *_, failed in _ENDINGS):
        os._exit(1)


def _show(text: str, problem: str) -> None:
    print(text, flush=True)
    if problem:
        print(problem, file=sys.stderr, flush=True)


def _leave_scoring_to_us(task: Any) -> None:
    """Make the harness log responses without filtering or scoring them: a failure there would lose them all."""
    from lmms_eval.filters import build_filter_ensemble

    task._filters = [build_filter_ensemble(KEY, [["take_first", None]])]
    task.process_results = lambda doc, results, full_docs=None: {}  # noqa: ARG005
    if task.OUTPUT_TYPE != "generate_until":  # rounds are run by us, in batches, on every back-end
        task.OUTPUT_TYPE = task.config.output_type = "generate_until_multi_round"


def _data_state(spec: TaskSpec) -> str:
    """What determines a task's documents and their pixels: prepared data, subset, frame limit, blind or not."""
    chosen = current_settings()
    parts = [open_prepared(spec.metadata.benchmark).manifest.fingerprint[:16], str(chosen.max_frames or "all")]
    return "-".join([*parts, *(["blind"] if chosen.blind else []), *([str(chosen.subset)] if chosen.subset else [])])


def _asked_numbers(task: Any, asked: Mapping[str, Any]) -> tuple[int, ...]:
    """Numbers of the documents within ``--limit`` and ``--offset``."""
    from lmms_eval.evaluator_utils import get_sample_size
    from lmms_eval.utils import create_iterator

    limit = get_sample_size(task, asked.get("limit"))
    numbers = range(len(task.eval_docs))
    return tuple(create_iterator(numbers, 0, 1, limit=limit or None, offset=asked.get("offset") or 0))


def _judged(config: Any, planned: RunManifest, samples: Any) -> Any:
    """A run's samples with verdicts, and facts about the judging."""
    if not any(load_spec(name).metadata.rubrics for name in samples):
        return samples, {}
    judged = judge_all(samples, config, planned, progress=PlainProgress())
    if judged.error is not None and not judged.succeeded:
        raise judged.error
    print("\n".join(report_lines(judged, config)), flush=True)
    return judged.samples, judged.facts


def _agree_with_first(folder: Path) -> None:
    """Have all processes answer the same command, and continue the run that the first one continues.

    Nodes may not share a file system: then each has its own replies, and only the first one deletes them in the end.
    """
    import torch

    if current_settings().processes < 2 or not torch.distributed.is_initialized():
        return
    rank = current_settings().rank
    everyone: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everyone, (folder.name, run_of(folder) or uuid4().hex))
    others = [number for number, (name, _) in enumerate(everyone) if name != everyone[0][0]]
    if others:
        raise UsageError(
            f"process {others[0]} of {len(everyone)} runs another command than the first one: its options, prepared "
            "data, task files or MEDTASKS_… variables differ; make them the same on all nodes."
        )
    run = everyone[0][1]
    drop_other_runs(folder, run)
    torch.distributed.barrier()  # before a process reads what another one deletes
    name_run(folder, rank, run)


def _leave_process_group() -> None:
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
