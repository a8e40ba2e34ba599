"""The plan of a run, made before any request is sent, and the directory of its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.evaluator_utils import get_sample_size
from lmms_eval.utils import create_iterator

from medtasks.catalog.spec import TaskSpec, leaf_tasks
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.settings import current_settings
from medtasks.runs.manifest import DataFacts, RunManifest, TaskFacts, now, versions
from medtasks.runs.protocol import task_facts
from medtasks.runs.samples import UNKNOWN_PROMPT
from medtasks.runs.unfinished import SUFFIX, RunPlan
from medtasks.runs.usage import RunUsage
from medtasks.scoring.finished_run import data_facts

from . import model_facts
from .presentation import has_unknown_prompts, task_presentation
from .stream_times import is_of_streams
from .system_turn import presented

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


@dataclass(frozen=True)
class RunPlanner:
    """Plans a run of the model ``lm`` from the arguments of ``simple_evaluate``.

    ``tasks`` are our tasks by name, each with the harness's object, and ``groups`` those that
    contain them; ``asked`` are the arguments.
    """

    lm: Any
    tasks: Mapping[str, tuple[TaskSpec, Any]]
    groups: Sequence[str]
    asked: Mapping[str, Any]

    def plan(self) -> RunPlan:
        """The manifest before any reply, and the document numbers of each task.

        With the replies, it is all that is needed to score the run without this process.
        """
        settings = model_facts.settings(self.asked, self.lm)
        model = dict(model_facts.described(self.lm, settings["model_args"]))
        model.pop("usage", None)
        is_blind = current_settings().blind or bool(model.get("blind"))
        tasks: dict[str, TaskFacts] = {}
        documents: dict[str, tuple[int, ...]] = {}
        for name, (spec, task) in self.tasks.items():
            tasks[name] = self._task_facts(spec, task, blind=is_blind)
            documents[name] = self._document_numbers(task)
        manifest = RunManifest(
            created=now(),
            processes=current_settings().processes,
            usage=RunUsage(devices=getattr(self.lm, "devices", 1)),
            versions=versions(),
            model=model,
            settings=settings,
            tasks=tasks,
            groups=self._members_of_groups(),
            data=self._data_facts(),
        )
        return RunPlan(manifest=manifest, documents=documents)

    def _task_facts(self, spec: TaskSpec, task: Any, *, blind: bool) -> TaskFacts:
        """The facts of a task; without generation settings if its responses were made elsewhere."""
        prompt_hash: str | None = None
        generation = dict(task.config.generation_kwargs or {})
        if has_unknown_prompts(self.lm):
            prompt_hash = UNKNOWN_PROMPT
            generation = {}
        return task_facts(
            spec,
            generation,
            len(task.eval_docs),
            blind=blind,
            pace=self._pace(spec),
            presentation=self._presentation(spec),
            prompt_hash=prompt_hash,
        )

    def _pace(self, spec: TaskSpec) -> str:
        """The pace at which the rounds of a task are sent; empty if they do not wait."""
        pace = current_settings().pace
        return str(pace) if pace is not None and is_of_streams(spec) else ""

    def _presentation(self, spec: TaskSpec) -> dict[str, str]:
        """How the back-end and the command's options change the task's prompts."""
        changes = task_presentation(self.lm, spec)
        instruction = str(self.asked.get("system_instruction") or "")
        if instruction:
            changes |= presented(instruction)
        return changes

    def _document_numbers(self, task: Any) -> tuple[int, ...]:
        """The numbers of the documents that ``--limit`` and ``--offset`` select."""
        limit = get_sample_size(task, self.asked.get("limit")) or None
        offset = self.asked.get("offset") or 0
        numbers = range(len(task.eval_docs))
        return tuple(create_iterator(numbers, 0, 1, limit=limit, offset=offset))

    def _members_of_groups(self) -> dict[str, tuple[str, ...]]:
        """The tasks of each group that are in this run."""
        members: dict[str, tuple[str, ...]] = {}
        for group in self.groups:
            members[group] = tuple(leaf for leaf in leaf_tasks(group) if leaf in self.tasks)
        return members

    def _data_facts(self) -> dict[str, DataFacts]:
        """The facts about the prepared data of each benchmark."""
        benchmarks = {spec.metadata.benchmark for spec, _ in self.tasks.values()}
        return {benchmark: data_facts(benchmark) for benchmark in sorted(benchmarks)}

    def reply_folder(self, planned: RunManifest, parent: Path) -> Path:
        """The directory of this command's replies in ``parent``.

        It is the same for any number of processes.
        """
        identity = {
            **{name: planned.settings[name] for name in _IDENTITY},
            "backend": planned.settings["model_backend"],
            "model_args": model_facts.run_arguments(self.asked.get("model_args")),
            "tasks": self._task_identities(planned),
        }
        return parent / f"{short_hash(canonical_json(identity))[:12]}{SUFFIX}"

    def _task_identities(self, planned: RunManifest) -> dict[str, str]:
        """What the replies to each task depend on: its protocol, its data, and the media shown."""
        settings = current_settings()
        media = [str(settings.max_frames or "all")]
        if settings.blind:
            media.append("blind")
        if settings.subset:
            media.append(str(settings.subset))
        identities: dict[str, str] = {}
        for name, (spec, _) in self.tasks.items():
            data = planned.data[spec.metadata.benchmark].fingerprint[:16]
            identities[name] = "-".join([planned.tasks[name].protocol_hash, data, *media])
        return identities
