"""Agreement of the option-letter filter and of lmms-eval's extractors with the blind sets, by
family and language.

Run ``python performance/reading_agreement.py``; it prints the tables of
``docs/answer-extraction.md``.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

CORPORA = sorted((Path(__file__).parent.parent / "tests" / "answers").glob("blind_*.jsonl"))
GROUPS = {
    "OpenAI": ("gpt", "o3"),
    "Gemini": ("gemini",),
    "Claude": ("claude",),
    "Qwen-VL": ("qwen",),
    "InternVL": ("internvl",),
    "medical models": (
        *(
            "medgemma",
            "lingshu",
            "llava-med",
            "huatuogpt",
            "chexagent",
            "radfm",
            "med-flamingo",
            "hulu",
            "medvlm",
        ),
        "baichuan",
    ),
}
LANGUAGES = {
    "en": "English",
    "ar": "Arabic",
    "zh": "Chinese",
    "nl": "Dutch",
    "fr": "French",
    "de": "German",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "es": "Spanish",
    "tr": "Turkish",
    "vi": "Vietnamese",
}
Reader = Callable[[str, Mapping[str, str]], str]
Read = tuple[dict[str, Any], dict[str, str]]
"""A row, and what each reader makes of it."""


def group_of(family: str) -> str:
    """The group of model families that a row belongs to."""
    return next(
        (name for name, begins in GROUPS.items() if family.casefold().startswith(begins)),
        "other open models",
    )


def rows() -> list[dict[str, Any]]:
    """The multiple-choice rows in which a letter or a whole-answer text can be read, or none may
    be.
    """
    chosen = []
    for corpus in CORPORA:
        for line in corpus.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            is_prose = row.get("by") == "prose-text"
            if row["kind"] == "choice" and not is_prose and not row.get("arguable"):
                chosen.append(row)
    return chosen


def ours(response: str, options: Mapping[str, str]) -> str:
    """The letter or status that the filter reads."""
    from medtasks.answers.option_letter import extract_option

    letter = extract_option(response, "".join(options), options)
    return letter.letter or letter.status


def theirs() -> dict[str, Reader]:
    """lmms-eval's extractors: those of MMMU and MMBench, and the shared one."""
    from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer
    from lmms_eval.tasks.mmbench.mmbench_evals import MMBench_Evaluator
    from lmms_eval.tasks.mmmu.utils import parse_multi_choice_response

    def mmmu(response: str, options: Mapping[str, str]) -> str:
        random.seed(0)  # it guesses where it finds nothing
        return str(parse_multi_choice_response(response, [*options], dict(options)))

    bench = MMBench_Evaluator.__new__(MMBench_Evaluator)  # its parser needs no judge

    def mmbench(response: str, options: Mapping[str, str]) -> str:
        # it knows no other letters
        expected = {letter: text for letter, text in options.items() if letter in "ABCD"}
        letter = bench.can_infer_option(response, len(options))
        return str(letter or bench.can_infer_text(response, expected) or "none")

    return {
        "mmmu": mmmu,
        "shared": lambda response, options: extract_mcq_answer(response, [*options]) or "none",
        "mmbench": mmbench,
    }


def agrees(row: Mapping[str, Any], read: str) -> bool:
    """Whether a reading is the reader's letter, or no letter where the reader named none."""
    reading = row["reading"] or "none"
    return read == reading if len(reading) == 1 else len(read) != 1


def tables(readers: Mapping[str, Reader]) -> Iterable[str]:
    """Lines of two tables: responses and agreement, with the wrong letters in brackets, by family
    and by language.
    """
    families: dict[str, list[Read]] = defaultdict(list)
    languages: dict[str, list[Read]] = defaultdict(list)
    for row in rows():
        read = {}
        for name, reader in readers.items():
            with contextlib.redirect_stdout(None):
                read[name] = reader(row["response"], row["options"])
        families[group_of(row["family"])].append((row, read))
        languages[LANGUAGES[row["language"]]].append((row, read))
    names = (*GROUPS, "other open models")
    yield from _table("responses like those of", _in_order(families, names), readers)
    yield ""
    yield from _table("language", _in_order(languages, LANGUAGES.values()), readers)


def _in_order(parts: Mapping[str, list[Read]], names: Iterable[str]) -> dict[str, list[Read]]:
    return {name: parts[name] for name in names if name in parts}


def _table(heading: str, parts: dict[str, list[Read]], readers: Iterable[str]) -> Iterable[str]:
    """A row for each part of the responses, and one for all."""
    yield f"| {heading} | number | {' | '.join(readers)} |"
    yield f"|---|---|{'---|' * len([*readers])}"
    everything: list[Read] = []
    for name, responses in parts.items():
        yield _row(name, responses, readers)
        everything += responses
    yield _row("all", everything, readers)


def _row(name: str, responses: list[Read], readers: Iterable[str]) -> str:
    """The number of responses and, for each reader, of agreements and of wrong letters."""
    cells = []
    for reader in readers:
        agreeing = wrong = 0
        for row, read in responses:
            agreeing += agrees(row, read[reader])
            wrong += len(read[reader]) == 1 and read[reader] != row["reading"]
        cells.append(f"{agreeing} ({wrong})")
    return f"| {name} | {len(responses)} | {' | '.join(cells)} |"


if __name__ == "__main__":
    print("\n".join(tables({"medtasks": ours, **theirs()})))
