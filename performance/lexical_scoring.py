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
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
os.environ.setdefault("MEDTASKS_DATA", "mini")  # the tasks' facts; the rows are generated

import nltk

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

LEVEL_SIZES = {1: 5548, 2: 5261, 3: 5213}
QUESTIONS_PER_IMAGE = 24
TOLERANCE = 1e-9

COLORS = [
    "pink",
    "red",
    "white",
    "yellow",
    "brown",
    "pink and red",
    "whitish",
    "violet",
    "green",
    "black",
]
PLACES = [
    "center",
    "upper-left",
    "upper-center",
    "upper-right",
    "center-left",
    "center-right",
    "lower-left",
]
PLACES += ["lower-center", "lower-right"]
COUNTS = ["one", "two", "three", "four", "no", "several"]
LANDMARKS = ["cecum", "ileum", "pylorus", "z-line", "no anatomical landmark"]
TOOLS = ["biopsy forceps", "polyp snare", "metal clip", "tube", "injection needle", "no instrument"]
FINDINGS = [
    "a polyp",
    "esophagitis",
    "ulcerative colitis",
    "Barrett's esophagus",
    "hemorrhoids",
    "no abnormality",
]
SIZES = ["less than 5 mm", "5 to 10 mm", "11 to 20 mm", "more than 20 mm"]
POLYPS = ["Paris Ip", "Paris Is", "Paris IIa", "Paris IIa+c", "no polyp"]
YES_NO = ["", "not "]

# class slug -> (phrasings with one slot, values of the slot)
CLASSES: dict[str, tuple[list[str], list[str]]] = {
    "polyp_type": (["the polyp is classified as {}", "a polyp of type {} is visible"], POLYPS),
    "polyp_removal_status": (["the polyps have {}been removed", "removal is {}complete"], YES_NO),
    "text_presence": (
        ["text is {}present in the image", "written text does {}appear on screen"],
        YES_NO,
    ),
    "box_artifact_presence": (
        ["a green and black box artifact is {}visible", "the box is {}shown"],
        YES_NO,
    ),
    "landmark_presence": (
        ["the landmark identified is the {}", "evidence of {} can be seen"],
        LANDMARKS,
    ),
    "abnormality_color": (["the abnormality appears {}", "its color is predominantly {}"], COLORS),
    "polyp_count": (["{} polyps were identified", "there are {} polyps in the image"], COUNTS),
    "instrument_location": (["the instrument is located in the {}", "the tool lies {}"], PLACES),
    "procedure_type": (
        ["the image was taken during a {}", "the procedure is a {}"],
        ["gastroscopy", "colonoscopy"],
    ),
    "instrument_presence": (["{} is present", "the image shows {}"], TOOLS),
    "abnormality_presence": (
        ["{} was detected", "findings consistent with {} are noted"],
        FINDINGS,
    ),
    "finding_presence": (
        ["the image does {}contain any finding", "findings are {}present"],
        YES_NO,
    ),
    "finding_count": (["{} findings are present", "a total of {} findings were noted"], COUNTS),
    "instrument_count": (
        ["{} instruments are in view", "the image contains {} instruments"],
        COUNTS,
    ),
    "abnormality_location": (
        ["the abnormality is in the {} region", "it is found in the {}"],
        PLACES,
    ),
    "landmark_color": (["the anatomical landmark is {}", "the landmark shows a {} color"], COLORS),
    "landmark_location": (
        ["the anatomical landmark lies in the {}", "it sits in the {} area"],
        PLACES,
    ),
    "polyp_size": (["the polyp measures {}", "its estimated size is {}"], SIZES),
}
OPENINGS = [
    "",
    "On inspection, ",
    "In this endoscopic view, ",
    "The image shows that ",
    "Evaluation reveals that ",
]
OPENINGS += ["As seen in the frame, ", "During the examination, ", "Upon review: ", "Here, "]
LINKS = [", and ", "; ", ", while ", ". Additionally, ", ", with the note that "]
SWAPS = {
    "identified": "detected",
    "present": "visible",
    "image": "picture",
    "located": "situated",
    "shows": "displays",
}
SWAPS |= {
    "polyp": "growth",
    "polyps": "polyp",
    "seen": "observed",
    "detected": "found",
    "contains": "includes",
}


@dataclass(frozen=True)
class Row:
    """One scored sample."""

    prediction: str
    reference: str
    level: int
    classes: tuple[str, ...]
    image: str


def generate(rows: int, seed: int) -> list[Row]:
    """Rows with the published share of levels; the prediction is the reference after a few random
    edits.
    """
    draw = random.Random(seed)
    total = sum(LEVEL_SIZES.values())
    levels = [
        level for level, size in LEVEL_SIZES.items() for _ in range(round(size * rows / total))
    ]
    made = []
    for number, level in enumerate((levels + [3] * rows)[:rows]):
        names = [name for name in CLASSES if level == 1 or name != "finding_presence"]
        classes = tuple(draw.choices(names, k=level))  # a class may be named twice, as in the data
        clauses = [
            (draw.choice(CLASSES[name][0]), draw.choice(CLASSES[name][1]), name) for name in classes
        ]
        frame = draw.choice(OPENINGS), draw.choice(LINKS)
        reference = sentence([text.format(value) for text, value, _ in clauses], *frame)
        prediction = reference
        if draw.random() > 0.15:
            guesses = []
            for text, value, name in clauses:
                wrong = draw.random() < 0.35
                phrasing = draw.choice(CLASSES[name][0]) if draw.random() < 0.4 else text
                guesses.append(phrasing.format(draw.choice(CLASSES[name][1]) if wrong else value))
            frame = (draw.choice(OPENINGS), draw.choice(LINKS)) if draw.random() < 0.5 else frame
            words = sentence(guesses, *frame).split()
            words = [SWAPS.get(word, word) if draw.random() < 0.4 else word for word in words]
            prediction = " ".join(word for word in words if draw.random() > 0.04)
        made.append(
            Row(
                prediction,
                reference,
                level,
                classes,
                f"image{number % -(-rows // QUESTIONS_PER_IMAGE)}",
            )
        )
    return made


def sentence(clauses: list[str], opening: str, link: str) -> str:
    """The clauses as one capitalized answer."""
    text = opening + link.join(clauses) + "."
    return text[0].upper() + text[1:]


def groups_of(rows: list[Row]) -> dict[str, list[int]]:
    """Row numbers of all rows, each level and each class, by a readable key."""
    groups: dict[str, list[int]] = {"overall": list(range(len(rows)))}
    for number, row in enumerate(rows):
        for key in {f"level {row.level}", *(f"class {name}" for name in row.classes)}:
            groups.setdefault(key, []).append(number)
    return groups


Compute = Callable[[list[str], list[str]], dict[str, float]]


def published_recipe() -> tuple[dict[str, Compute], str]:
    """``evaluate`` metrics by name as functions of (predictions, references), and where they came
    from.
    """
    import evaluate

    def loaded(source: Callable[[str], str]) -> dict[str, Any]:
        return {
            name: evaluate.load(source(name))
            for name in ("rouge", "meteor", "chrf", "bleu", "exact_match")
        }

    try:
        modules, origin = loaded(lambda name: name), "the hub's modules"
    except (
        Exception
    ) as error:  # whatever a missing hub raises: connection, cache and offline errors
        local = Path(__file__).parent / "hf_metrics"
        modules = loaded(lambda name: str(local / name))
        origin = f"local modules of `performance/hf_metrics` (the hub: {type(error).__name__})"

    def rouge(aggregated: bool, predictions: list[str], references: list[str]) -> dict[str, float]:
        types = ["rouge1", "rouge2", "rougeL"]
        got = modules["rouge"].compute(
            predictions=predictions,
            references=references,
            rouge_types=types,
            use_aggregator=aggregated,
        )
        return {
            name: float(sum(value) / len(value)) if not aggregated else value
            for name, value in got.items()
        }

    def single(
        name: str, key: str, predictions: list[str], references: list[str], **options: Any
    ) -> dict[str, float]:
        module = modules["chrf" if name == "chrf++" else name]
        return {
            name: float(
                module.compute(predictions=predictions, references=references, **options)[key]
            )
        }

    def exact(predictions: list[str], references: list[str]) -> dict[str, float]:
        sides = ([text.strip().lower() for text in side] for side in (predictions, references))
        return single("exact_match", "exact_match", *sides)

    return {
        "rouge": partial(rouge, True),
        "rouge, no bootstrap": partial(rouge, False),
        "meteor": partial(single, "meteor", "meteor"),
        "chrf": partial(single, "chrf", "score"),
        "chrf++": partial(single, "chrf++", "score", word_order=2),
        "bleu": partial(single, "bleu", "bleu"),
        "exact_match": exact,
    }, origin


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
            got = compute(predictions, references)
            seconds.setdefault(entry, {})[key] = time.perf_counter() - begin
            if entry != "rouge":  # a random value; the entry without bootstrap is compared instead
                for name, value in got.items():
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
    for made in (scored, finished):
        shutil.rmtree(made, ignore_errors=True)
    python = [sys.executable]
    # a finished run has scores; samples without them would all be reported as different
    cpu_seconds(
        [*python, "-m", "medtasks", "score", str(folder), "--out", str(finished)],
        cache.with_name("unused"),
    )
    folder = finished
    collect = [*python, "-c", COLLECT, str(scored), str(cache)]
    spent = {
        "`medtasks score DIR --out`, nothing kept": cpu_seconds(
            [*python, "-m", "medtasks", "score", str(folder), "--out", str(scored)], cache
        ),
        "`medtasks score DIR`, again": cpu_seconds(
            [*python, "-m", "medtasks", "score", str(folder)], cache
        ),
        "read for the leaderboard after `medtasks score`": cpu_seconds(
            [*python, "-c", COLLECT, str(scored), str(cache)], cache
        ),
        "read for the leaderboard, again": cpu_seconds(collect, cache),
    }
    scores = json.loads((scored / "scores.json").read_text())
    group = scores["groups"]["kvasir_vqa_x1"]
    entries = {
        "overall": group,
        **{
            f"level {level}": scores["tasks"][f"kvasir_vqa_x1_level{level}"]
            for level in LEVEL_SIZES
        },
    }
    entries |= {
        f"class {name}": part for name, part in group["breakdowns"]["question_class"].items()
    }
    values = {
        name: {key: entry["metrics"][name]["value"] for key, entry in entries.items()}
        for name in LEXICAL
    }
    return values, spent


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
    if {name: set(groups) for name, groups in ours.items()} != {
        name: set(groups) for name, groups in theirs.items()
    }:
        sys.exit("the two sides scored different metrics or groups")
    return {
        name: max(abs(ours[name][key] - theirs[name][key]) for key in ours[name]) for name in ours
    }


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
    run_recipe(
        generate(50, options.seed + 1), recipe
    )  # dictionaries and modules are loaded before it is timed
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        write_folder(rows, folder)
        begin = time.process_time()
        theirs, seconds = run_recipe(rows, recipe)
        spent = time.process_time() - begin - sum(seconds["rouge, no bootstrap"].values())
        cache = Path(parent) / "cache"
        for made in ("mini-*", "nltk_data"):  # what is made once on a machine, whatever is scored
            for kept in cache_root().glob(made):
                shutil.copytree(kept, cache / kept.name)
        ours, ours_spent = run_ours(folder, cache)
    differences = largest_difference(ours, theirs)
    if max(differences.values()) > TOLERANCE:
        sys.exit(f"the values disagree: {differences}")
    report(rows, origin, seconds, spent, ours_spent, differences)


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
    rouge = [name for name in LEXICAL if name.startswith("rouge")]
    for label, names in {
        "rouge": rouge,
        **{name: [name] for name in LEXICAL if name not in rouge},
    }.items():
        worst = max(differences[name] for name in names)
        print(f"| {label} | {sum(seconds[label].values()):.2f} | {worst:.1e} |")
    print("\n| all metrics and groups | CPU seconds | ratio |\n|---|---:|---:|")
    print(f"| published recipe, no intervals | {spent:.1f} | 1 |")
    for what, cpu in ours.items():
        print(f"| {what} | {cpu:.1f} | {spent / cpu:.1f} |")


if __name__ == "__main__":
    main()
