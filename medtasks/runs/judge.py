"""Judging a run under one or several rubrics, by one or several judges, and scoring it again."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from medtasks.benchmarks.documents import all_pictures
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric, load_rubric
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.files import canonical_json
from medtasks.core.settings import using
from medtasks.core.text import first_names, one_line, printable, shortened
from medtasks.data.store import open_prepared
from medtasks.judge.agreement import HumanLabels, read_labels
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.pipeline import INVALID, REPAIR, ImageSource, Question, Verdicts, all_or_none, judge_questions
from medtasks.judge.settings import STUB, JudgeConfig, JudgeSettings, default_store, judge_identity
from medtasks.judge.store import VerdictStore
from medtasks.judge.verdict import same_family
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.record import RunRecord
from medtasks.runs.samples import Sample, rare_garbage_collection, without_garbage_collection
from medtasks.runs.verdicts import agreement_of, judge_hash, judged_samples, questions_of

Samples = Mapping[str, list[Sample]]
"""The samples of a run, by task."""
Progress = Callable[[str, str, int, int, Spent, "str | None"], None]
"""Called with the rubric, the judge, questions done and in total, usage, and why the judge is not answering, if so."""

SHOWN = 300  # characters of an answer
EVERY = 30.0  # seconds
_FAILURES = ("http ", "timeout:", "connection:", "bad reply:", "question:")
_KEY_MISSING = ("http 400", "http 401", "http 403", "http 404")  # typical replies to a request without a key


@dataclass(frozen=True)
class Outcome:
    """The result of judging under one rubric; ``verdicts`` are by judge, ``problems`` are messages for the user."""

    samples: dict[str, list[Sample]]
    facts: RubricFacts
    verdicts: dict[str, Verdicts]
    problems: tuple[str, ...]
    labels: HumanLabels | None


@dataclass
class Judged:
    """A run's samples with verdicts and scores, and the facts on all rubrics for its manifest.

    ``outcomes`` are those of the rubrics judged now, ``failed`` has the error of each rubric that failed. A rubric
    without a single verdict is in both, and leaves ``samples`` and ``facts`` unchanged.
    """

    samples: dict[str, list[Sample]]
    facts: dict[str, RubricFacts]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    failed: dict[str, MedtasksError] = field(default_factory=dict)

    @property
    def succeeded(self) -> dict[str, Outcome]:
        return {name: outcome for name, outcome in self.outcomes.items() if name not in self.failed}

    @property
    def error(self) -> MedtasksError | None:
        """All failures as one error; None if there was none."""
        distinct = {str(error): error for error in self.failed.values()}
        if len(distinct) < 2:
            return next(iter(distinct.values()), None)
        return MedtasksError(" ".join(distinct))


def judge_run(
    manifest: RunManifest,
    samples: Samples,
    config: JudgeConfig,
    *,
    human: Path | None = None,
    progress: Progress | None = None,
) -> tuple[RunRecord, Judged]:
    """Judge a finished run and score it again; other metrics are kept. If all rubrics fail, the run is unchanged."""
    with using(miniature=manifest.miniature):
        judged = judge_all(samples, config, manifest, human=human, progress=progress)
    with without_garbage_collection():
        renewed = manifest.model_copy(update={"judge": judged.facts})
        return RunRecord.scored(renewed, judged.samples), judged


def is_judged(run: RunRecord, config: JudgeConfig) -> bool:
    """Whether the scored run has this panel's verdicts on all responses; False, too, if judges see images, which are
    compared with the prepared data first."""
    known = config.threshold, _family_warnings(config, run.manifest)
    for rubric, tasks in _tasks_by_rubric(run.manifest.tasks, config.rubrics):
        facts = run.manifest.judge.get(rubric.name)
        panel = judge_hash(rubric, template_hash(rubric.template), _identities(rubric, config), config.combine)
        if facts is None or facts.judge_hash != panel or {*facts.tasks} != {*tasks} or facts.judged != facts.asked:
            return False
        if _shows_images(rubric, config) or (facts.threshold, facts.warnings) != known:
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
    progress: Progress | None = None,
) -> Judged:
    """Judge ``samples`` under one rubric after another, asking all judges concurrently.

    The rubrics are those in ``config``, by default the first one of each task; tasks that none applies to are
    unchanged, and scores of rubrics judged before are kept. ``human`` is a CSV file of human annotations
    (`medtasks.judge.agreement.read_labels`) to compare the judges with.

    Raises:
        UsageError: a rubric is unknown or applies to no task of the run, or no task of the run is judged.
        MedtasksError: the verdict store or the annotations cannot be read.
    """
    tasks_by_rubric = _tasks_by_rubric(samples, config.rubrics)
    judged = Judged(dict(samples), dict(manifest.judge))
    clients = {name: JudgeClient(one) for name, one in config.judges.items()}  # all rubrics share their budgets
    warnings = _family_warnings(config, manifest)
    with VerdictStore(config.store or default_store()) as store:
        for rubric, tasks in tasks_by_rubric:
            name, labels = rubric.name, None
            if human is not None:
                documents = {(task, one.sample_id): one.whole_document() for task in tasks for one in samples[task]}
                labels = read_labels(human, rubric, documents)
            try:
                questions = _questions(judged.samples, tasks, rubric, config, manifest)
                with rare_garbage_collection():
                    asking = [
                        judge_questions(questions, rubric, client, store, progress and partial(progress, name, judge))
                        for judge, client in clients.items()
                    ]
                    verdicts = dict(zip(clients, asyncio.run(all_or_none(asking)), strict=True))
                with without_garbage_collection():
                    scored, facts = judged_samples(
                        judged.samples,
                        judged.facts,
                        rubric,
                        tasks,
                        _identities(rubric, config),
                        questions,
                        verdicts,
                        rule=config.combine,
                        threshold=config.threshold,
                        warnings=warnings,
                        agreement=agreement_of(rubric, questions, verdicts, labels.ratings if labels else {}),
                    )
                    problems = _problems(verdicts, config.judges, store)
            except MedtasksError as error:
                judged.failed[name] = error
                continue
            judged.outcomes[name] = Outcome(scored, facts, verdicts, problems, labels)
            if not facts.asked or any(given.valid for given in verdicts.values()):
                judged.samples, judged.facts[name] = scored, facts
                continue
            reasons = "; ".join(f"{count:,} × {reason}" for reason, count in Counter(facts.unjudged).most_common(3))
            sentences = [
                f"rubric {name}: not one of {facts.asked:,} responses was judged ({reasons})",
                *problems,
                "Its scores were not changed, and the answers received are kept in the verdict store",
            ]
            judged.failed[name] = MedtasksError(". ".join(one.rstrip(".") for one in sentences) + ".")
    return judged


def _tasks_by_rubric(tasks: Collection[str], named: Sequence[str]) -> list[tuple[Rubric, tuple[str, ...]]]:
    """The rubrics in ``named``, with all tasks that name them or whose benchmark they name; by default those that are
    the first of a task."""
    of = {task: load_spec(task).metadata for task in tasks}
    first = [rubric for metadata in of.values() for rubric in metadata.rubrics[:1]]
    if not named and not first:
        raise UsageError(f"no task of this run is judged ({', '.join(tasks)}); its scores are complete without.")
    judged = []
    for rubric in [load_rubric(name) for name in dict.fromkeys(named or first)]:
        members = tuple(
            task
            for task, metadata in of.items()
            if rubric.name in (metadata.rubrics if named else metadata.rubrics[:1])
            or (named and metadata.benchmark in rubric.benchmarks)
        )
        if not members:
            raise UsageError(
                f"rubric {rubric.name} is for no task of this run ({', '.join(tasks)}); a task names its rubrics in "
                "its metadata."
            )
        judged.append((rubric, members))
    return judged


def _family_warnings(config: JudgeConfig, manifest: RunManifest) -> tuple[str, ...]:
    """A warning for each judge of the same family as the judged model, which may have several names."""
    arguments = manifest.settings.get("model_args")
    if isinstance(arguments, Mapping):
        given = [*arguments.values()]
    else:
        given = [entry.partition("=")[2] for entry in str(arguments or "").split(",")]
    names = [*(manifest.model.get(key) for key in ("checkpoint", "pretrained", "model")), *given]
    named = [name for name in names if isinstance(name, str) and name]
    warnings = set()
    for settings in config.judges.values():
        warnings |= {*[text for name in named if (text := same_family(settings.model, name)) is not None][:1]}
    return tuple(sorted(warnings))


def _identities(rubric: Rubric, config: JudgeConfig) -> dict[str, dict[str, Any]]:
    return {name: judge_identity(one, images=rubric.media and one.images) for name, one in config.judges.items()}


def _shows_images(rubric: Rubric, config: JudgeConfig) -> bool:
    return rubric.media and any(one.images for one in config.judges.values())


def _questions(
    samples: Samples, tasks: Sequence[str], rubric: Rubric, config: JudgeConfig, manifest: RunManifest
) -> list[Question]:
    """Every response of ``tasks`` that ``rubric`` asks about, with its images or frames if a judge is shown them."""
    if not _shows_images(rubric, config):
        return questions_of(samples, tasks, rubric)
    benchmarks = {task: load_spec(task).metadata.benchmark for task in tasks}
    prepared = {name: open_prepared(name).manifest.fingerprint for name in sorted(set(benchmarks.values()))}
    for benchmark, fingerprint in prepared.items():
        if fingerprint != (expected := manifest.data[benchmark].fingerprint):
            raise MedtasksError(
                f"{benchmark}: the data prepared here have fingerprint {fingerprint}, those of the run {expected}, so "
                "its images cannot be shown to a judge; prepare the same data, or judge without images."
            )

    def images(task: str, sample: Sample) -> tuple[ImageSource, ...]:
        document, fingerprint = sample.whole_document(), prepared[benchmarks[task]]
        frames = document.get("frames") or []
        names = [f"{document['media'][0]}@{frame}" for frame in frames] or document["media"]
        keys = (hashlib.sha256(f"{fingerprint}/{name}".encode()).hexdigest() for name in names)
        # also in a blind run: its judge is not blind
        return tuple(ImageSource(key, partial(picture, document, place)) for place, key in enumerate(keys))

    def picture(document: Mapping[str, Any], place: int) -> Any:
        return all_pictures(document)[place]

    return questions_of(samples, tasks, rubric, images)


def _problems(
    verdicts: Mapping[str, Verdicts], judges: Mapping[str, JudgeSettings], store: VerdictStore
) -> tuple[str, ...]:
    """One line per judge for its first failure, with its address, and one for its first invalid answer."""
    lines = []
    for name, given in verdicts.items():
        failure = next((why for why in given.unjudged.values() if why.startswith(_FAILURES)), None)
        if failure is not None:
            without_key = ""
            if failure.startswith(_KEY_MISSING) and judges[name].api_key() is None:
                variable = judges[name].api_key_env
                without_key = f" (asked without a key: the environment variable {variable} is not set)"
            lines.append(one_line(f"{name} at {judges[name].base_url}: {failure}{without_key}"))
        for question, verdict in given.by_question.items():
            if verdict.unjudged == INVALID:
                key = verdict.key or ""
                (*_, last) = store.get([key, key + REPAIR]).values()
                answer = shortened(last.answer, SHOWN) or "(nothing)"
                why = f"not a verdict, because {last.reason}; it answered: {answer}"
                lines.append(one_line(f"{name} on {question}: {why}"))
                break
    return tuple(lines)


class PlainProgress:
    """Prints progress on standard error: every 30 seconds, and immediately when a judge starts to fail."""

    def __init__(self) -> None:
        self._printed = time.monotonic()
        self._known: set[tuple[str, str]] = set()

    def __call__(self, rubric: str, judge: str, done: int, total: int, spent: Spent, trouble: str | None) -> None:
        kind = (judge, "" if trouble is None else trouble.partition(":")[0])
        fresh = trouble is not None and kind not in self._known
        if not fresh and time.monotonic() - self._printed < EVERY:
            return
        self._known.add(kind)
        self._printed = time.monotonic()
        state = f"{done:,} of {total:,} responses done, {spent.requests:,} requests"
        if trouble is not None:
            state += f"; waiting: {trouble}"
        print(printable(f"medtasks: {rubric}, {judge}: {state}"), file=sys.stderr, flush=True)


def report_lines(judged: Judged, config: JudgeConfig) -> list[str]:
    """A paragraph for each rubric that was just judged, and a line for each that failed."""
    lines: list[str] = []
    for name, outcome in judged.succeeded.items():
        facts, labels = outcome.facts, outcome.labels
        share = f" ({facts.judged / facts.asked:.1%})" if facts.asked else ""
        lines += ["", f"{name}: {facts.judged:,} of {facts.asked:,} responses judged{share}"]
        if any(one["model"] == STUB for one in facts.judges.values()):
            lines.append("  judged by a stub, which compares words: a demonstration, not a judgement")
        lines += [f"  unjudged: {count:,} ({reason})" for reason, count in facts.unjudged.items()]
        lines += [f"  {printable(problem)}" for problem in outcome.problems]
        if facts.repaired:
            lines.append(f"  {facts.repaired:,} answers repaired")
        for judge, verdicts in outcome.verdicts.items():
            spent = verdicts.spent
            cost = config.judges[judge].cost(spent.prompt_tokens, spent.completion_tokens)
            lines.append(
                f"  {judge}: {spent.requests:,} requests now ({spent.retries:,} retries, {spent.failed:,} questions "
                f"without an answer), {_tokens(spent)}{'' if cost is None else f', cost {cost:,.2f}'}"
            )
        lines.append(f"  all verdicts, including stored ones: {_tokens(facts)}")
        lines += [f"  warning: {warning}" for warning in facts.warnings]
        if labels is not None and labels.unmatched:
            shown = first_names(labels.unmatched, 5)
            lines.append(f"  {len(labels.unmatched):,} labelled samples are not in this run: {shown}")
    if judged.failed and lines:
        lines += ["", *(printable(f"not judged: {error}") for error in judged.failed.values())]
    return lines


def _tokens(used: Spent | RubricFacts) -> str:
    return f"{used.prompt_tokens:,} prompt and {used.completion_tokens:,} completion tokens"


def exported_lines(judged: Judged, store: VerdictStore) -> Iterator[str]:
    """One JSON line per response, judge and rubric: sample, prompt, raw answers, parsed verdict, tokens."""
    sources = {name: (facts, judged.samples) for name, facts in judged.facts.items()}
    # also if nothing could be judged under a rubric: the answers show why
    sources |= {name: (outcome.facts, outcome.samples) for name, outcome in judged.outcomes.items()}
    for rubric, (facts, samples) in sorted(sources.items()):
        for task, sample in ((name, one) for name in facts.tasks for one in samples[name]):
            for number, response in enumerate(sample.verdicts.get(rubric, ())):
                for judge, entry in sorted(response.judges.items()):
                    stored = [] if entry.key is None else [*store.get([entry.key, entry.key + REPAIR]).values()]
                    line = {
                        "rubric": rubric,
                        "task": task,
                        "sample_id": sample.sample_id,
                        "repeat": number,
                        "judge": judge,
                        **entry.model_dump(mode="json"),
                        "prompt": stored[0].prompt if stored else None,
                        "answers": [one.answer for one in stored],
                    }
                    yield canonical_json(line)
