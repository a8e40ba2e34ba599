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
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.evaluator_utils import get_sample_size
from lmms_eval.filters import build_filter_ensemble
from lmms_eval.utils import create_iterator

from medtasks.benchmarks.documents import SYSTEM_IN_TEXT
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec
from medtasks.core.cache import cache_root
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.replacement import remove_abandoned
from medtasks.core.settings import current_settings, stopped
from medtasks.data.media.images import IMAGES
from medtasks.data.media.video import FRAMES
from medtasks.data.store import open_prepared
from medtasks.judge.judge_run import judge_all
from medtasks.judge.judging_report import plain_progress
from medtasks.judge.settings_sources import configured_judges
from medtasks.runs.decoding import decoding_warnings
from medtasks.runs.manifest import DataFacts, RunManifest, TaskFacts, now, versions
from medtasks.runs.protocol import task_facts
from medtasks.runs.samples import UNKNOWN_PROMPT
from medtasks.runs.unfinished import SUFFIX, AnswerStore, RunPlan, read_work
from medtasks.runs.usage import RunUsage, run_usage
from medtasks.scoring.finished_run import AnsweredTask, AskedDocument, collect_run, data_facts
from medtasks.scoring.item_table import refuse_unknown_names
from medtasks.scoring.kept_runs import keep_finished
from medtasks.scoring.run_cache import user_store
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.summary import summary

from . import model_facts
from .endings import end_run, ending_of
from .memory import memory_of
from .model_fixes import take_no_media
from .presentation import (
    SYSTEM_PROMPT,
    backend_name,
    has_unknown_prompts,
    task_presentation,
)
from .processes import agree_with_first, gathered, leave_process_group
from .requests import DocumentReplies, Requests
from .results import KEY, replace_numbers, replace_samples, stamp_of
from .system_turn import add_system_turn, presented, refuse_system_turn

_IDENTITY = (
    "model",
    "limit",
    "offset",
    "gen_kwargs",
    "system_instruction",
    "apply_chat_template",
    "num_fewshot",
    "repeats",
    "torch_seed",
)
"""The harness's settings that replies depend on."""


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
        self._lm = self.call.arguments["lm"]
        take_no_media(self._lm)
        # where the harness writes this model's results, if it does
        self._output: Path | None = None
        tracker = self.asked.get("evaluation_tracker")
        if tracker is not None and tracker.output_path:
            model_name = tracker.general_config_tracker.model_name_sanitized or ""
            self._output = Path(tracker.output_path) / model_name
        self._instruction = str(self.asked.get("system_instruction") or "")
        self._judges = configured_judges()
        if self._judges is not None:
            for rubric in self._judges.rubrics:
                load_rubric(rubric)
        for name in (*self.ours, *self.groups):
            spec = load_spec(name)
            refuse_unknown_names(spec, spec.benchmark)
        for name, (spec, task) in self.ours.items():
            if self._instruction:
                refuse_system_turn(self._lm, spec)
            if not spec.benchmark.repeatable and (task.config.repeats or 1) > 1:
                raise UsageError(
                    f"{name}: repeats is {task.config.repeats}, expected 1: streaming items are "
                    "scored once; run it again with another seed instead."
                )

    def run(self, evaluate: Callable[..., Any]) -> Any:
        """The harness's results with our scores; None on every process but the first."""
        rank = current_settings().rank
        is_logged = self.call.arguments["log_samples"]
        if rank == 0 and self._output is not None:
            remove_abandoned(self._output)
        for spec, task in self.ours.values():
            self._prepare_task(spec, task)
        plan = self._plan()
        folder = self._reply_folder(plan.manifest)
        agree_with_first(folder)
        store = AnswerStore(folder, rank)
        memory = memory_of(self._lm)
        requests = Requests(store, memory, self.ours, is_logged)
        self.call.arguments["response_cache"] = requests
        try:
            with self._errors_name_replies(store):
                results = self._evaluate(evaluate, store, plan)
                is_first = results is not None
                if self.asked.get("predict_only"):
                    self._report_responses(requests, store.folder, first=is_first)
                    return results
                usage = self._usage(store, measured=memory is not None)
                run = self._collect(requests, plan.manifest, store.folder, first=is_first)
                if run is None:
                    return None
                written, text = self._write(run, usage)
        finally:
            store.close()
        self._report(run, text, store.folder)
        if _is_complete(run, self.ours):
            store.remove()
        results[KEY] = {"folder": str(written) if written else None}
        replace_numbers(results, run)
        if is_logged:
            replace_samples(results, run)
        if getattr(self.asked.get("cli_args"), "wandb_args", ""):
            from .wandb_tables import log_to_wandb

            log_to_wandb(run, self.asked.get("evaluation_tracker"))
        return results

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
            kept = (
                f"replies are in {store.folder}: repeat the command to continue, or score them "
                "with `medtasks score`"
            )
            if current_settings().debug and not isinstance(error, MedtasksError):
                _print_note(kept)
                raise
            raise MedtasksError(f"{first_line(error).rstrip('.')} ({kept}).") from error
        except KeyboardInterrupt as error:
            if not self._in_command:
                raise
            kept = "" if store.is_empty else f" from the replies so far ({store.folder})"
            raise stopped(f"run the same command again to continue{kept}") from error

    def _plan(self) -> RunPlan:
        """The run before any reply.

        With the replies, it is all that is needed to score the run without this process.
        """
        settings = model_facts.settings(self.asked, self._lm)
        model = dict(model_facts.described(self._lm, settings["model_args"]))
        model.pop("usage", None)
        tasks: dict[str, TaskFacts] = {}
        documents: dict[str, tuple[int, ...]] = {}
        data: dict[str, DataFacts] = {}
        is_blind = current_settings().blind or bool(model.get("blind"))
        made_elsewhere = has_unknown_prompts(self._lm)
        for name, (spec, task) in self.ours.items():
            tasks[name] = task_facts(
                spec,
                {} if made_elsewhere else dict(task.config.generation_kwargs or {}),
                len(task.eval_docs),
                blind=is_blind,
                presentation=self._presentation(spec),
                prompt_hash=UNKNOWN_PROMPT if made_elsewhere else None,
            )
            documents[name] = self._document_numbers(task)
        for benchmark in sorted({spec.metadata.benchmark for spec, _ in self.ours.values()}):
            data[benchmark] = data_facts(benchmark)
        groups: dict[str, tuple[str, ...]] = {}
        for group in self.groups:
            groups[group] = tuple(leaf for leaf in leaf_tasks(group) if leaf in self.ours)
        manifest = RunManifest(
            created=now(),
            processes=current_settings().processes,
            usage=RunUsage(devices=getattr(self._lm, "devices", 1)),
            versions=versions(),
            model=model,
            settings=settings,
            tasks=tasks,
            groups=groups,
            data=data,
        )
        return RunPlan(manifest=manifest, documents=documents)

    def _document_numbers(self, task: Any) -> tuple[int, ...]:
        """The documents that ``--limit`` and ``--offset`` select, by number."""
        limit = get_sample_size(task, self.asked.get("limit")) or None
        offset = self.asked.get("offset") or 0
        numbers = range(len(task.eval_docs))
        return tuple(create_iterator(numbers, 0, 1, limit=limit, offset=offset))

    def _presentation(self, spec: TaskSpec) -> dict[str, str]:
        """How the back-end and the command's options change the task's prompts."""
        by_options = presented(self._instruction) if self._instruction else {}
        return {**task_presentation(self._lm, spec), **by_options}

    def _reply_folder(self, planned: RunManifest) -> Path:
        """The directory of this command's replies, the same for any number of processes."""
        settings = current_settings()
        media = [str(settings.max_frames or "all")]
        if settings.blind:
            media.append("blind")
        if settings.subset:
            media.append(str(settings.subset))
        tasks: dict[str, str] = {}
        for name, (spec, _) in self.ours.items():
            data = planned.data[spec.metadata.benchmark].fingerprint[:16]
            tasks[name] = "-".join([planned.tasks[name].protocol_hash, data, *media])
        identity = {
            **{name: planned.settings[name] for name in _IDENTITY},
            "backend": planned.settings["model_backend"],
            "model_args": model_facts.run_arguments(self.asked.get("model_args")),
            "tasks": tasks,
        }
        parent = self._output or cache_root() / "unfinished"
        return parent / f"{short_hash(canonical_json(identity))[:12]}{SUFFIX}"

    def _usage(self, store: AnswerStore, *, measured: bool) -> RunUsage:
        """The work that the replies to the command took, with those of earlier, unfinished runs.

        Each process reads its own file, which no other is writing to; the first one also those of
        processes that no longer exist.
        """
        counters = Counter[str]()
        own_counts = self._lm.describe().get("usage", {}) if hasattr(self._lm, "describe") else {}
        for counts in gathered(own_counts):
            counters.update(counts)
        own_work: list[Any] = []
        if measured:
            rank, processes = current_settings().rank, current_settings().processes
            for number, work in sorted(read_work(store.folder).items()):
                if number == rank or (rank == 0 and number >= processes):
                    own_work.append(work)
        all_work: list[Any] = []
        for process_work in gathered(own_work):
            all_work.extend(process_work)
        return run_usage(all_work, devices=getattr(self._lm, "devices", 1), counters=counters)

    def _collect(
        self, requests: Requests, planned: RunManifest, folder: Path, *, first: bool
    ) -> RunRecord | None:
        """The run, scored and judged, with the answers of all processes.

        None on every process but the ``first``.
        """
        # of each process by task; a single process reads them task by task
        processes: list[dict[str, list[DocumentReplies]]] = []
        if current_settings().processes > 1:
            own = {name: requests.answers(task) for name, (_, task) in self.ours.items()}
            processes = gathered(own)
        if not first:
            return None

        def answered(name: str) -> AnsweredTask:
            _, task = self.ours[name]
            if processes:
                answers: list[DocumentReplies] = []
                for answers_of_process in processes:
                    answers.extend(answers_of_process.pop(name))
            else:
                answers = requests.answers(task)
            return name, _with_documents(answers, task)

        judging = None
        if self._judges is not None:
            judging = partial(_judged, judges=self._judges, planned=planned)
        run = collect_run(planned, map(answered, self.ours), judging, folder)
        if not run.samples:
            raise MedtasksError(
                " ".join(run.manifest.problems) or "no task of the run has an answer"
            )
        return run

    def _write(self, run: RunRecord, usage: RunUsage) -> tuple[Path | None, str]:
        """Write the result directory; return it, and the scores as text."""
        stamp = str(self.asked.get("datetime_str") or "").replace(":", "-")
        update = {"created": now(), "harness_stamp": stamp, "usage": usage}
        finished = replace(run, manifest=run.manifest.model_copy(update=update))
        if self._output is None:
            return None, summary(finished, None)
        folder = _new_folder(self._output, stamp_of(self.asked))
        write_run(folder, finished)
        keep_finished(folder, finished, user_store())
        return folder, summary(finished, folder)

    def _report(self, run: RunRecord, text: str, kept: Path) -> None:
        """Print the scores and the number of failed requests."""
        attempted = 0
        reasons = Counter[str]()
        for facts in run.manifest.tasks.values():
            attempted += facts.attempted
            reasons.update(facts.failed)
        has_problems = bool(run.manifest.problems)
        ending = ending_of(text, attempted, reasons, kept, self._lm, problems=has_problems)
        end_run(ending, in_command=self._in_command)

    def _report_responses(self, requests: Requests, kept: Path, *, first: bool) -> None:
        """Print how many responses there are, in a run that scores none."""
        responses = 0
        reasons = Counter[str]()
        for _, task in self.ours.values():
            for answer in requests.answers(task):
                for reply in answer.replies:
                    if reply.failed is None:
                        responses += 1
                    else:
                        reasons[reply.failed] += 1
        total_responses = sum(gathered(responses))
        total_reasons = Counter[str]()
        for reasons_of_process in gathered(reasons):
            total_reasons.update(reasons_of_process)
        if not first:
            return
        text = (
            f"medtasks: {total_responses:,} responses, not scored (--predict_only)\n"
            f"  score them with `medtasks score {kept}`, "
            "or by the same command without --predict_only"
        )
        requested = total_responses + total_reasons.total()
        ending = ending_of(text, requested, total_reasons, kept, self._lm, problems=False)
        end_run(ending, in_command=self._in_command)

    @property
    def _in_command(self) -> bool:
        """Whether the command ``lmms-eval`` runs, not a program, which may continue afterwards."""
        return self.asked.get("cli_args") is not None


def _print_note(note: str) -> None:
    print(f"medtasks: {note}", file=sys.stderr, flush=True)


def _is_complete(run: RunRecord, names: Collection[str]) -> bool:
    """Whether all tasks are scored, and no request has failed: no reply is needed any more."""
    if any(name not in run.samples for name in names):
        return False
    return not any(facts.failed for facts in run.manifest.tasks.values())


def _with_documents(answers: Sequence[DocumentReplies], task: Any) -> list[AskedDocument]:
    """The documents of a task that were asked, in their order, with prompt and replies."""
    ordered = sorted(answers, key=lambda answer: answer.doc_id)
    documents = task.eval_docs.select([answer.doc_id for answer in ordered]).to_list()
    answered = []
    for document, answer in zip(documents, ordered, strict=True):
        answered.append(AskedDocument(document, answer.prompt, answer.replies))
    return answered


def _judged(samples: Any, *, judges: Any, planned: RunManifest) -> Any:
    """The samples with verdicts, and facts about the judging."""
    if not any(load_spec(name).metadata.rubrics for name in samples):
        return samples, {}
    verdicts = judge_all(samples, judges, planned, progress=plain_progress())
    if verdicts.error is not None and not verdicts.report:
        raise verdicts.error
    print("\n".join(verdicts.report), flush=True)
    return verdicts.samples, verdicts.facts


def _new_folder(parent: Path, stamp: str) -> Path:
    """A result directory that does not exist yet: two runs may end within one second."""
    folder = parent / f"{stamp}_medtasks"
    for number in range(2, 1000):
        if not folder.exists():
            break
        folder = parent / f"{stamp}-{number}_medtasks"
    return folder
