"""One evaluation: the harness builds requests and writes logs; we send, score and write the result
directory.

Replies are on disk before anything else happens (:mod:`medtasks.runs.unfinished`), so a later failure
costs no
inference: it is reported in one sentence, the exit code is not 0, and ``medtasks score`` continues
from there.
"""

from __future__ import annotations

import atexit
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.evaluator_utils import get_sample_size
from lmms_eval.filters import build_filter_ensemble
from lmms_eval.utils import create_iterator

from medtasks.benchmarks.documents import SYSTEM_IN_TEXT
from medtasks.catalog.rubric import load_rubric
from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec
from medtasks.core.cache import cache_root
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import canonical_json, remove_abandoned, short_hash
from medtasks.core.settings import current_settings, stopped
from medtasks.data.media.images import IMAGES
from medtasks.data.media.video import FRAMES
from medtasks.data.store import open_prepared
from medtasks.judge.judge_run import judge_all, plain_progress
from medtasks.judge.settings import configured_judges
from medtasks.runs.decoding import decoding_warnings
from medtasks.runs.manifest import RunManifest, now, task_facts, versions
from medtasks.runs.replies import RunUsage, run_usage
from medtasks.runs.samples import UNKNOWN_PROMPT
from medtasks.runs.unfinished import SUFFIX, AnswerStore, Plan, read_work
from medtasks.scoring.finished_run import collect_run, data_facts
from medtasks.scoring.item_table import refuse_unknown_names
from medtasks.scoring.run_cache import user_store
from medtasks.scoring.run_record import RunRecord, write_run
from medtasks.scoring.summary import summary
from medtasks.scoring.verified_runs import keep_finished

from . import backends
from .endings import end_run, ending_of
from .processes import agree_with_first, gathered, leave_process_group
from .requests import Requests, memory_of
from .results import KEY, replace_numbers, replace_samples, stamp_of
from .system_turn import add_system_turn, presented, refuse_system_turn


@dataclass
class Evaluation:
    """One call of ``evaluate`` that includes our tasks: ``ours`` by name, and ``groups`` of them;
    ``asked`` are the arguments of ``simple_evaluate``.
    """

    call: inspect.BoundArguments
    ours: Mapping[str, tuple[TaskSpec, Any]]
    groups: Sequence[str]
    asked: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._lm = self.call.arguments["lm"]
        backends.take_no_media(self._lm)
        tracker = self.asked.get("evaluation_tracker")
        self._output: Path | None = (
            None  # where the harness writes this model's results, if it does
        )
        if tracker is not None and tracker.output_path:
            self._output = Path(tracker.output_path) / (
                tracker.general_config_tracker.model_name_sanitized or ""
            )
        self._instruction = str(self.asked.get("system_instruction") or "")
        self._judges = configured_judges()
        for rubric in self._judges.rubrics if self._judges is not None else ():
            load_rubric(rubric)
        for name in (*self.ours, *self.groups):
            spec = load_spec(name)
            refuse_unknown_names(spec, spec.benchmark)
        for name, (spec, task) in self.ours.items():
            if self._instruction:
                refuse_system_turn(self._lm, spec)
            if not spec.benchmark.repeatable and (task.config.repeats or 1) > 1:
                raise UsageError(
                    f"{name}: repeats is {task.config.repeats}, expected 1: streaming items are scored once; run it "
                    "again with another seed instead."
                )

    def run(self, evaluate: Callable[..., Any]) -> Any:
        """The harness's results with our scores; None on every process but the first."""
        rank, logged = current_settings().rank, self.call.arguments["log_samples"]
        if rank == 0 and self._output is not None:
            remove_abandoned(self._output)
        for spec, task in self.ours.values():
            # The harness logs responses without filtering or scoring them: a failure there would
            # lose them all.
            task._filters = [build_filter_ensemble(KEY, [["take_first", None]])]
            task.process_results = lambda doc, results, full_docs=None: {}  # noqa: ARG005
            if (
                task.OUTPUT_TYPE != "generate_until"
            ):  # rounds are run by us, in batches, on every back-end
                task.OUTPUT_TYPE = task.config.output_type = "generate_until_multi_round"
            if self._instruction:
                add_system_turn(task, self._instruction)
            if backends.SYSTEM_PROMPT in backends.task_presentation(self._lm, spec):
                task.lmms_eval_specific_kwargs = {
                    **task.lmms_eval_specific_kwargs,
                    SYSTEM_IN_TEXT: True,
                }
                name = backends.backend_name(self._lm)
                message = f"{name} takes no system prompt; the task's is put before the question."
                print(f"medtasks: {spec.name}: {message}", file=sys.stderr, flush=True)
        plan = self._plan()
        folder = self._checkpoint(plan.manifest)
        agree_with_first(folder)
        store = AnswerStore(folder, rank)
        memory = memory_of(self._lm)
        self.call.arguments["response_cache"] = requests = Requests(
            store, memory, self.ours, logged
        )
        try:
            if rank == 0:
                store.write_plan(plan)
                for warning in decoding_warnings(plan.manifest):
                    print(f"medtasks: {warning}", file=sys.stderr, flush=True)
            for spec, _ in self.ours.values():
                open_prepared(
                    spec.metadata.benchmark
                ).forget_records()  # the harness has the documents
            results = evaluate(*self.call.args, **self.call.kwargs)
            IMAGES.clear()
            FRAMES.clear()
            atexit.register(leave_process_group)
            if self.asked.get("predict_only"):
                self._report_responses(requests, store.folder, first=results is not None)
                return results
            usage = self._usage(store, measured=memory is not None)
            run = self._collect(requests, plan.manifest, store.folder, first=results is not None)
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
            if not self._in_command:
                raise
            kept = "" if store.is_empty else f" from the replies so far ({store.folder})"
            raise stopped(f"run the same command again to continue{kept}") from error
        finally:
            store.close()
        self._report(run, text, store.folder)
        unscored = self.ours.keys() - run.samples.keys()
        if not unscored and not any(facts.failed for facts in run.manifest.tasks.values()):
            store.remove()
        results[KEY] = {"folder": str(written) if written else None}
        replace_numbers(results, run)
        if logged:
            replace_samples(results, run)
        if getattr(self.asked.get("cli_args"), "wandb_args", ""):
            from .wandb_tables import log_to_wandb

            log_to_wandb(run, self.asked.get("evaluation_tracker"))
        return results

    def _plan(self) -> Plan:
        """The run before any reply: with the replies, everything needed to score it without this
        process.
        """
        chosen = backends.settings(self.asked, self._lm)
        model = dict(backends.described(self._lm, chosen["model_args"]))
        model.pop("usage", None)
        tasks, documents = {}, {}
        made_elsewhere = backends.has_unknown_prompts(self._lm)
        for name, (spec, task) in self.ours.items():
            tasks[name] = task_facts(
                spec,
                {} if made_elsewhere else dict(task.config.generation_kwargs or {}),
                len(task.eval_docs),
                blind=current_settings().blind or bool(model.get("blind")),
                presentation=self._presentation(spec),
                prompt_hash=UNKNOWN_PROMPT if made_elsewhere else None,
            )
            limit, offset = (
                get_sample_size(task, self.asked.get("limit")),
                self.asked.get("offset") or 0,
            )
            numbers = create_iterator(
                range(len(task.eval_docs)), 0, 1, limit=limit or None, offset=offset
            )
            documents[name] = tuple(numbers)
        benchmarks = sorted({spec.metadata.benchmark for spec, _ in self.ours.values()})
        manifest = RunManifest(
            created=now(),
            processes=current_settings().processes,
            usage=RunUsage(devices=getattr(self._lm, "devices", 1)),
            versions=versions(),
            model=model,
            settings=chosen,
            tasks=tasks,
            groups={
                name: tuple(leaf for leaf in leaf_tasks(name) if leaf in self.ours)
                for name in self.groups
            },
            data={name: data_facts(name) for name in benchmarks},
        )
        return Plan(manifest=manifest, documents=documents)

    def _presentation(self, spec: TaskSpec) -> dict[str, str]:
        """How the back-end and the command's options change the task's prompts."""
        by_options = presented(self._instruction) if self._instruction else {}
        return {**backends.task_presentation(self._lm, spec), **by_options}

    def _checkpoint(self, planned: RunManifest) -> Path:
        """The directory of this command's replies, which does not depend on the number of
        processes.
        """
        kept = ("model", "limit", "offset", "gen_kwargs", "system_instruction", "apply_chat_template", "num_fewshot",
                "repeats", "torch_seed")  # fmt: skip
        frames, blind, subset = (
            current_settings().max_frames,
            current_settings().blind,
            current_settings().subset,
        )
        pixels = [
            str(frames or "all"),
            *(["blind"] if blind else []),
            *([str(subset)] if subset else []),
        ]
        tasks = {}
        for name, (spec, _) in self.ours.items():
            data = planned.data[spec.metadata.benchmark].fingerprint[:16]
            tasks[name] = "-".join([planned.tasks[name].protocol_hash, data, *pixels])
        identity = {
            **{name: planned.settings[name] for name in kept},
            "backend": planned.settings["model_backend"],
            "model_args": backends.run_arguments(self.asked.get("model_args")),
            "tasks": tasks,
        }
        return (
            self._output or cache_root() / "unfinished"
        ) / f"{short_hash(canonical_json(identity))[:12]}{SUFFIX}"

    def _usage(self, store: AnswerStore, *, measured: bool) -> RunUsage:
        """What the replies to the command took, with those of earlier, unfinished runs. Each
        process reads its own file, which no other is writing to; the first one also those of
        processes that no longer exist.
        """
        counters = Counter[str]()
        for own in gathered(
            self._lm.describe().get("usage", {}) if hasattr(self._lm, "describe") else {}
        ):
            counters.update(own)
        rank, processes = current_settings().rank, current_settings().processes
        work = sorted(read_work(store.folder).items()) if measured else []
        known = [
            part for number, part in work if number == rank or (rank == 0 and number >= processes)
        ]
        spent = [part for process in gathered(known) for part in process]
        return run_usage(spent, devices=getattr(self._lm, "devices", 1), counters=counters)

    def _collect(
        self, requests: Requests, planned: RunManifest, folder: Path, *, first: bool
    ) -> RunRecord | None:
        """The run, scored and judged; None on every process but the ``first``, which gathers the
        others' answers.
        """
        judges = self._judges
        several = current_settings().processes > 1
        ours = self.ours.items()
        processes = (
            gathered({name: requests.answers(task) for name, (_, task) in ours}) if several else []
        )
        if not first:
            return None

        def answered(name: str) -> tuple[str, list[Any]]:
            _, task = self.ours[name]
            parts = [own.pop(name) for own in processes] if several else [requests.answers(task)]
            answers = sorted(
                (entry for part in parts for entry in part), key=lambda entry: entry[0]
            )
            documents = task.eval_docs.select([number for number, _, _ in answers]).to_list()
            pairs = zip(documents, answers, strict=True)
            return name, [(document, prompt, replies) for document, (_, prompt, replies) in pairs]

        def judged(samples: Any) -> Any:
            if judges is None or not any(load_spec(name).metadata.rubrics for name in samples):
                return samples, {}
            verdicts = judge_all(samples, judges, planned, progress=plain_progress())
            if verdicts.error is not None and not verdicts.report:
                raise verdicts.error
            print("\n".join(verdicts.report), flush=True)
            return verdicts.samples, verdicts.facts

        judging = None if judges is None else judged
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
        begun = stamp_of(self.asked)
        names = (f"{begun}{suffix}_medtasks" for suffix in ("", *(f"-{n}" for n in range(2, 1000))))
        # two runs may end within one second
        folder = next(self._output / name for name in names if not (self._output / name).exists())
        write_run(folder, finished)
        keep_finished(folder, finished, user_store())
        return folder, summary(finished, folder)

    def _report(self, run: RunRecord, text: str, kept: Path) -> None:
        """Print the scores and the number of failed requests."""
        asked, reasons = 0, Counter[str]()
        for facts in run.manifest.tasks.values():
            asked += facts.attempted
            reasons.update(facts.failed)
        ending = ending_of(
            text, asked, reasons, kept, self._lm, problems=bool(run.manifest.problems)
        )
        end_run(ending, in_command=self._in_command)

    def _report_responses(self, requests: Requests, kept: Path, *, first: bool) -> None:
        """Print how many responses there are, in a run that scores none."""
        here = Counter[str | None]()  # by reason; None for those that are there
        for _, task in self.ours.values():
            for _, _, replies in requests.answers(task):
                here.update(reply.failed for reply in replies)
        everywhere = Counter[str | None]()
        for counts in gathered(here):
            everywhere.update(counts)
        if not first:
            return
        reasons = Counter(
            {reason: count for reason, count in everywhere.items() if reason is not None}
        )
        text = (
            f"medtasks: {everywhere[None]:,} responses, not scored (--predict_only)\n"
            f"  score them with `medtasks score {kept}`, or by the same command without --predict_only"
        )
        ending = ending_of(text, everywhere.total(), reasons, kept, self._lm, problems=False)
        end_run(ending, in_command=self._in_command)

    @property
    def _in_command(self) -> bool:
        """Whether the command ``lmms-eval`` runs, not a program, which may continue afterwards."""
        return self.asked.get("cli_args") is not None
