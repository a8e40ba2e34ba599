"""Benchmark folders for tests: twenty rows with pictures, of each kind of answers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from medtasks.catalog.benchmark_folder import load_benchmark_folder
from medtasks.data.folder_rows import FolderReading, read_folder
from medtasks.data.release import Release

CHOICE_PROMPT = """{{ question }}
{% for letter in choices | sort if choices[letter] -%}
{{ letter }}. {{ choices[letter] }}
{% endfor %}
Answer with the option's letter.
"""
LABEL_PROMPT = "{{ question }}\nAnswer with one of: {{ options | join(', ') }}.\n"
OPEN_PROMPT = "{{ question }}\nAnswer with a phrase.\n"

OPTIONS_YAML = """\
name: my_vqa
title: My VQA
data: rows.csv
columns:
  question: question
  answer: answer
  image: image
  options: {A: A, B: B, C: C}
  id: id
  cluster: patient
answers: options
breakdowns: [modality]
"""
HEADER = ["id", "question", "image", "A", "B", "C", "answer", "patient", "modality"]


def png(number: int = 0) -> bytes:
    """A picture that differs from those of other numbers."""
    picture = Image.new("RGB", (16, 16), (number * 12 % 256, 90, 160))
    picture.putpixel((number % 16, 3), (255, 255, 255))
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def option_rows() -> list[list[str]]:
    """Rows with three options; two rows of each patient."""
    rows: list[list[str]] = []
    for number in range(20):
        question = f"Which colour is shape {number}?"
        row = [f"q{number}", question, f"images/{number}.png", "red", "green", "blue"]
        row += ["ABC"[number % 3], f"p{number // 2}", ("CT", "MR")[number % 2]]
        rows.append(row)
    return rows


@dataclass
class FolderBuilder:
    """A benchmark folder that is written with :meth:`write`."""

    path: Path
    yaml: str = OPTIONS_YAML
    prompt: str = CHOICE_PROMPT
    header: Sequence[str] = tuple(HEADER)
    rows: list[list[str]] = field(default_factory=option_rows)
    files: Mapping[str, str] = field(default_factory=dict)

    def set(self, row: int, column: str, text: str) -> FolderBuilder:
        """Another text in one cell."""
        self.rows[row][list(self.header).index(column)] = text
        return self

    def write(self) -> Path:
        (self.path / "images").mkdir(parents=True, exist_ok=True)
        for number in range(20):
            (self.path / "images" / f"{number}.png").write_bytes(png(number))
        (self.path / "benchmark.yaml").write_text(self.yaml, encoding="utf-8")
        (self.path / "question.j2").write_text(self.prompt, encoding="utf-8")
        for name, text in self.files.items():
            (self.path / name).write_text(text, encoding="utf-8")
        stream = io.StringIO()
        csv.writer(stream).writerows([self.header, *self.rows])
        (self.path / "rows.csv").write_text(stream.getvalue(), encoding="utf-8", newline="")
        return self.path


def reading_of(path: Path) -> FolderReading:
    folder = load_benchmark_folder(path)
    return read_folder(folder, Release(folder.data, folder.images, path / "kept"))
