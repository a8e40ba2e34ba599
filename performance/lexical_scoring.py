"""Target S1: lexical scoring of a Kvasir-VQA-x1-shaped result folder, and a leaderboard of it.

In one run, on the same generated rows: the published recipe (Hugging Face ``evaluate`` metrics,
called anew for all rows, each level and each class) and what users call, each in a process of its
own: ``medtasks score DIR``, which also makes intervals, with an empty cache and again with what
that left, and reading the folder for a leaderboard. The values must agree before any time is
printed.

    python performance/lexical_scoring.py [--rows N] [--seed S]
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
os.environ.setdefault("MEDTASKS_DATA", "mini")  # the tasks' facts; the rows are generated

import nltk
from kvasir_rows import LEVEL_SIZES, Row, generate
from published_recipe import Compute, published_recipe

from medtasks.benchmarks.documents import prompt_text
from medtasks.benchmarks.kvasir_vqa_x1 import documents
from medtasks.benchmarks.kvasir_vqa_x1.records import ATOMIC_QUESTIONS, AtomicPair, KvasirRecord
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.cache import cache_root
from medtasks.metrics import meteor
from medtasks.metrics.registry import LEXICAL, get_metric
from medtasks.runs.manifest import DataFacts, RunManifest, versions
from medtasks.runs.protocol import task_facts
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.run_record import RunRecord

TOLERANCE = 1e-9


def groups_of(rows: list[Row]) -> dict[str, list[int]]:
    """Row numbers of all rows, each level and each class, by a readable key."""
    groups: dict[str, list[int]] = {"overall": list(range(len(rows)))}
    for number, row in enumerate(rows):
        for key in {f"level {row.level}", *(f"class {name}" for name in row.classes)}:
            groups.setdefault(key, []).append(number)
    return groups


def run_recipe(
    rows: list[Row], recipe: dict[str, Compute]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Values by metric and group, and seconds by recipe entry and group."""
    values: dict[str, dict[str, float]] = {}
    seconds: dict[str, dict[str, float]] = {}
    for entry, compute in recipe.items():
        for key, members in groups_of(rows).items():
            predictions = [rows[i].prediction for i in members]
            references = [rows[i].reference for i in members]
            begin = time.perf_counter()
            scores = compute(predictions, references)
            seconds.setdefault(entry, {})[key] = time.perf_counter() - begin
            if entry != "rouge":  # a random value; the entry without bootstrap is compared instead
                for name, value in scores.items():
                    values.setdefault(name, {})[key] = value
    return values, seconds


def write_folder(rows: list[Row], folder: Path) -> None:
    """A result folder of the rows, as a run leaves it."""
    samples: dict[str, list[Sample]] = {}
    facts = {}
    for level in LEVEL_SIZES:
        spec = load_spec(f"kvasir_vqa_x1_level{level}")
        chosen = [(number, row) for number, row in enumerate(rows) if row.level == level]
        samples[spec.name] = [unscored(spec, number, row) for number, row in chosen]
        facts[spec.name] = task_facts(spec, spec.generation, len(chosen))
        facts[spec.name] = facts[spec.name].model_copy(update={"answered": len(chosen)})
    manifest = RunManifest(
        created="2026-01-01T00:00:00+00:00",
        processes=1,
        versions=versions(),
        model={"model": "generated"},
        settings={},
        tasks=facts,
        groups={"kvasir_vqa_x1": tuple(samples)},
        data={
            "kvasir_vqa_x1": DataFacts(
                fingerprint="0" * 64, mini=True, records=len(rows), excluded={}
            )
        },
    )
    write_run(folder, RunRecord(manifest=manifest, samples=samples, tasks={}, groups={}))


def unscored(spec: TaskSpec, number: int, row: Row) -> Sample:
    """The sample line of one row, before anything was computed of it."""
    questions = {name: question for question, name in ATOMIC_QUESTIONS.items()}
    record = KvasirRecord(
        sample_id=f"{row.image}-{number:08x}",
        cluster=row.image,
        media=(f"{row.image}.jpg",),
        img_id=row.image,
        complexity=row.level,
        question="What does the image show?",
        answer=row.reference,
        original=tuple(AtomicPair(q=questions[name], a="?") for name in row.classes),
        question_class=row.classes,
    )
    (document,) = documents(record)
    fields = {"benchmark": "kvasir_vqa_x1", **document}
    return Sample(
        task=spec.name,
        prompt_hash=spec.prompt_hash or "",
        prompt=prompt_text(fields, spec.template or ""),
        responses=(row.prediction,),
        filtered=row.prediction,
        status="ok",
        scores={},
        statistics={},
        **{name: fields.pop(name) for name in ("sample_id", "cluster", "media", "target")},
        document=fields,
    )


COLLECT = """
import sys
from pathlib import Path
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.verify.scored_run import RunStore
runs, refused = collect([Path(sys.argv[1])], RunStore(Path(sys.argv[2]) / "scores"))
assert runs and not refused, refused
"""


def run_ours(folder: Path, cache: Path) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Values by metric and group, and CPU seconds of each thing that users call."""
    scored, finished = folder.with_name("scored"), folder.with_name("finished")
    for directory in (scored, finished):
        shutil.rmtree(directory, ignore_errors=True)
    score = [sys.executable, "-m", "medtasks", "score"]
    # a finished run has scores; samples without them would all be reported as different
    cpu_seconds([*score, str(folder), "--out", str(finished)], cache.with_name("unused"))
    score_out = [*score, str(finished), "--out", str(scored)]
    collect = [sys.executable, "-c", COLLECT, str(scored), str(cache)]
    spent = {
        "`medtasks score DIR --out`, nothing kept": cpu_seconds(score_out, cache),
        "`medtasks score DIR`, again": cpu_seconds([*score, str(finished)], cache),
        "read for the leaderboard after `medtasks score`": cpu_seconds(collect, cache),
        "read for the leaderboard, again": cpu_seconds(collect, cache),
    }
    return read_values(json.loads((scored / "scores.json").read_text())), spent


def read_values(scores: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Values by metric and group of a ``scores.json``."""
    overall = scores["groups"]["kvasir_vqa_x1"]
    groups = {"overall": overall}
    for level in LEVEL_SIZES:
        groups[f"level {level}"] = scores["tasks"][f"kvasir_vqa_x1_level{level}"]
    for name, group in overall["breakdowns"]["question_class"].items():
        groups[f"class {name}"] = group
    values: dict[str, dict[str, float]] = {}
    for name in LEXICAL:
        values[name] = {key: group["metrics"][name]["value"] for key, group in groups.items()}
    return values


def cpu_seconds(command: list[str], cache: Path) -> float:
    """CPU seconds (user and system) of a command that keeps things in ``cache``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "MEDTASKS_CACHE": str(cache)}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def largest_difference(
    ours: dict[str, dict[str, float]], theirs: dict[str, dict[str, float]]
) -> dict[str, float]:
    """Largest absolute difference over the groups, by metric; both sides must have the same
    groups.
    """
    if ours.keys() != theirs.keys():
        sys.exit("the two sides scored different metrics or groups")
    largest = {}
    for name, values in ours.items():
        if values.keys() != theirs[name].keys():
            sys.exit("the two sides scored different metrics or groups")
        largest[name] = max(abs(value - theirs[name][key]) for key, value in values.items())
    return largest


def give_nltk_wordnet() -> None:
    """Copy the dictionary to where NLTK reads it, if it has none: the recipe uses NLTK's own
    reader.
    """
    dictionary = meteor.corpus()
    if isinstance(dictionary, Path):
        data = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, data)
        copy = Path(shutil.copytree(dictionary, data / "corpora" / "wordnet"))
        # NLTK's table of the 45 lexicographer files, whose names METEOR does not use
        (copy / "lexnames").write_text("".join(f"{number:02d}\tany\t1\n" for number in range(45)))
        nltk.data.path.append(str(data))


def main() -> None:
    """Run both sides and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", type=int, default=sum(LEVEL_SIZES.values()), help="fewer for a quick look"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = generate(options.rows, options.seed)
    give_nltk_wordnet()
    recipe, origin = published_recipe()
    # dictionaries and modules are loaded before it is timed
    run_recipe(generate(50, options.seed + 1), recipe)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        write_folder(rows, folder)
        begin = time.process_time()
        theirs, seconds = run_recipe(rows, recipe)
        spent = time.process_time() - begin - sum(seconds["rouge, no bootstrap"].values())
        cache = Path(parent) / "cache"
        for pattern in ("mini-*", "nltk_data"):  # made once on a machine, whatever is scored
            for folder_kept in cache_root().glob(pattern):
                shutil.copytree(folder_kept, cache / folder_kept.name)
        ours, ours_spent = run_ours(folder, cache)
    differences = largest_difference(ours, theirs)
    if max(differences.values()) > TOLERANCE:
        sys.exit(f"the values disagree: {differences}")
    report(rows, origin, seconds, spent, ours_spent, differences)


def recipe_metrics() -> dict[str, list[str]]:
    """Our metrics by the recipe's entry that computes them."""
    metrics: dict[str, list[str]] = {}
    for name in LEXICAL:
        entry = "rouge" if name.startswith("rouge") else name
        metrics.setdefault(entry, []).append(name)
    return dict(sorted(metrics.items(), key=lambda item: item[0] != "rouge"))


def report(
    rows: list[Row],
    origin: str,
    seconds: dict[str, dict[str, float]],
    spent: float,
    ours: dict[str, float],
    differences: dict[str, float],
) -> None:
    """Table S1."""
    libraries = ["evaluate", "nltk", "numpy", "rouge-score", "sacrebleu"]
    installed = ", ".join(f"{name} {version(name)}" for name in libraries)
    pairs = {(row.prediction, row.reference) for row in rows}
    print(
        f"{len(rows):,} rows, {len(pairs):,} distinct pairs, {len(groups_of(rows))} groups; "
        f"recipe from {origin}\n"
    )
    print(
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"{installed}; ",
        end="",
    )
    print(f"`{get_metric('meteor').signature}`\n")
    print("| published recipe | seconds | largest difference |\n|---|---:|---:|")
    for label, names in recipe_metrics().items():
        worst = max(differences[name] for name in names)
        print(f"| {label} | {sum(seconds[label].values()):.2f} | {worst:.1e} |")
    print("\n| all metrics and groups | CPU seconds | ratio |\n|---|---:|---:|")
    print(f"| published recipe, no intervals | {spent:.1f} | 1 |")
    for what, cpu in ours.items():
        print(f"| {what} | {cpu:.1f} | {spent / cpu:.1f} |")


if __name__ == "__main__":
    main()
