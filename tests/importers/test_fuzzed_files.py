"""Damaged files of predictions: each is scored with every prediction accounted for, or refused in
one sentence.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook
from written_workbooks import formula, text, write_workbook

from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import MedtasksError
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.importers.matching import join
from medtasks.importers.prediction_files import read_predictions, recognise

TASK = "mi_cxr_icr"
BY_PICTURE = "kvasir_vqa_x1_level1"
ROUNDS = 120
"""Damaged versions of each file, or 2,520 in all; a few of them are not slow."""
FEW = 8

ODD: list[Any] = [
    *(None, True, False, 0, -1, 7, 10**30, 0.5, float("nan"), float("inf")),
    *("", " ", "B", "\0", "\u202e", "=1", "_x000D_", "null", "icr-33", "x" * 40_000),
    *([], {}, [[]], [None], ["B", "C"], {"text": "B"}, [{"a": 1}], [[[["B"]]]]),
]
TOKENS = (
    *(b"null", b"NaN", b'"', b"{", b"[" * 50, b"]", b"}", b",", b"<", b"&"),
    *(b"\0", b"\xff\xfe", b"\n", b"9" * 400, b"\\u0000"),
)


# --- whole files of each kind ---


def rows() -> list[dict[str, Any]]:
    answers = [
        "B",
        "A. It grows.",
        "<think>C?</think>D",
        "",
        "I cannot tell.",
        "Final answer: **E**",
    ]
    documents = task_documents(TASK)
    return [
        {"sample_id": one["sample_id"], "response": answer, "task": TASK, "finish_reason": "stop"}
        for one, answer in zip(documents, answers, strict=True)
    ]


def inspect_samples() -> list[dict[str, Any]]:
    samples = []
    for row in rows():
        message = {"role": "assistant", "content": [{"type": "text", "text": row["response"]}]}
        output = {
            "choices": [{"message": message, "stop_reason": "max_tokens"}],
            "usage": {"output_tokens": 3},
        }
        common = {
            "input": [{"role": "user", "content": "Which?"}],
            "target": ["A"],
            "error": None,
            "limit": None,
        }
        samples.append(
            {
                "id": row["sample_id"],
                "epoch": 1,
                **common,
                "output": output,
                "metadata": {"task": TASK},
            }
        )
    return samples


def swift_rows() -> list[dict[str, Any]]:
    found = []
    for one in task_documents(BY_PICTURE)[:3]:
        asked = {"role": "user", "content": f"<image>{one['question']}"}
        messages = [asked, {"role": "assistant", "content": "A polyp."}]
        found.append(
            {
                "images": [{"path": f"{one['img_id']}.jpg"}],
                "messages": messages,
                "response": "Two polyps.",
            }
        )
    return found


def lmms_eval_rows() -> list[dict[str, Any]]:
    documents = task_documents(TASK)
    return [
        {
            "doc_id": number,
            "target": one["target"],
            "resps": [["B"]],
            "filtered_resps": ["B"],
            "input_media": one["media"],
        }
        for number, one in enumerate(documents)
    ]


def jsonl(values: Sequence[object]) -> bytes:
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values).encode()


def csv_bytes(delimiter: str = ",") -> bytes:
    file = io.StringIO()
    table = csv.DictWriter(file, [*rows()[0]], delimiter=delimiter)
    table.writeheader()
    table.writerows(rows())
    return file.getvalue().encode()


def openpyxl_bytes() -> bytes:
    book = Workbook()
    book.active.append(["index", "sample_id", "question", "prediction"])
    for number, row in enumerate(rows()):
        book.active.append([number, row["sample_id"], "Which?", row["response"] or "=> B"])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def written_bytes(folder: Path) -> bytes:
    cells = [
        [text("sample_id"), text("prediction")],
        *([text(row["sample_id"]), formula("> B")] for row in rows()),
    ]
    return write_workbook(folder / "seed", cells).read_bytes()


def archive_bytes() -> bytes:
    return zipped(
        {f"samples/{one['id']}_epoch_1.json": json.dumps(one).encode() for one in inspect_samples()}
    )


def zipped(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def parquet_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows()), sink)
    return bytes(sink.getvalue())


SEEDS: dict[str, Callable[[Path], bytes]] = {
    "p.jsonl": lambda _: jsonl(rows()),
    "list.json": lambda _: json.dumps(rows(), indent=1).encode(),
    "object.json": lambda _: json.dumps({"model": "m", "predictions": rows()}).encode(),
    "utf16.jsonl": lambda _: jsonl(rows()).decode().encode("utf-16"),
    "p.csv": lambda _: csv_bytes(),
    "sep.csv": lambda _: b"sep=;\r\n" + csv_bytes(";"),
    "utf16.csv": lambda _: csv_bytes("\t").decode().encode("utf-16"),
    "openpyxl.xlsx": lambda _: openpyxl_bytes(),
    "written.xlsx": written_bytes,
    "log.json": lambda _: json.dumps({"eval": {}, "samples": inspect_samples()}).encode(),
    "log.eval": lambda _: archive_bytes(),
    "p.parquet": lambda _: parquet_bytes(),
    "swift.jsonl": lambda _: jsonl(swift_rows()),
    f"1_samples_{TASK}.jsonl": lambda _: jsonl(lmms_eval_rows()),
}
ARCHIVES = ("openpyxl.xlsx", "written.xlsx", "log.eval")
OBJECTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "p.jsonl": rows,
    "swift.jsonl": swift_rows,
    f"1_samples_{TASK}.jsonl": lmms_eval_rows,
}


# --- damage ---


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The file with one to four changes of its bytes."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place, length = chance.randrange(len(changed) + 1), chance.choice((1, 1, 3, 20, 200))
        kind = chance.randrange(5)
        if kind == 0:
            del changed[place:]
        elif kind == 1:
            changed[place : place + length] = b""
        elif kind == 2:
            changed[place:place] = chance.choice(TOKENS)
        elif kind == 3:
            changed[place:place] = changed[place : place + length]
        else:
            changed[place : place + 1] = bytes([chance.randrange(256)])
    return bytes(changed)


def damaged_within(data: bytes, chance: random.Random) -> bytes:
    """The archive with a damaged member, packed anew: its checksums are right."""
    members = members_of(data)
    parts = [name for name in members if name.startswith(("samples/", "xl/"))]
    name = chance.choice(parts)
    return zipped({**members, name: damaged(members[name], chance)})


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object within ``value`` with each of its keys."""
    keys = (
        value.keys()
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else ()
    )
    for key in list(keys):
        yield value, key
        yield from places_in(value[key])


def with_odd_values(values: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    """The objects with one to three values replaced or removed."""
    changed = copy.deepcopy(values)
    for _ in range(chance.randint(1, 3)):
        places = [(holder, key) for row in changed for holder, key in places_in(row)]
        holder, key = chance.choice(places)
        if chance.random() < 0.2:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(chance.choice(ODD))
    return changed


def task_of(path: Path) -> str:
    return BY_PICTURE if path.name == "swift.jsonl" else TASK


def refusal(path: Path) -> str | None:
    """The sentence with which the file is refused; None if it is scored."""
    try:
        score_predictions(PredictionFile(path, recognise(path), task_of(path)))
    except MedtasksError as error:
        return str(error)
    return None


def score_or_refuse(path: Path, data: bytes) -> int | None:
    """How many predictions were read and accounted for; None if the file was refused in one
    sentence.
    """
    path.write_bytes(data)
    sentence = refusal(path)
    if sentence is not None:
        assert "\n" not in sentence
        assert path.name in sentence
        return None
    task, layout = task_of(path), recognise(path)
    documents, predictions = task_documents(task), read_predictions(path, layout, {})
    joined = join(predictions, documents, (task,))
    used = sum(map(len, joined.answered.values()))
    assert used + len(joined.unmatched) + len(joined.strange) + len(joined.of_other_tasks) == len(
        predictions
    )
    facts = score_predictions(PredictionFile(path, layout, task)).manifest.tasks[task]
    assert facts.attempted == len(joined.answered) == len(documents) - len(joined.missing)
    return len(predictions)


@pytest.mark.parametrize("name", SEEDS)
def test_a_whole_file_is_read(name: str, tmp_path: Path) -> None:
    found = score_or_refuse(tmp_path / name, SEEDS[name](tmp_path))
    assert found == len(swift_rows() if name == "swift.jsonl" else rows())


def fuzz_bytes(folder: Path, name: str, rounds: range) -> None:
    seed = SEEDS[name](folder)
    for number in rounds:
        score_or_refuse(folder / name, damaged(seed, random.Random(f"{name} {number}")))
        if name in ARCHIVES:
            score_or_refuse(
                folder / name, damaged_within(seed, random.Random(f"within {name} {number}"))
            )


def fuzz_objects(folder: Path, name: str, rounds: range) -> None:
    for number in rounds:
        values = with_odd_values(OBJECTS[name](), random.Random(f"{name} {number}"))
        found = score_or_refuse(folder / name, jsonl(values))
        assert found in (None, len(values))


@pytest.mark.parametrize("name", SEEDS)
def test_a_few_damaged_files_are_scored_or_refused(name: str, tmp_path: Path) -> None:
    fuzz_bytes(tmp_path, name, range(FEW))


@pytest.mark.parametrize("name", OBJECTS)
def test_a_few_odd_values_are_scored_or_refused(name: str, tmp_path: Path) -> None:
    fuzz_objects(tmp_path, name, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDS)
def test_a_damaged_file_is_scored_or_refused(name: str, tmp_path: Path) -> None:
    fuzz_bytes(tmp_path, name, range(FEW, ROUNDS))


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTS)
def test_odd_values_are_scored_or_refused(name: str, tmp_path: Path) -> None:
    fuzz_objects(tmp_path, name, range(FEW, ROUNDS))


@pytest.mark.slow
def test_odd_values_in_a_log_of_inspect_are_scored_or_refused(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        samples = with_odd_values(inspect_samples(), random.Random(number))
        found = score_or_refuse(
            tmp_path / "log.json", json.dumps({"eval": {}, "samples": samples}).encode()
        )
        assert found in (None, len(samples))
