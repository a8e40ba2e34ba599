"""``medtasks view`` in a real browser: keys, filters, a run under way, text of others, and
accessibility.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from boards import HOSTILE
from browser import Reader, check_accessibility, check_responses_on_screen
from invented_runs import MODELS, write_run_of
from view_server import RunUnderWay, Server, serving, write_hostile_run

pytestmark = pytest.mark.slow

OPEN, CHOICE, STREAM = "kvasir_vqa_x1_level3", "mi_cxr_tel_single", "medstreambench_proactive"
CAREFUL, GUESS = MODELS[1], MODELS[3]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for model in (CAREFUL, GUESS):
        write_run_of(folder, model, [OPEN, CHOICE, STREAM])
    return folder


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    with serving([root]) as started:
        yield started


@pytest.fixture
def reader(browser: Any, server: Server) -> Iterator[Reader]:
    with Reader(browser, server.address) as started:
        yield started


def address(name: str, **given: str) -> str:
    return f"{name}?{urlencode(given)}"


def current(page: Any) -> str:
    return page.locator("h1").inner_text()


def ids(page: Any) -> list[str]:
    return page.locator(".list tbody th").all_inner_texts()


def test_the_keyboard_walks_through_the_samples_of_a_filter(reader: Reader) -> None:
    page = reader.open(address("samples.html", task=CHOICE))
    page.get_by_label("Answers of").select_option(label="invented/Guess-1B")
    page.wait_for_url("**run=*")
    every = ids(page)
    page.get_by_label("Result").select_option("wrong")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**outcome=wrong*")
    wrong = ids(page)
    assert 0 < len(wrong) < len(every)

    page.locator(".list tbody th a").first.click()
    page.wait_for_url("**/sample.html*")
    assert current(page) == wrong[0]
    for key, expected in [
        ("n", wrong[1]),
        ("ArrowLeft", wrong[0]),
        ("ArrowRight", wrong[1]),
        ("p", wrong[0]),
    ]:
        with page.expect_navigation():
            page.keyboard.press(key)
        assert current(page) == expected, key
    assert "outcome=wrong" in page.url  # a permalink keeps the filter
    with page.expect_navigation():
        page.keyboard.press("u")
    assert ids(page) == wrong

    page = reader.open("index.html")
    page.get_by_role("link", name="Samples").click()
    assert page.get_by_role("heading", name="Samples").is_visible()
    page = reader.open(address("sample.html", task=CHOICE, id=every[0]))
    page.get_by_role("link", name="Guess-1B").click()
    page.wait_for_url("**run=*")
    with page.expect_navigation():
        page.keyboard.press("w")
    assert current(page) == next(one for one in wrong if one > every[0])


def test_keys_typed_into_a_field_are_text_and_another_task_starts_without_filters(
    reader: Reader,
) -> None:
    page = reader.open(address("samples.html", task=CHOICE, outcome="wrong"))
    page.get_by_label("Text contains").fill("n")
    page.keyboard.type("wp")
    assert page.get_by_label("Text contains").input_value() == "nwp"
    page.keyboard.press("Enter")
    page.wait_for_url("**words=nwp*")
    page.get_by_text("No sample matches.").wait_for()
    page.get_by_label("Task").select_option(OPEN)
    page.wait_for_url(f"**task={OPEN}*")
    assert "words" not in page.url
    assert "outcome" not in page.url
    assert len(ids(page)) == 17


def test_pictures_are_enlarged_in_place_and_the_question_is_on_a_phones_screen(
    reader: Reader,
) -> None:
    page = reader.open(address("samples.html", task=CHOICE))
    page.locator(".list tbody th a").first.click()
    page.locator(".shots img").nth(1).wait_for()
    page.wait_for_function(
        "[...document.querySelectorAll('figure img')].some(one => one.naturalWidth > 2)"
    )
    assert page.locator(".shots img").first.bounding_box()["width"] > 200
    before, image = page.url, page.locator(".pane:not([hidden]) img")
    page.locator(".shots img").first.click()
    image.wait_for()
    shown = image.get_attribute("src")
    page.keyboard.press("ArrowRight")  # the next picture, not the next sample
    page.wait_for_function("document.querySelector('.state').textContent.includes('Image 2')")
    assert image.get_attribute("src") not in (None, shown)
    image.click()
    assert page.locator(".state").inner_text().startswith("100 %")
    page.keyboard.press("Escape")
    assert not image.is_visible()
    assert page.url == before
    page.set_viewport_size({"width": 390, "height": 844})
    question = page.locator(".question").bounding_box()
    assert question["y"] + question["height"] < 844
    items = page.locator("nav[aria-label=Pages] li").all()
    assert (
        len({item.bounding_box()["y"] for item in items}) == 1
    )  # one line, however many benchmarks


def test_a_sample_is_bookmarked_by_keyboard_and_found_again(reader: Reader) -> None:
    page = reader.open(address("samples.html", task=CHOICE))
    page.locator(".list tbody th a").first.click()
    page.wait_for_url("**/sample.html*")
    name = current(page)
    page.keyboard.press("b")
    page.keyboard.type("looks at the wrong side")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove bookmark").wait_for()
    assert page.locator("#note").input_value() == "looks at the wrong side"
    page.locator("a[data-key=u]").click()
    page.wait_for_url("**/samples.html*")
    page.get_by_label("Bookmarks").select_option("1")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**marked=1*")
    assert ids(page) == [name]
    page.locator(".list tbody th a").first.click()
    page.get_by_role("button", name="Remove bookmark").click()
    page.get_by_role("button", name="Bookmark", exact=True).wait_for()


def test_a_run_under_way_updates_by_itself(browser: Any, tmp_path: Path) -> None:
    run = RunUnderWay(tmp_path, CAREFUL, [CHOICE])
    count = len(run.documents[CHOICE])
    with serving([tmp_path]) as started, Reader(browser, started.address) as reader:
        page = reader.open("")
        assert page.url.endswith("live.html")
        row = page.get_by_role("row").filter(has_text=CHOICE).first
        assert f"0 of {count}" in row.inner_text()
        run.answer(CHOICE, [0, 1])
        page.get_by_text(f"2 of {count}").wait_for(timeout=60_000)
        run.answer(CHOICE, [2], failed=HOSTILE)
        page.locator("details summary").click(timeout=60_000)
        assert page.evaluate("window.hacked") is None
        run.answer(CHOICE, range(3, count))
        page.get_by_text(f"{count - 1} of {count}").wait_for(timeout=60_000)
        assert page.locator("details").evaluate(
            "one => one.open"
        )  # what the reader opened stays open
        assert "accuracy" in row.inner_text()
        write_run_of(tmp_path, CAREFUL, [CHOICE])
        run.finish()
        page.get_by_text("No run is in progress").wait_for(timeout=60_000)
        page.get_by_role("link", name="the leaderboard").wait_for(timeout=60_000)
        page.get_by_role("link", name="Samples").click()
        page.locator(".list").wait_for()
        assert len(ids(page)) == count


def test_text_of_others_is_text(browser: Any, tmp_path: Path) -> None:
    write_hostile_run(tmp_path, GUESS, [OPEN, CHOICE])
    with serving([tmp_path]) as started, Reader(browser, started.address, expected="404") as reader:
        page = reader.open(address("samples.html", task=OPEN))
        page.get_by_role("link", name="<img src=x").first.click()
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        for name in (
            "",
            "index.html",
            address("samples.html", task=OPEN, words=HOSTILE),
            address("sample.html", task=OPEN, id=HOSTILE),
        ):
            if name:
                page.goto(f"{started.address}{name}")
            assert page.evaluate("window.hacked") is None, name
            assert (
                page.locator("[onerror], [onclick], [href^='javascript'], img[src='x']").count()
                == 0
            ), name
            assert page.locator("body").get_by_text("<img src=x").count() > 0 or "words" in name, (
                name
            )


@pytest.mark.parametrize("name", ["samples", "choice", "open", "stream", "live"])
def test_axe_finds_nothing_serious(reader: Reader, root: Path, name: str) -> None:
    run = RunUnderWay(root, CAREFUL, [CHOICE]) if name == "live" else None
    if run is not None:
        run.answer(CHOICE, range(5))
        run.answer(CHOICE, [5], failed="no connection")
    tasks = {"choice": CHOICE, "open": OPEN, "stream": STREAM}
    page = reader.open(
        "live.html" if run is not None else address("samples.html", task=tasks.get(name, CHOICE))
    )
    if name in tasks:
        page.locator(".list tbody th a").last.click()
    check_accessibility(page)
    if run is not None:
        run.finish()


def test_a_list_of_samples_keeps_the_response_on_a_phone(reader: Reader) -> None:
    page = reader.open(address("samples.html", task=OPEN))
    page.set_viewport_size({"width": 390, "height": 900})
    check_responses_on_screen(page)
