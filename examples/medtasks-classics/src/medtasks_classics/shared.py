"""What the benchmarks share: two kinds of records, and drawn pictures for miniature data."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from medtasks.api import Record, Release, Where, build, text_field, wrong
from PIL import Image, ImageDraw

YES_NO = ("yes", "no")
LETTERS = tuple("ABCDEFGHI")


class Question(Record):
    """A question with a short answer; ``guesses`` are the answers that a closed question can have,
    if known.
    """

    question: str
    answer: str
    closed: bool
    guesses: tuple[str, ...] = ()
    organ: str = ""
    modality: str = ""
    question_type: str = ""
    answer_type: str = ""


class Choice(Record):
    """A multiple-choice question; ``answer`` is the letter of the correct option."""

    question: str
    choices: dict[str, str]
    answer: str
    modality: str = ""
    question_type: str = ""
    body_system: str = ""
    task: str = ""
    subject: str = ""
    difficulty: str = ""


def yes_or_no(answer: str) -> bool:
    """Whether a question is closed because its answer is yes or no."""
    return answer.strip().lower() in YES_NO


def row_id(*parts: str) -> str:
    """An id made of what a row says, for releases without ids."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def hub_questions(release: Release, pattern: str) -> Iterator[Question]:
    """The questions of a Parquet file with the columns image, question and answer, as
    flaviagiammarino's on the hub.
    """
    for line in release.rows(pattern):
        row, where = line.row, line.where
        picture = release.picture(row.get("image"), "image", where)
        question, answer = text_field(row, "question", where), text_field(row, "answer", where)
        yield short_question(where, row_id(picture, question, answer), picture, question, answer)


def short_question(
    where: Where, name: str, picture: str, question: str, answer: str, closed: bool | None = None, **fields: str
) -> Question:
    """A question that is closed if its answer is yes or no, unless ``closed`` says it; the picture
    is its cluster.
    """
    closed = yes_or_no(answer) if closed is None else closed
    return build(
        Question,
        where,
        sample_id=name,
        cluster=picture,
        media=(picture,),
        question=question,
        answer=answer.strip().lower() if closed else answer.strip(),
        closed=closed,
        guesses=YES_NO if yes_or_no(answer) else (),
        **fields,
    )


def choice_question(
    where: Where, name: str, pictures: tuple[str, ...], question: str, texts: Sequence[str], answer: str, **fields: str
) -> Choice:
    """A question with options in the release's order; the first picture is its cluster."""
    choices = {letter: text.strip() for letter, text in zip(LETTERS, texts, strict=False)}
    if texts and answer not in choices:
        raise wrong(where, "answer", answer, f"one of {', '.join(choices)}")
    return build(
        Choice,
        where,
        sample_id=name,
        cluster=pictures[0],
        media=pictures,
        question=question,
        choices=choices,
        answer=answer,
        **fields,
    )


class Drawing(NamedTuple):
    """A drawn picture with two questions about it."""

    number: int
    shape: str
    png: bytes
    closed: tuple[str, str]
    open: tuple[str, str]

    def options(self, count: int = 4) -> list[str]:
        """Shapes in an order in which the drawn one is at ``number``, modulo ``count``."""
        other_shapes = [shape for shape in SHAPES if shape != self.shape][: count - 1]
        other_shapes.insert(self.number % count, self.shape)
        return other_shapes

    def letter(self, count: int = 4) -> str:
        """The letter of the correct option."""
        return LETTERS[self.number % count]


SHAPES = ("circle", "square", "triangle", "bar", "cross")


def drawings(count: int = 24, shapes: Sequence[str] = SHAPES[:4]) -> Iterator[Drawing]:
    """``count`` drawings; half of the closed questions have the answer yes."""
    for number in range(count):
        shape = shapes[number // 2 % len(shapes)]
        asked = shape if number % 2 == 0 else shapes[(number // 2 + 1) % len(shapes)]
        image = Image.new("L", (64, 64), 8 * (number % 8))
        _draw(ImageDraw.Draw(image), shape, 200 + number)
        stream = io.BytesIO()
        image.save(stream, "PNG")
        closed = (f"Is a {asked} shown?", "yes" if asked == shape else "no")
        yield Drawing(number, shape, stream.getvalue(), closed, ("Which shape is shown?", shape))


def _draw(draw: ImageDraw.ImageDraw, shape: str, fill: int) -> None:
    if shape == "circle":
        draw.ellipse((16, 16, 48, 48), fill=fill)
    elif shape == "triangle":
        draw.polygon([(16, 48), (32, 16), (48, 48)], fill=fill)
    if shape in ("bar", "cross"):
        draw.rectangle((28, 8, 36, 56), fill=fill)
    if shape in ("square", "cross"):
        draw.rectangle((16, 16, 48, 48) if shape == "square" else (8, 28, 56, 36), fill=fill)
