"""A question, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.api import Record, Release, build, text_field, texts_by_key

FILE = "questions.jsonl"

OPTIONS = ("A", "B", "C", "D")
TOPICS = ("shape", "number")


class Question(Record):
    """One question; ``answer`` is the letter of the correct option."""

    question: str
    choices: dict[str, str]
    answer: str
    topic: str


def read(release: Release) -> Iterator[Question]:
    """The questions of a release in the format of the README; a wrong field is an error with file and line."""
    for line in release.rows(FILE):
        row, where = line.row, line.where
        yield build(
            Question,
            where,
            sample_id=text_field(row, "id", where),
            cluster=text_field(row, "patient", where),
            media=(release.picture(row.get("image"), "image", where),),
            question=text_field(row, "question", where),
            choices=texts_by_key(row, "choices", OPTIONS, where),
            answer=text_field(row, "answer", where, OPTIONS),
            topic=text_field(row, "topic", where, TOPICS),
        )
