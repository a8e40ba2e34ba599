"""Runs under way, from the replies that they have saved: progress, failures, abstentions, and
scores so far.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.locks import is_held
from medtasks.core.settings import using
from medtasks.runs.find import PLAN
from medtasks.runs.replies import Answer, Reply
from medtasks.runs.samples import Sample
from medtasks.runs.unfinished import Plan, by_document, read_answers, read_plan
from medtasks.scoring.group_scores import scores_of
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.local_documents import local_documents
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.scores import MetricScore, Scores

from ..intake.remove_rows import layout_of
from ..verify.model_identity import model_name

LATEST = 20
"""Answers shown, the last ones."""
_SHARE = 0.2
"""Share of a processor's time that scoring the answers so far may take."""
_SILENT = 60.0
"""Seconds without a reply after which it is found out whether a process still writes the run."""


class UnfinishedRun:
    """Follows one run: a sample is scored once, and scores are computed again as often as they can
    be afforded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state: object = None
        self._run: dict[str, Any] = {
            "folder": folder.name,
            "model": "",
            "created": "",
            "tasks": (),
            "problem": "",
        }
        self._samples: dict[tuple[str, int], tuple[tuple[Reply, ...], Sample]] = {}
        self._next = 0.0

    def now(self) -> dict[str, Any]:
        """The run as its page shows it: ``seconds`` since its last reply, whether it has
        ``stopped``, ``problem`` says why it cannot be shown.

        Scores may be some seconds old.
        """
        try:
            files = {path.name: path.stat() for path in sorted(self._folder.glob("*.rank*.jsonl"))}
            state = {name: one.st_size for name, one in files.items()}
            if (state != self._state or not self._run["tasks"]) and time.monotonic() >= self._next:
                start = time.monotonic()
                self._run, self._state = self._read(), state
                self._next = time.monotonic() + (time.monotonic() - start) * (1 - _SHARE) / _SHARE
            last = max(
                (one.st_mtime for one in files.values()),
                default=(self._folder / PLAN).stat().st_mtime,
            )
        except (MedtasksError, OSError) as error:  # a run that ends removes its directory
            return {**self._run, "seconds": 0.0, "stopped": False, "problem": first_line(error)}
        seconds = max(0.0, time.time() - last)
        ranks = {name.partition(".rank")[2].partition(".")[0] for name in files} | {"0"}
        stopped = seconds > _SILENT and not any(
            is_held(self._folder / f"rank{rank}") for rank in ranks
        )
        return {**self._run, "seconds": seconds, "stopped": stopped}

    def _read(self) -> dict[str, Any]:
        plan = read_plan(self._folder)
        answers = read_answers(self._folder)
        samples: dict[str, list[Sample]] = {}
        problem = ""
        for task in plan.documents:
            try:
                samples[task] = self._scored(task, plan, answers)
            except MedtasksError as error:
                problem = f"{task}: its answers cannot be scored here ({first_line(error)})."
        whole = {task: found for task, found in samples.items() if found}
        groups = {
            name: tuple(one for one in members if one in whole)
            for name, members in plan.manifest.groups.items()
        }
        scores, pooled = scores_of(
            RunTables(whole), {name: members for name, members in groups.items() if members}
        )

        tasks: list[dict[str, Any]] = []
        for task, documents in plan.documents.items():
            spec, of_task = load_spec(task), samples.get(task, [])
            # requests are counted; statuses and abstentions are those of samples
            replies = [
                one.reply.checked() for one in answers if one.slot.task == task and one.slot.outcome
            ]
            failed = Counter(reply.failed for reply in replies if reply.failed is not None)
            responses = [sample for sample in of_task if sample.status != FAILED]
            texts = {
                str(sample.document.get("abstention", "")): sample.document for sample in responses
            }
            filtered = spec.filter.kind().apply([[text] for text in texts], list(texts.values()))
            abstentions = dict(
                zip(texts, map(str, filtered), strict=True)
            )  # as the filter writes them
            abstained = [
                one.filtered == abstentions[str(one.document.get("abstention", ""))]
                for one in responses
            ]
            tasks.append(
                {
                    "name": task,
                    "planned": len(documents) * spec.repeats,
                    "answered": len(replies) - failed.total(),
                    "failed": failed,
                    "failures": failed.total(),
                    "statuses": plan.manifest.tasks[task]
                    .with_outcomes([one.outcome for one in of_task])
                    .status,
                    "scored": len(responses),
                    "abstained": sum(abstained),
                    "scores": _scores(task, scores[task]) if task in scores else [],
                }
            )
        for name, one in pooled.items():  # groups have no progress of their own
            tasks.append(
                {
                    "name": name,
                    "planned": 0,
                    "failed": {},
                    "pooled": one.items,
                    "scores": _scores(name, one),
                }
            )
        newest = dict.fromkeys(
            (one.slot.task, one.slot.doc_id) for one in reversed(answers) if one.slot.outcome
        )
        return {
            "folder": self._folder.name,
            "model": model_name(plan.manifest),
            "created": plan.manifest.created,
            "tasks": tasks,
            "latest": [self._samples[key][1] for key in newest if key in self._samples][:LATEST],
            "problem": problem,
        }

    def _scored(self, task: str, plan: Plan, answers: Sequence[Answer]) -> list[Sample]:
        """The samples of all documents with every reply, scored as at the end of a run, without
        learned metrics.
        """
        spec = load_spec(task)
        documents = list(local_documents(task, plan.manifest).values())
        new: dict[int, tuple[tuple[Reply, ...], Sample]] = {}
        found = by_document(answers, task)
        for place, given in found.items():
            replies = tuple(
                given[repeat].reply for repeat in range(spec.repeats) if repeat in given
            )
            known, _ = self._samples.get((task, place), ((), None))
            if len(replies) == spec.repeats and replies != known:
                prompt, prompt_hash = given[0].slot.prompt, plan.manifest.tasks[task].prompt_hash
                new[place] = (
                    replies,
                    Sample.answered(task, documents[place], replies, prompt, prompt_hash),
                )
        with using(miniature=plan.manifest.miniature):
            scored = with_judged_scores(
                spec, scored_samples(spec, [sample for _, sample in new.values()])
            )
        for (place, (replies, _)), sample in zip(new.items(), scored, strict=True):
            self._samples[task, place] = replies, sample
        return [self._samples[task, place][1] for place in found if (task, place) in self._samples]


def _scores(name: str, scores: Scores) -> list[tuple[str, MetricScore]]:
    """The metrics by which the board ranks, if the task or group has some; else all that apply to
    it.
    """
    ranked = {column.metric for column in layout_of(load_spec(name).metadata.benchmark).headline}
    found = [(metric, score) for metric, score in scores.metrics.items() if score.samples]
    return [one for one in found if one[0] in ranked] or found
