"""``medtasks rate`` in a real browser: by keyboard alone, though its server is killed, and on a
phone.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser import Reader, check_accessibility, chromium
from rate_server import RUBRIC, options, rating, rating_process, write_judged_runs

from medtasks.cli.score import score
from medtasks.judge.rating_file import RatingFile, read_rating_file
from medtasks.judge.rating_records import Rating
from medtasks.runs.find import run_folders

pytestmark = pytest.mark.slow

COUNT = 50
SEED = 20261130
COMMENTED, UNDECIDED, CORRECTED, PAUSED = 3, 7, 11, 20
"""Positions of answers that get a comment, `cannot tell`, a correction, and a pause."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    write_judged_runs(root)
    return root


@pytest.fixture(scope="module")
def browser(results: Path) -> Iterator[Any]:
    """Started after the judge, since either has an event loop of its own."""
    assert results.is_dir()
    with chromium() as started:
        yield started


def digit(position: int, aspect: int) -> str:
    """The score that the rater gives an aspect."""
    return str((position + aspect) % 2)


class Rater:
    """A person with a keyboard, whose server is killed at some answers and started again."""

    def __init__(self, browser: Any, results: Path, killed: set[int]) -> None:
        self._results = results
        self._page = browser.new_page(viewport={"width": 1280, "height": 900})
        self._killed = killed
        self._random = random.Random(SEED)
        self._server = ExitStack()
        self._process: subprocess.Popen[str] | None = None
        self.starts = 0

    @property
    def file(self) -> RatingFile:
        return read_rating_file(self._results / "ratings" / RUBRIC / "ann.jsonl")

    def start(self) -> None:
        """Run the command, the same one each time, and open what it prints."""
        started = rating_process(
            self._results, "--rubric", RUBRIC, "--rater", "ann", "--sample", str(COUNT)
        )
        self._process, address = self._server.enter_context(started)
        self.starts += 1
        self._page.goto(address)

    def rate_all(self) -> None:
        """Rate until the last page comes; each answer once, wherever the server was killed."""
        self.start()
        while "done.html" not in self._page.url:
            position = int(self._page.url.rpartition("=")[2])
            if position in self._killed:
                self._killed.remove(position)
                self._rate_while_killed(position)
            else:
                self._rate(position)
        self._server.close()
        self._page.close()

    def _rate(self, position: int) -> None:
        """Rate an answer and wait for the next one."""
        keyboard, page = self._page.keyboard, self._page
        if position == COMMENTED:
            keyboard.press("c")
            keyboard.type("no 1 of both, x p b n")
            keyboard.press("Escape")
        if position == PAUSED:
            keyboard.press("p")
            keyboard.press("1")  # nothing is rated during a pause
            page.get_by_role("heading", name="Paused").wait_for()
            keyboard.press("p")
        self._press_scores(position)
        page.wait_for_url(self._behind(position))
        if position == CORRECTED:
            keyboard.press("b")
            page.wait_for_url(f"**answer={position}")
            keyboard.press("0")
            keyboard.press("Enter")
            page.wait_for_url(self._behind(position))

    def _press_scores(self, position: int) -> None:
        """Press a digit for each aspect, after which the rating is sent."""
        if position == UNDECIDED:
            self._page.keyboard.press("x")
            return
        for aspect in range(self._page.locator(".aspect").count()):
            self._page.keyboard.press(digit(position, aspect))

    def _rate_while_killed(self, position: int) -> None:
        """Kill the server within 30 milliseconds of the last key, and start it again."""
        assert self._process is not None
        rated = len(self.file.ratings)
        self._press_scores(position)
        self._page.wait_for_timeout(self._random.uniform(0, 30))
        self._process.kill()
        self._server.close()
        assert len(self.file.ratings) in (rated, rated + 1)
        self.start()

    @staticmethod
    def _behind(position: int) -> str:
        return f"**answer={position + 1}" if position < COUNT else "**/done.html"


def expected_scores(position: int, made: Rating) -> list[int | None]:
    """The scores of an answer, in the order of its aspects."""
    if position == UNDECIDED:
        return [None] * len(made.scores)
    scores: list[int | None] = [int(digit(position, aspect)) for aspect in range(len(made.scores))]
    if position == CORRECTED:
        scores[0] = 0
    return scores


def test_fifty_answers_are_rated_by_keyboard_though_the_server_is_killed(
    browser: Any, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost or doubled, and the labels correct the judge's score."""
    killed = set(random.Random(SEED).sample(range(12, COUNT), 3))
    rater = Rater(browser, results, set(killed))
    rater.rate_all()
    assert rater.starts == 4
    file = rater.file
    assert [*file.ratings] == [answer.key for answer in file.plan.answers]
    assert len(file.ratings) == COUNT
    lines = file.path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + COUNT + 1  # the plan, and one correction
    for position, made in enumerate(file.ratings.values(), start=1):
        by_aspect = json.loads(lines[position])["scores"] if position < CORRECTED else None
        assert by_aspect is None or by_aspect == made.scores
        assert sorted(map(str, made.scores.values())) == sorted(
            map(str, expected_scores(position, made))
        ), position
        assert made.comment == ("no 1 of both, x p b n" if position == COMMENTED else "")
        assert made.cannot_tell == (position == UNDECIDED)
        assert made.seconds is not None
    for folder in run_folders(results):
        score(folder, human=results / "ratings")
    printed = capsys.readouterr().out
    assert printed.count("corrected") >= 2


@pytest.fixture
def reader(browser: Any, results: Path) -> Iterator[Reader]:
    asked = options(results, folder=results / "other", hide_reference=True, rubric=RUBRIC)
    with (
        rating([results], asked) as server,
        Reader(browser, server.address, expected="403") as read,
    ):
        yield read


def test_the_page_is_usable_by_pointer_and_screen_reader_and_hides_the_reference(
    reader: Reader,
) -> None:
    page = reader.open("answer.html?answer=2")
    reference = page.locator("details.reference pre").first
    assert not reference.is_visible()
    page.keyboard.press("r")
    assert reference.is_visible()
    assert page.evaluate("document.activeElement.name") == "aspect-0"
    group = page.get_by_role("group").filter(has=page.get_by_role("radio")).first
    assert group.get_by_role("radio", name="1 right and complete").count() == 1
    page.keyboard.press("Enter")
    assert "choose a score" in page.get_by_role("alert").inner_text()
    page.keyboard.press("z")
    page.locator("dialog.viewer").wait_for()
    page.keyboard.press("x")  # of the viewer: it does not mean that the rater cannot tell
    page.keyboard.press("1")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.name") == "aspect-0"
    assert page.locator("input:checked").count() == 0
    check_accessibility(page)
    for aspect in page.locator(".aspect").all():
        aspect.locator(".choice").nth(1).click()
    page.wait_for_url("**answer=3")
    reader.open("done.html")
    check_accessibility(page)
    page.keyboard.press("n")
    page.wait_for_url("**answer=1")
