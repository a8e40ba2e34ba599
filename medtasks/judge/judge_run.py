"""Judging a run under one or several rubrics, by one or several judges, and scoring it again."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric, load_rubric
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.files import canonical_json, replaced
from medtasks.core.settings import using
from medtasks.core.text import first_names, one_line, printable, shortened
from medtasks.data.store import open_prepared
from medtasks.judge.agreement import Labels, agreement_report, read_labels
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.families import family_warnings
from medtasks.judge.pipeline import Question, Unusable, all_or_none, judge_questions
from medtasks.judge.questions import judged_samples, questions_of
from medtasks.judge.settings import JudgeConfig, JudgeSettings, judge_identity
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.samples import Sample, rare_garbage_collection, without_garbage_collection
from medtasks.runs.verdict import STUB, Verdict
from medtasks.scoring.judged_scores import judge_hash
from medtasks.scoring.run_record import RunRecord

Samples = Mapping[str, list[Sample]]
"""The samples of a run, by task."""
Progress = Callable[[str, str, int, int, Spent, "str | None"], None]
"""Called with the rubric, the judge, questions done and in total, usage, and why the judge is not
answering, if so.
"""

KEPT = "unusable answers are kept in the verdict store; once the judge works, ask for them again with --again"
SHOWN = 300  # characters of an answer
EVERY = 30.0  # seconds
_FAILURES = ("http ", "timeout:", "connection:", "bad reply:", "question:", "batch ")
_KEY_MISSING = (
    "http 400",
    "http 401",
    "http 403",
    "http 404",
)  # typical replies to a request without a key


@dataclass
class Judged:
    """A run's samples with verdicts and scores, and the facts on all rubrics for its manifest.

    ``report`` has a paragraph for each rubric that was just judged, and a line for each that failed
    beside them; ``failed`` the errors of these. What a rubric without a single verdict would have
    made of the run is in ``unused``; ``samples`` and ``facts`` are unchanged by it.
    """

    samples: dict[str, list[Sample]]
    facts: dict[str, RubricFacts]
    report: list[str] = field(default_factory=list)
    failed: dict[str, MedtasksError] = field(default_factory=dict)
    unused: dict[str, tuple[dict[str, list[Sample]], RubricFacts]] = field(default_factory=dict)

    @property
    def error(self) -> MedtasksError | None:
        """All failures as one error; None if there was none."""
        distinct = {str(error): error for error in self.failed.values()}
        if len(distinct) < 2:
            return next(iter(distinct.values()), None)
        return MedtasksError(" ".join(distinct))


def is_judged(run: RunRecord, config: JudgeConfig) -> bool:
    """Whether the scored run has this panel's verdicts on all responses; False, too, if judges see
    images, which are compared with the prepared data first.
    """
    known = config.threshold, _family_warnings(config, run.manifest)
    for rubric, tasks in _tasks_by_rubric(run.manifest.tasks, config.rubrics):
        facts, identities = run.manifest.judge.get(rubric.name), _identities(rubric, config)
        panel = judge_hash(rubric, template_hash(rubric.template), identities, config.combine)
        if (
            facts is None
            or facts.judge_hash != panel
            or {*facts.tasks} != {*tasks}
            or facts.judged != facts.asked
        ):
            return False
        if _see_images(identities) or (facts.threshold, facts.warnings) != known:
            return False
        scores = [run.tasks[task].metrics[metric] for task in tasks for metric in rubric.metrics]
        if any(one.judged is None or one.judged != (one.answered or one.samples) for one in scores):
            return False
    return True


def judge_all(
    samples: Samples,
    config: JudgeConfig,
    manifest: RunManifest,
    *,
    human: Path | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Judged:
    """Judge ``samples`` under one rubric after another, asking all judges concurrently.

    The rubrics are those in ``config``, by default the first one of each task; tasks that none
    applies to are unchanged, and scores of rubrics judged before are kept. ``human`` is a CSV file
    of human annotations (`medtasks.judge.agreement.read_labels`) to compare the judges with.
    ``again`` asks again where the stored answer is not a verdict.

    Raises:
        UsageError: a rubric is unknown or applies to no task of the run, or no task of the run is
        judged.
        MedtasksError: the verdict store or the annotations cannot be read.
    """
    tasks_by_rubric = _tasks_by_rubric(samples, config.rubrics)
    judged = Judged(dict(samples), dict(manifest.judge))
    clients = {
        name: JudgeClient(one) for name, one in config.judges.items()
    }  # all rubrics share their budgets
    warnings = _family_warnings(config, manifest)
    with using(miniature=manifest.miniature), VerdictStore(config.store) as store:
        for rubric, tasks in tasks_by_rubric:
            name, identities = rubric.name, _identities(rubric, config)
            labels: Labels = {}
            unmatched: list[str] = []
            if human is not None:
                documents = {
                    (task, one.sample_id): one.whole_document()
                    for task in tasks
                    for one in samples[task]
                }
                labels, unmatched = read_labels(human, rubric, documents)
            before = {judge: replace(client.spent) for judge, client in clients.items()}
            try:
                shown = _fingerprints(tasks, manifest) if _see_images(identities) else None
                questions = questions_of(judged.samples, tasks, rubric, shown)
                with rare_garbage_collection():
                    asking = []
                    for judge, client in clients.items():
                        shown_progress = progress and partial(progress, name, judge)
                        asking.append(
                            judge_questions(
                                questions, rubric, client, store, shown_progress, again=again
                            )
                        )
                    verdicts = dict(zip(clients, asyncio.run(all_or_none(asking)), strict=True))
                with without_garbage_collection():
                    scored, facts = judged_samples(
                        judged.samples,
                        judged.facts,
                        rubric,
                        tasks,
                        identities,
                        questions,
                        verdicts,
                        rule=config.combine,
                        threshold=config.threshold,
                        warnings=warnings,
                        agreement=_agreement(rubric, questions, verdicts, labels),
                    )
                    problems = _problems(verdicts, config.judges, store)
            except MedtasksError as error:
                judged.failed[name] = error
                continue
            if facts.asked and not any(
                one.scores for given in verdicts.values() for one in given.values()
            ):
                judged.unused[name] = scored, facts
                reasons = "; ".join(
                    f"{count:,} × {reason}"
                    for reason, count in Counter(facts.unjudged).most_common(3)
                )
                sentences = [
                    f"rubric {name}: not one of {facts.asked:,} responses was judged ({reasons})",
                    *problems,
                    "Its scores were not changed",
                ]
                if _has_unusable(verdicts):
                    sentences.append(KEPT[0].upper() + KEPT[1:])
                judged.failed[name] = MedtasksError(
                    ". ".join(one.rstrip(".") for one in sentences) + "."
                )
                continue
            judged.samples, judged.facts[name] = scored, facts
            spent = {judge: client.spent.since(before[judge]) for judge, client in clients.items()}
            judged.report += _report(
                facts, problems, spent, config.judges, kept=_has_unusable(verdicts)
            )
            if unmatched:
                first = first_names(unmatched, 5)
                judged.report.append(
                    f"  {len(unmatched):,} labelled samples are not in this run: {first}"
                )
    if judged.failed and judged.report:
        judged.report += [
            "",
            *(printable(f"not judged: {error}") for error in judged.failed.values()),
        ]
    return judged


def _tasks_by_rubric(
    tasks: Collection[str], named: Sequence[str]
) -> list[tuple[Rubric, tuple[str, ...]]]:
    """The rubrics in ``named``, with tasks that name them or whose benchmark they name; else the
    first of each task.
    """
    of = {task: load_spec(task).metadata for task in tasks}
    names = named or [rubric for metadata in of.values() for rubric in metadata.rubrics[:1]]
    if not names:
        raise UsageError(
            f"no task of this run is judged ({', '.join(tasks)}); its scores are complete without."
        )
    judged = []
    for rubric in map(load_rubric, dict.fromkeys(names)):
        members = [
            task
            for task, metadata in of.items()
            if rubric.name in metadata.rubrics[: None if named else 1]
        ]
        if named:
            members = [
                task for task in of if task in members or of[task].benchmark in rubric.benchmarks
            ]
        if not members:
            raise UsageError(
                f"rubric {rubric.name} is for no task of this run ({', '.join(tasks)}); a task names its rubrics in "
                "its metadata."
            )
        judged.append((rubric, tuple(members)))
    return judged


def _family_warnings(config: JudgeConfig, manifest: RunManifest) -> tuple[str, ...]:
    given = manifest.settings.get("model_args") or {}
    if not isinstance(given, Mapping):
        given = dict(entry.partition("=")[::2] for entry in str(given).split(","))
    named = [manifest.model.get(key) for key in ("checkpoint", "pretrained", "model")]
    names = [name for name in (*named, *given.values()) if isinstance(name, str) and name]
    return family_warnings((one.model for one in config.judges.values()), names)


def _identities(rubric: Rubric, config: JudgeConfig) -> dict[str, dict[str, Any]]:
    return {
        name: judge_identity(one, images=rubric.media and one.images)
        for name, one in config.judges.items()
    }


def _see_images(identities: Mapping[str, Mapping[str, Any]]) -> bool:
    return any("images" in identity for identity in identities.values())


def _fingerprints(tasks: Sequence[str], manifest: RunManifest) -> dict[str, str]:
    """The fingerprints of the tasks' prepared data, which are the run's, by benchmark."""
    found = {}
    for benchmark in sorted({load_spec(task).metadata.benchmark for task in tasks}):
        found[benchmark] = open_prepared(benchmark).manifest.fingerprint
        if found[benchmark] != (expected := manifest.data[benchmark].fingerprint):
            raise MedtasksError(
                f"{benchmark}: the data prepared here have fingerprint {found[benchmark]}, those of the run "
                f"{expected}, so its images cannot be shown to a judge; prepare the same data, or judge without images."
            )
    return found


def _agreement(
    rubric: Rubric,
    questions: Sequence[Question],
    verdicts: Mapping[str, Mapping[str, Verdict]],
    labels: Labels,
) -> AgreementReport | None:
    """Agreement of the judges with each other and with human annotations, which are about a
    sample's first response; None for a single rater.
    """
    clusters = {question.name: str(question.document["cluster"]) for question in questions}
    ratings: dict[str, dict[str, Mapping[str, float]]] = {
        judge: {name: one.scores for name, one in given.items() if one.scores is not None}
        for judge, given in verdicts.items()
    }
    for rater, scores in labels.items():
        by_name = {f"{task}/{sample_id}#0": given for (task, sample_id), given in scores.items()}
        name = rater if rater not in verdicts else f"{rater} (labels)"
        ratings[name] = {name: given for name, given in by_name.items() if name in clusters}
    return agreement_report(rubric, ratings, clusters) if len(ratings) > 1 else None


def _has_unusable(verdicts: Mapping[str, Mapping[str, Verdict]]) -> bool:
    """Whether a stored answer of a judge is not a verdict."""
    return any(Unusable.of(verdict) for given in verdicts.values() for verdict in given.values())


def _problems(
    verdicts: Mapping[str, Mapping[str, Verdict]],
    judges: Mapping[str, JudgeSettings],
    store: VerdictStore,
) -> list[str]:
    """A line per judge for its first failure, with its address, and one for its first unusable
    answer of each kind."""
    lines = []
    for judge, given in verdicts.items():
        reasons = (verdict.unjudged or "" for verdict in given.values())
        failure = next((reason for reason in reasons if reason.startswith(_FAILURES)), None)
        if failure is not None:
            without_key = ""
            if failure.startswith(_KEY_MISSING) and judges[judge].api_key() is None:
                variable = judges[judge].api_key_env
                without_key = (
                    f" (asked without a key: the environment variable {variable} is not set)"
                )
            lines.append(one_line(f"{judge} at {judges[judge].base_url}: {failure}{without_key}"))
        first_of_kind: dict[Unusable, tuple[str, Verdict]] = {}
        for question, verdict in given.items():
            kind = Unusable.of(verdict)
            if kind is not None:
                first_of_kind.setdefault(kind, (question, verdict))
        for kind, (question, verdict) in first_of_kind.items():
            last = store.get(verdict.key or "")[-1]
            answer = shortened(last.answer, SHOWN) or "(nothing)"
            lines.append(
                one_line(
                    f"{judge} on {question}: {_why(kind, verdict, last)}; it answered: {answer}"
                )
            )
    return lines


def _why(kind: Unusable, verdict: Verdict, last: StoredVerdict) -> str:
    """Why the last answer to a question is not a verdict."""
    if kind is Unusable.INVALID:
        return f"not a verdict, because {last.reason}"
    if kind is Unusable.CUT and last.completion_tokens:
        return f"{verdict.unjudged} (it has {last.completion_tokens:,} tokens, those of its reasoning included)"
    return verdict.unjudged or kind.value


def plain_progress() -> Progress:
    """Progress printed on standard error: every 30 seconds, and immediately when a judge starts to
    fail.
    """
    printed, known = time.monotonic(), set[tuple[str, str]]()

    def show(
        rubric: str, judge: str, done: int, total: int, spent: Spent, trouble: str | None
    ) -> None:
        nonlocal printed
        kind, waiting = (
            (judge, (trouble or "").partition(":")[0]),
            f"; waiting: {trouble}" if trouble else "",
        )
        if (not trouble or kind in known) and time.monotonic() - printed < EVERY:
            return
        known.add(kind)
        printed = time.monotonic()
        state = f"{done:,} of {total:,} responses done, {spent.requests:,} requests{waiting}"
        print(printable(f"medtasks: {rubric}, {judge}: {state}"), file=sys.stderr, flush=True)

    return show


def _report(
    facts: RubricFacts,
    problems: Sequence[str],
    spent: Mapping[str, Spent],
    judges: Mapping[str, JudgeSettings],
    *,
    kept: bool,
) -> Iterator[str]:
    share = f" ({facts.judged / facts.asked:.1%})" if facts.asked else ""
    yield from (
        "",
        f"{facts.rubric.name}: {facts.judged:,} of {facts.asked:,} responses judged{share}",
    )
    if any(one["model"] == STUB for one in facts.judges.values()):
        yield "  judged by a stub, which compares words: a demonstration, not a judgement"
    yield from (f"  unjudged: {count:,} ({reason})" for reason, count in facts.unjudged.items())
    yield from (f"  {printable(problem)}" for problem in problems)
    if kept:
        yield f"  {KEPT}"
    if facts.repaired:
        yield f"  {facts.repaired:,} answers repaired"
    for judge, used in spent.items():
        cost = judges[judge].cost(used.prompt_tokens, used.completion_tokens)
        yield (
            f"  {judge}: {used.requests:,} requests now ({used.retries:,} retries, {used.failed:,} questions without "
            f"an answer), {_tokens(used)}{'' if cost is None else f', cost {cost:,.2f}'}"
        )
    yield f"  all verdicts, including stored ones: {_tokens(facts)}"
    yield from (f"  warning: {warning}" for warning in facts.warnings)


def _tokens(used: Spent | RubricFacts) -> str:
    return f"{used.prompt_tokens:,} prompt and {used.completion_tokens:,} completion tokens"


def export_verdicts(judged: Judged, config: JudgeConfig, path: Path) -> int:
    """Write one JSON line per response, judge and rubric, and return their number: sample, prompt,
    raw answers, parsed verdict, tokens.
    """
    # also if nothing could be judged under a rubric: the answers show why
    sources = {
        name: (judged.samples, facts) for name, facts in judged.facts.items()
    } | judged.unused
    written = 0
    with (
        VerdictStore(config.store) as store,
        replaced(path) as partial,
        partial.open("w", encoding="utf-8") as stream,
    ):
        for rubric, (samples, facts) in sorted(sources.items()):
            responses = (
                (sample, number, response)
                for task in facts.tasks
                for sample in samples[task]
                for number, response in enumerate(sample.verdicts.get(rubric, ()))
            )
            for sample, number, response in responses:
                for judge, entry in sorted(response.judges.items()):
                    stored = [] if entry.key is None else store.get(entry.key)
                    line = {
                        "rubric": rubric,
                        "task": sample.task,
                        "sample_id": sample.sample_id,
                        "repeat": number,
                        "judge": judge,
                        **entry.model_dump(mode="json"),
                        "prompt": stored[0].prompt if stored else None,
                        "answers": [one.answer for one in stored],
                    }
                    written += stream.write(canonical_json(line) + "\n") > 0
    return written
