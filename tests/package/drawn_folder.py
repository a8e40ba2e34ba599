"""A benchmark folder with drawn pictures, for tests of packages."""

from __future__ import annotations

import csv
from pathlib import Path

from PIL import Image

OPTIONS = {"A": "black", "B": "grey", "C": "white"}
QUESTIONS = 12

BENCHMARK = """\
name: drawn_vqa
title: Drawn VQA
data: rows.csv
images: pictures  # below this folder
columns:
  question: question
  image: image
  options: {A: A, B: B, C: C}
  answer: answer
  cluster: patient
answers: options
breakdowns: [modality]
"""
OPEN = """\
name: drawn_vqa
title: Drawn VQA
data: rows.csv
images: pictures
columns: {question: question, image: image, answer: shade, cluster: patient}
answers: open
rubric: judged.yaml
"""
RUBRIC = """\
name: drawn_vqa_judged
version: 1
title: Drawn VQA
template: drawn_vqa/judge.j2
sees: [question, target]
reasons: false
aggregation: mean_of_maximum
metrics:
  drawn_vqa_score: total
aspects:
  - name: correctness
    maximum: 1
    guidance: Does the answer say what the reference answer says?
    anchors: {0: wrong, 1: right}
"""
QUESTION = """\
{{ question }}
{% for letter in choices | sort -%}
{{ letter }}. {{ choices[letter] }}
{% endfor %}
Reply with the letter of the correct option only.
"""
JUDGE = """\
{% include "judge/_data_rule.j2" %}
{% include "judge/_scale.j2" %}
Question: {{ question }}
Reference answer: {{ target }}
{% include "judge/_verdict.j2" %}
"""


def draw_folder(folder: Path, text: str = BENCHMARK) -> Path:
    """Write a benchmark folder with one picture of each patient, and return it."""
    (folder / "pictures").mkdir(parents=True)
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "image", *OPTIONS, "answer", "shade", "patient", "modality"])
        for number in range(QUESTIONS):
            shade = number % 3
            picture = Image.new("L", (16, 16), 100 * shade + number)
            picture.putpixel((0, 0), 255 - number)
            picture.save(folder / "pictures" / f"{number}.png")
            letter = "ABC"[shade]
            question = ["Which shade is it?", f"{number}.png", *OPTIONS.values()]
            modality = "CT" if number % 2 else "MRI"
            rows.writerow([*question, letter, OPTIONS[letter], f"p{number}", modality])
    (folder / "benchmark.yaml").write_text(text)
    (folder / "question.j2").write_text(QUESTION if "options" in text else "{{ question }}\n")
    if "rubric" in text:
        (folder / "judged.yaml").write_text(RUBRIC)
        (folder / "judge.j2").write_text(JUDGE)
    return folder
