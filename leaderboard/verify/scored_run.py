"""A scored run as boards see it: its tables; its facts, notes on it and the commands that repeat
it, without local paths and secrets.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.redaction import HIDDEN, shown, shown_argument, shown_facts
from medtasks.core.text import counted, first_names
from medtasks.metrics.base import Array
from medtasks.metrics.streaming import Timeline
from medtasks.runs.manifest import RunManifest, created_at
from medtasks.runs.samples import without_garbage_collection
from medtasks.runs.signature import changed_options, filters_text, parse_signature
from medtasks.scoring.item_table import ItemTable, shared
from medtasks.scoring.judged_scores import IMPORTED, judge_names
from medtasks.scoring.run_cache import RunStore as RunStore
from medtasks.scoring.run_cache import compressed
from medtasks.scoring.run_record import RunFolder, RunRecord, as_data_error
from medtasks.scoring.scores import COVERAGE, Scores
from medtasks.scoring.verified_runs import scored_record

from ..board.board import BoardRun
from ..board.models import model_arguments, model_key, model_name

_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
_USUAL_SEEDS = [0, 1234, 1234, 1234]
_OPTIONS = ("num_fewshot", "system_instruction", "limit", "offset", "repeats", "batch_size")
_USUAL: dict[str, tuple[Any, ...]] = {"offset": (0,), "repeats": (1,)}


@dataclass(frozen=True)
class Entry:
    """A task or group of one run (`medtasks.scoring.run_record.RunRecord`); ``signatures`` are by metric,
    ``documents`` hashes of the run's own by task and sample id.

    Only the items that are scored are listed; the table has the others as its last rows.
    """

    name: str
    scores: Scores
    table: ItemTable
    signatures: Mapping[str, str]
    timelines: tuple[Timeline, ...] = ()
    documents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        return load_spec(self.name).metadata.benchmark

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The sorted ids."""
        return shared(self.table.unique[: self.scores.items])

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        return shared(self.table.clusters[: self.scores.items])

    @property
    def fingerprint(self) -> str:
        """That of the data, as the signatures have it."""
        signature = next(iter(self.signatures.values()), "")
        return parse_signature(signature).get("data", "")

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """A hash of the questions and gold answers of each item; empty texts if they are those of
        the data here."""
        if not self.documents:
            return ("",) * self.scores.items
        hashes = []
        for task, samples in zip(
            self.table.tasks[: self.scores.items], self.table.samples, strict=False
        ):
            known = self.documents.get(task, {})
            hashes.append("".join(known.get(sample, "") for sample in samples))
        return shared(tuple(hashes))

    def contradicts(self, other: Entry) -> bool:
        """Whether both runs have the same item with different questions or gold answers."""
        if self.questions == other.questions and self.items == other.items:
            return False
        known = dict(zip(other.items, other.questions, strict=True))
        pairs = zip(self.items, self.questions, strict=True)
        return any(question != known.get(item, question) for item, question in pairs)

    @property
    def first_items(self) -> list[str]:
        """The first item of each item's cluster: equal for equal clusters, which stripped runs
        rename.
        """
        first: dict[str, str] = {}
        return [
            first.setdefault(cluster, item)
            for item, cluster in zip(self.items, self.clusters, strict=True)
        ]

    @cached_property
    def items_hash(self) -> str:
        """A hash of the items and their clusters."""
        return short_hash(canonical_json([self.items, self.first_items]))

    def statistics(self, metric: str, part: str = "") -> Array:
        """The metric's statistics ``(items, width)``, those of items that are judged by parts
        reduced to the ``part``.

        A row of NaN is an item without a value (unjudged or not computed), a row of zeros of a
        mean-type metric an item to which it does not apply (NaN in wider ones).
        """
        column = self.table.column(metric, part)
        found = column.statistics
        if found.shape[1] == 2 and not column.present.all():
            found = np.where(column.present[:, None], found, 0.0)
        return found[: self.scores.items]


@dataclass(frozen=True)
class ScoredRun(RunRecord):
    """One run, scored here, from the directory called ``folder`` with the content ``digest``."""

    folder: str = ""
    digest: str = ""

    @classmethod
    def of(cls, run: RunRecord, folder: str = "", digest: str = "") -> ScoredRun:
        return cls(
            **{one.name: getattr(run, one.name) for one in fields(run)},
            folder=folder,
            digest=digest,
        )

    @cached_property
    def model(self) -> str:
        return model_key(self.manifest)

    @cached_property
    def public(self) -> BoardRun:
        """What a board shows of the run."""
        manifest = self.manifest
        tasks = dict(sorted(manifest.tasks.items()))
        model = {
            key: value for key, value in model_arguments(manifest).items() if key != "processes"
        }
        scored = {
            f"{name} (scored)": shown(one) for name, one in sorted((manifest.scored or {}).items())
        }
        judges = {}
        for name, facts in sorted(manifest.judge.items()):
            combined = f", {facts.combine}" if len(facts.judges) > 1 else ""
            names = ", ".join(map(shown, facts.judges))
            judges[name] = (
                f"{names} (rubric {facts.rubric_hash}, judge {facts.judge_hash}{combined})"
            )
        counts = {}
        for task, one in tasks.items():
            statuses = {f"status {key}": count for key, count in one.status.items()}
            ends = {f"finish {key}": count for key, count in one.finish.items()}
            counts[task] = {"asked": one.asked, "answered": one.answered, **statuses, **ends}
        return BoardRun(
            key=f"run-{self.digest[:12]}",
            folder=shown(self.folder),
            digest=self.digest,
            created=created_at(manifest),
            model=self.model,
            versions={**shown_facts(manifest.versions), **scored},
            model_facts={**shown_facts(model), "name": model_name(manifest)},
            settings={**shown_facts(manifest.settings), "processes": str(manifest.processes)},
            generation={task: shown(one.generation) for task, one in tasks.items()},
            protocols={task: one.protocol_hash for task, one in tasks.items()},
            prompts={task: one.prompt_hash for task, one in tasks.items()},
            filters={task: filters_text(one.filters) for task, one in tasks.items()},
            frames={task: shown(one.frames) for task, one in tasks.items() if one.frames},
            presentation={
                task: shown(one.presentation) for task, one in tasks.items() if one.presentation
            },
            data={name: one.fingerprint for name, one in sorted(manifest.data.items())},
            judges=judges,
            judged_by={task: shown(names) for task, names in judge_names(manifest).items()},
            counts=counts,
            commands=commands(manifest, self.folder),
            mini=bool(manifest.miniature),
            notes=tuple(map(shown, (*run_notes(manifest, self.scores), *self.notes))),
            usage=manifest.usage,
        )

    @cached_property
    def blind(self) -> bool:
        """Whether a task was asked without its media."""
        return any(one.blind for one in self.manifest.tasks.values())

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        entries = {}
        for name, scores in self.scores.items():
            table = self.tables.of(name, self.manifest.groups.get(name, ()))
            lines = (
                line.model_copy(update={"model": self.model})
                for line in self.timelines.get(name, ())
            )
            entries[name] = Entry(
                name, scores, table, self.signatures[name], tuple(lines), self.questions
            )
        return entries

    @cached_property
    def complete(self) -> Mapping[str, bool]:
        """Whether every prepared document was asked, by task and group, according to the
        manifest.
        """
        complete = {
            task: facts.attempted == facts.asked and not self.tasks[task].incomplete
            for task, facts in self.manifest.tasks.items()
        }
        for name in self.groups:  # tasks without prepared rows are never run
            members = self.manifest.groups[name]
            complete[name] = all(complete[task] for task in members) and {*leaf_tasks(name)} <= {
                *members
            }
        return complete


@without_garbage_collection()
def scored_run(
    run: Path | RunFolder, store: RunStore | None = None, *, own: bool = False, whole: bool = False
) -> ScoredRun:
    """The run in a result directory, scored by the data and rules of this machine.

    Args:
        run: the run; tasks of packages that are not installed are left out, and so are their
        groups, with a note.
        store: keeps the run, and its columns out of memory; None scores it now.
        own: as in `medtasks.scoring.verified_runs.scored_record`.
        whole: with the samples.

    Raises:
        UsageError: it is not a result directory, or none of its tasks is installed.
        DataError: it cannot be read, or manifest and samples do not match; names file and field.
        MedtasksError: the samples cannot be scored.
    """
    store = store or RunStore(None)
    source = RunFolder(run) if isinstance(run, Path) else run
    content = source.content
    key = store.key_of(content, *source.contains())
    found = None if whole else store.read_run(key, own=own)
    if found is None or (own and found.kept is None):
        if found is None:
            with as_data_error(source.directory):
                found = scored_record(*source.read(), source.name, own=own, whole=whole)
        if own:
            found = replace(found, kept=(found.comparisons, found.level_gaps))
        store.keep(key, found)
        if not whole:  # with less in memory: a board has many runs
            found = store.read_run(key, own=own) or compressed(found)
    return ScoredRun.of(found, source.name, content)


def release_coverage(manifest: RunManifest, benchmark: str) -> tuple[int, int]:
    """The number of prepared records, and the number in the release.

    They are those of the run's tasks if the data count records by task. If the source had fewer
    records than were published, whatever it counted, all prepared records are compared with the
    published number, which says nothing about tasks whose rows it does not count
    (`Benchmark.apart`).
    """
    facts, known = manifest.data[benchmark], get_benchmark(benchmark)
    own = {task for task, one in manifest.tasks.items() if one.benchmark == benchmark}
    counts_rows = any(known.apart is None or known.apart not in task for task in own)
    published = known.published.get("rows", 0) if counts_rows else 0
    excluded = sum(facts.excluded.values())
    source = sum(entry.records for entry in facts.coverage) or facts.records
    if not facts.mini and source + excluded < published:
        return facts.records, published
    if not facts.coverage:
        return facts.records, facts.records + excluded
    entries = [entry for entry in facts.coverage if entry.task in own]
    return sum(one.prepared for one in entries), sum(one.records for one in entries)


def run_notes(manifest: RunManifest, scores: Mapping[str, Scores]) -> Iterator[str]:
    """What a reader must know about a run and the ``scores`` of its tasks and groups, a sentence
    each: where it comes from, its data, what was asked, and how it was judged.
    """
    if manifest.has_unknown_prompts:
        yield (
            f"responses made elsewhere ({manifest.model.get('layout', 'medtasks_replay')}): prompts, generation "
            "settings and frames are unknown, so it is comparable with other such runs only"
        )
    if manifest.scored is not None:
        before, now = manifest.versions.get("medtasks", "?"), manifest.scored.get("medtasks", "?")
        yield f"rescored: run with medtasks {before}, scored again with {now}"
    if manifest.miniature:
        yield f"miniature data ({', '.join(sorted(manifest.miniature))}): a demonstration, not a benchmark result"
    for name, facts in sorted(manifest.data.items()):
        prepared, records = release_coverage(manifest, name)
        if prepared < records:
            yield f"{name}: coverage {prepared / records:.0%} ({prepared:,} of the release's {records:,} records)"
        for why, count in sorted(facts.excluded.items()):
            yield f"{name}: excluded when the data were prepared: {count:,} ({why})"
    for name, entry in sorted(scores.items()):
        if entry.without:
            yield f"{name}: scored without {first_names(entry.without)}, of which the run has no samples"
    tasks = dict(sorted(manifest.tasks.items()))
    for task, one in tasks.items():
        for why, count in sorted(one.excluded.items()):
            yield f"{task}: documents excluded: {count:,} ({why})"
    if blind := [task for task, one in tasks.items() if one.blind]:
        yield "blind: prompts without media" + (
            "" if len(blind) == len(tasks) else f" ({', '.join(blind)})"
        )
    for subset in sorted({one.subset for one in tasks.values()} - {""}):
        yield f"subset of the clusters ({subset}): comparable with runs of the same subset only"
    answered = sum(one.answered for one in tasks.values())
    asked = sum(one.asked for one in tasks.values())
    limit, offset = manifest.settings.get("limit"), manifest.settings.get("offset")
    if limit is not None or offset:
        yield f"run with --limit: {answered:,} of {asked:,} documents"
    elif answered < asked:
        yield f"{answered:,} of {asked:,} documents were answered"
    for task, one in tasks.items():
        for why, count in sorted(one.failed.items()):
            yield f"{task}: {counted(count, 'request')} without a response ({why})"
        if one.cut_off:
            limit = "" if manifest.has_unknown_prompts else " at the token limit"
            yield f"{task}: {one.cut_off_text} of the responses were cut off{limit}"
        if one.scored_in_part:
            yield f"{task}: {one.scored_in_part_text}"
        if texts := one.readings.get("text"):
            options = texts + one.readings.get("letter", 0)
            yield f"{task}: {texts:,} of {options:,} options were named by text, not by letter"
    yield from manifest.problems
    if incomplete := sum(scores[task].incomplete for task in tasks if task in scores):
        yield f"streaming items not scored because not all of their rounds were asked: {incomplete:,}"
    for option, value in changed_options(manifest.settings).items():
        yield f"run with --{option} {value}"
    if manifest.settings.get("predict_only"):
        yield "run with --predict_only"
    judged = {task for facts in manifest.judge.values() for task in facts.tasks}
    if unjudged := [
        task for task in tasks if task not in judged and load_spec(task).metadata.rubrics
    ]:
        yield f"not judged: {', '.join(unjudged)}"
    for name, rubric in sorted(manifest.judge.items()):
        if rubric.unjudged:
            reasons = ", ".join(
                f"{why}: {count:,}" for why, count in sorted(rubric.unjudged.items())
            )
            yield f"{name}: {sum(rubric.unjudged.values()):,} of {rubric.asked:,} responses unjudged ({reasons})"
        yield from (f"{name}: {warning}" for warning in rubric.warnings)


def commands(manifest: RunManifest, folder: str) -> tuple[str, ...]:
    """One line each to prepare the data, run or score, and judge; ``folder`` is the name of the
    run's directory.
    """
    lines = [get_benchmark(name).prepare for name, facts in manifest.data.items() if not facts.mini]

    environment = (
        ["MEDTASKS_DATA=mini"] if any(facts.mini for facts in manifest.data.values()) else []
    )
    if any(task.blind for task in manifest.tasks.values()) and not manifest.model.get("blind"):
        environment.append("MEDTASKS_BLIND=1")
    environment += sorted(
        {f"MEDTASKS_SUBSET={task.subset}" for task in manifest.tasks.values() if task.subset}
    )
    caps = {
        task.frames["cap"] for task in manifest.tasks.values() if task.frames.get("cap") is not None
    }
    environment += [f"MEDTASKS_MAX_FRAMES={cap}" for cap in sorted(caps)]

    imported = {
        name: any(IMPORTED in one for one in facts.judges.values())
        for name, facts in manifest.judge.items()
    }
    if layout := manifest.model.get("layout"):
        file, model = manifest.model.get("predictions", HIDDEN), manifest.model.get("model", HIDDEN)
        judges = dict.fromkeys(
            judge for name in imported if imported[name] for judge in manifest.judge[name].judges
        )
        options = [f"--verdicts-of {_word(judge)}" for judge in judges]
        if epoch := manifest.model.get("epoch"):
            options.append(f"--epoch {_word(epoch)}")
        for name in _named_tasks(manifest) if layout != "lmms-eval" else manifest.tasks:
            of_task = _word(file.get(name, file) if isinstance(file, Mapping) else file)
            source = f"medtasks score {of_task} --from {_word(layout)} --task {_word(name)} --model {_word(model)}"
            lines.append(" ".join([*environment, source, *options, "--out NEW_DIR"]))
    else:
        lines.append(
            " ".join([*environment, "lmms-eval", *_options(manifest), "--output_path results"])
        )

    for rubric, facts in manifest.judge.items():
        if imported[rubric]:
            continue
        words = [f"medtasks judge {_word(folder)} --rubric {_word(rubric)}"]
        for identity in facts.judges.values():
            known = {
                key: value for key, value in identity.items() if value is not None and value != {}
            }
            plain = all(
                isinstance(value, (str, int, float)) and "," not in str(value)
                for value in known.values()
            )
            judge = {"model": known.get("model", HIDDEN), "base_url": HIDDEN, **known}
            words.append(f"--judge {_word(_as_arguments(judge)) if plain else 'judge.yaml'}")
        if len(facts.judges) > 1:
            words.append(f"--combine {facts.combine}")
        if facts.threshold != COVERAGE:
            words.append(f"--threshold {facts.threshold:g}")
        lines.append(" ".join(words))
    if manifest.scored is not None:
        lines.append(f"medtasks score {_word(folder)} --out NEW_DIR")
    return tuple(lines)


def _named_tasks(manifest: RunManifest) -> list[str]:
    """The value of ``--tasks``: the run's widest groups, and all tasks outside them."""
    widest: dict[str, set[str]] = {}
    for name, members in sorted(manifest.groups.items(), key=lambda one: -len(one[1])):
        if not any({*members} <= others for others in widest.values()):
            widest[name] = {*members}
    covered = set().union(*widest.values())
    groups = [name for name in manifest.groups if name in widest]
    return [*groups, *(one for one in manifest.tasks if one not in covered)]


def _options(manifest: RunManifest) -> list[str]:
    settings = manifest.settings

    pairs = {
        option: settings[option] for option in ("model_args", "gen_kwargs") if settings.get(option)
    }
    given = {
        "model": _word(settings.get("model") or manifest.model.get("model", HIDDEN)),
        "model_args": "",
        "tasks": _word(",".join(_named_tasks(manifest))),
        **{
            option: shlex.quote(shown_argument(_as_arguments(value)))
            for option, value in pairs.items()
        },
    }
    for option in _OPTIONS:
        value = settings.get(option)
        if value is not None and value not in _USUAL.get(option, ("",)):
            given[option] = _word(value)
    seeds = [settings.get(key) for key in _SEEDS]
    if None not in seeds and seeds != _USUAL_SEEDS:
        given["seed"] = ",".join(map(str, seeds))
    return [f"--{option} {value}" for option, value in given.items() if value]


def _as_arguments(given: Any) -> str:
    if isinstance(given, Mapping):
        return ",".join(f"{key}={value}" for key, value in given.items())
    return str(given)


def _word(value: Any) -> str:
    return shlex.quote(shown(value))
